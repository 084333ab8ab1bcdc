/* A child's command line is read strictly; a slot's lock lives as long as its holder and is seen
 * without being taken. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/inherit.h"

static char dir[32];

static int make_dir(void **state)
{
    (void)state;
    memcpy(dir, "/tmp/outboxd-test.XXXXXX", 25);
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"locks/abc.4", "locks/1.0", "locks"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        if (remove(path) < 0 && errno != ENOENT) {
            return -1;
        }
    }
    return rmdir(dir);
}

static int parse(struct inherit_args *ret, const char *a, const char *b)
{
    char program[] = "test", slot[] = "--slot", slot_value[] = "4", generation[] = "--generation",
         generation_value[] = "3f9a000000000001", incarnation[] = "--incarnation",
         incarnation_value[] = "ffffffffffffffff", node[] = "--node", node_value[] = "n-1",
         extra[64], extra_value[128];
    char *argv[] = {program,           slot, slot_value, generation, generation_value, incarnation,
                    incarnation_value, node, node_value, extra,      extra_value,      NULL};

    (void)snprintf(extra, sizeof(extra), "%s", a ? a : "");
    (void)snprintf(extra_value, sizeof(extra_value), "%s", b ? b : "");
    return inherit_parse_args(a ? b ? 11 : 10 : 9, argv, ret);
}

static void a_full_command_line_is_read(void **state)
{
    struct inherit_args args;

    (void)state;
    assert_int_equal(parse(&args, NULL, NULL), 0);
    assert_int_equal(args.slot, 4);
    assert_true(args.generation == 0x3f9a000000000001);
    assert_true(args.incarnation == UINT64_MAX);
    assert_string_equal(args.node, "n-1");
    assert_int_equal(args.listener_count, 0);
    assert_int_equal(parse(&args, "--listeners", "16"), 0);
    assert_int_equal(args.listener_count, 16);
}

static void a_bad_command_line_is_refused_and_writes_nothing(void **state)
{
    static const char *const bad[][2] = {
        {"--listeners", "17"},
        {"--listeners", "-1"},
        {"--listeners", "x"},
        {"--slot", "4294967296"},
        {"--slot", "0x4"},
        {"--slot", " 4"},
        {"--generation", "G"},
        {"--generation", "10000000000000000"},
        {"--generation", ""},
        {"--node", "a.b"},
        {"--unknown", "1"},
        {"stray", NULL},
        {"--node", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"},
    };
    struct inherit_args args, untouched;

    (void)state;
    memset(&args, 0x5a, sizeof(args));
    untouched = args;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(&args, bad[i][0], bad[i][1]), -EINVAL);
    }
    char program[] = "test";
    char *argv[] = {program, NULL};
    assert_int_equal(inherit_parse_args(1, argv, &args), -EINVAL);
    assert_memory_equal(&args, &untouched, sizeof(args));
}

static void a_slot_is_held_by_one_and_free_after_it(void **state)
{
    (void)state;
    assert_int_equal(inherit_slot_is_free(dir, 0xabc, 4), -ENOENT);
    int fd = inherit_lock_slot(dir, 0xabc, 4);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(inherit_slot_is_free(dir, 0xabc, 4), 0);
    assert_int_equal(inherit_slot_is_free(dir, 0xabc, 5), -ENOENT);
    assert_int_equal(inherit_lock_slot(dir, 0xabc, 4), -EWOULDBLOCK);
    close(fd);
    assert_int_equal(inherit_slot_is_free(dir, 0xabc, 4), 1);
    assert_int_equal(inherit_slot_is_free(dir, 0xabc, 4), 1); /* looking does not keep it */
    fd = inherit_lock_slot(dir, 0xabc, 4);
    assert_true(fd >= 0);
    close(fd);
}

static void a_killed_holder_holds_nothing(void **state)
{
    int ready[2];
    char byte = 0;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = inherit_lock_slot(dir, 1, 0);

        (void)!write(ready[1], fd >= 0 ? "y" : "n", 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(inherit_slot_is_free(dir, 1, 0), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(inherit_slot_is_free(dir, 1, 0), 1);
    close(ready[0]);
    close(ready[1]);
}

static void a_missing_state_directory_is_told(void **state)
{
    (void)state;
    assert_int_equal(inherit_lock_slot("/nonexistent/outboxd", 1, 0), -ENOENT);
}

static void no_inherited_descriptor_reaches_a_grandchild(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY);
    int high = fcntl(fd, F_DUPFD, INHERIT_EVENTFD_FIRST + 3);

    assert_true(fd >= 3 && high >= INHERIT_EVENTFD_FIRST);
    inherit_protect();
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(high, F_GETFD) & FD_CLOEXEC);
    assert_false(fcntl(STDERR_FILENO, F_GETFD) & FD_CLOEXEC);
    close(fd);
    close(high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_command_line_is_read),
        cmocka_unit_test(a_bad_command_line_is_refused_and_writes_nothing),
        cmocka_unit_test(a_slot_is_held_by_one_and_free_after_it),
        cmocka_unit_test(a_killed_holder_holds_nothing),
        cmocka_unit_test(a_missing_state_directory_is_told),
        cmocka_unit_test(no_inherited_descriptor_reaches_a_grandchild),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
