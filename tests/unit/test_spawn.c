/* What a spawned program finds: exactly the descriptors of its table at their numbers, a clean
 * environment, no blocked signals, a process group of its own. The program is this test itself, run
 * with arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/listen.h"
#include "supervisor/spawn.h"
#include "supervisor/store_command.h"

/* ---- the spawned side: exit status 0, or the number of what is wrong ---- */

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 3; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* Each further argument is "FD=CONTENT". */
static int look_around(int argc, char **argv)
{
    sigset_t blocked;
    struct sigaction action;

    for (int i = 2; i < argc; i++) {
        char text[32] = "";
        char *content;
        const long fd = strtol(argv[i], &content, 10);

        if (pread((int)fd, text, sizeof(text) - 1, 0) < 0 || strcmp(text, content + 1) != 0) {
            return 10 + i;
        }
        if (fcntl((int)fd, F_GETFD) & FD_CLOEXEC) {
            return 3;
        }
    }
    if (count_descriptors() != argc - 2) {
        return 4;
    }
    if (getenv("http_proxy") || getenv("LD_PRELOAD") || !getenv("OUTBOXD_TEST_MARK") ||
        !getenv("LC_TEST")) {
        return 5;
    }
    if (sigprocmask(SIG_BLOCK, NULL, &blocked) < 0 || sigismember(&blocked, SIGUSR1) != 0) {
        return 6;
    }
    if (sigaction(SIGUSR2, NULL, &action) < 0 || action.sa_handler != SIG_DFL) {
        return 7;
    }
    return getpgrp() == getpid() ? 0 : 8;
}

/* ---- the test's side ---- */

static int file_with(const char *content)
{
    const int fd = memfd_create("spawn-test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    return fd;
}

static int run(const struct spawn_table *table, const char *const *expected, size_t count)
{
    char program[] = "/proc/self/exe", mode[] = "--look-around";
    char texts[8][32];
    char *argv[12] = {program, mode};
    pid_t pid;
    int status;

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%s", expected[i]);
        argv[2 + i] = texts[i];
    }
    assert_int_equal(spawn_process(program, argv, table, NULL, &pid), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Every target is another row's source: a plain dup2 in any order would lose one. */
static void descriptors_are_shuffled_without_loss(void **unused)
{
    const int a = file_with("a"), b = file_with("b"), c = file_with("c");
    char expected[3][32];
    struct spawn_table table = {0};

    (void)unused;
    assert_int_equal(spawn_table_add(&table, a, b), 0);
    assert_int_equal(spawn_table_add(&table, b, c), 0);
    assert_int_equal(spawn_table_add(&table, c, a), 0);
    assert_int_equal(spawn_table_add(&table, -1, 99), 0);
    (void)snprintf(expected[0], sizeof(expected[0]), "%d=a", b);
    (void)snprintf(expected[1], sizeof(expected[1]), "%d=b", c);
    (void)snprintf(expected[2], sizeof(expected[2]), "%d=c", a);
    const char *const all[] = {expected[0], expected[1], expected[2]};
    assert_int_equal(run(&table, all, 3), 0);
    close(a);
    close(b);
    close(c);
}

static void a_descriptor_at_its_own_number_is_inherited_too(void **unused)
{
    const int a = file_with("x");
    char expected[32];
    struct spawn_table table = {0};

    (void)unused;
    assert_int_equal(spawn_table_add(&table, a, a), 0);
    (void)snprintf(expected, sizeof(expected), "%d=x", a);
    const char *const all[] = {expected};
    assert_int_equal(run(&table, all, 1), 0);
    close(a);
}

static void nothing_else_is_inherited(void **unused)
{
    const struct spawn_table none = {0};
    const int other =
        open("/dev/null", O_RDONLY); /* without CLOEXEC: as our own parent may have left it */

    (void)unused;
    spawn_protect();
    assert_int_equal(run(&none, NULL, 0), 0);
    close(other);
}

static void a_program_that_is_not_there_is_an_error(void **unused)
{
    char program[] = "/nonexistent/outboxd-api";
    char *argv[] = {program, NULL};
    const struct spawn_table none = {0};
    pid_t pid = -7;

    (void)unused;
    assert_int_equal(spawn_process(program, argv, &none, NULL, &pid), -ENOENT);
    assert_int_equal(pid, -7);
}

static void a_table_has_an_end(void **unused)
{
    struct spawn_table table = {0};

    (void)unused;
    for (int i = 0; i < SPAWN_FDS_MAX; i++) {
        assert_int_equal(spawn_table_add(&table, 0, 3 + i), 0);
    }
    assert_int_equal(spawn_table_add(&table, 0, 3), -ENOSPC);
}

/* ---- the two other places where the supervisor prepares what a child gets ---- */

static void an_address_in_use_can_be_bound_later_and_the_others_stay(void **unused)
{
    char first[64], second[64], folder[] = "/tmp/outboxd-test-XXXXXX";
    char *items[] = {first, second};
    const struct text_list addresses = {.items = items, .count = 2};
    struct text_list only_second = {.items = &items[1], .count = 1};
    struct listeners holder, listeners;
    const char *address = NULL, *reason = NULL;

    (void)unused;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(first, sizeof(first), "unix:%s/a", folder);
    (void)snprintf(second, sizeof(second), "unix:%s/b", folder);
    listeners_init(&holder);
    listeners_init(&listeners);
    assert_int_equal(listeners_open(&holder, &only_second, &address, &reason), 0);
    assert_int_equal(listeners_open(&listeners, &addresses, &address, &reason), -EADDRINUSE);
    assert_string_equal(address, second);
    const int kept = listeners.fds[0];
    assert_true(kept >= 0);
    listeners_close(&holder); /* its socket file stays, as a killed process leaves it */
    assert_int_equal(listeners_open(&listeners, &addresses, &address, &reason), 0);
    assert_int_equal(listeners.fds[0], kept);
    assert_int_equal(listeners.count, 2);
    listeners_close(&listeners);
    (void)unlink(first + 5);
    (void)unlink(second + 5);
    assert_int_equal(rmdir(folder), 0);
}

static void a_malformed_address_is_told(void **unused)
{
    char text[] = "localhost";
    char *items[] = {text};
    const struct text_list addresses = {.items = items, .count = 1};
    struct listeners listeners;
    const char *address = NULL, *reason = NULL;

    (void)unused;
    listeners_init(&listeners);
    assert_true(listeners_open(&listeners, &addresses, &address, &reason) < 0);
    assert_non_null(reason);
    listeners_close(&listeners);
}

static void a_state_directory_that_is_too_long_for_a_socket_is_refused(void **unused)
{
    char folder[STORE_STATE_DIR_MAX + 2];
    struct store_paths *paths = malloc(sizeof(*paths));

    (void)unused;
    assert_non_null(paths);
    memset(folder, 'x', sizeof(folder) - 1);
    folder[0] = '/';
    folder[sizeof(folder) - 1] = '\0';
    assert_int_equal(store_paths_make(paths, folder), -ENAMETOOLONG);
    free(paths);
}

static void the_stores_url_escapes_what_means_something_in_one(void **unused)
{
    char parent[] = "/tmp/outboxd-test-XXXXXX", folder[64], expected[128];
    struct store_paths *paths = malloc(sizeof(*paths));

    (void)unused;
    assert_non_null(paths);
    assert_non_null(mkdtemp(parent));
    (void)snprintf(folder, sizeof(folder), "%s/a%%b?c", parent);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(store_paths_make(paths, folder), 0);
    (void)snprintf(expected, sizeof(expected), "unix://%s/a%%25b%%3Fc/store.sock", parent);
    assert_string_equal(paths->url, expected);
    assert_int_equal(rmdir(paths->folder), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(parent), 0);
    free(paths);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_are_shuffled_without_loss),
        cmocka_unit_test(a_descriptor_at_its_own_number_is_inherited_too),
        cmocka_unit_test(nothing_else_is_inherited),
        cmocka_unit_test(a_program_that_is_not_there_is_an_error),
        cmocka_unit_test(a_table_has_an_end),
        cmocka_unit_test(an_address_in_use_can_be_bound_later_and_the_others_stay),
        cmocka_unit_test(a_malformed_address_is_told),
        cmocka_unit_test(a_state_directory_that_is_too_long_for_a_socket_is_refused),
        cmocka_unit_test(the_stores_url_escapes_what_means_something_in_one),
    };
    sigset_t blocked;

    if (argc > 1 && strcmp(argv[1], "--look-around") == 0) {
        return look_around(argc, argv);
    }
    spawn_protect();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    (void)signal(SIGUSR2, SIG_IGN);
    (void)setenv("http_proxy", "http://proxy.invalid", 1);
    (void)setenv("OUTBOXD_TEST_MARK", "1", 1);
    (void)setenv("LC_TEST", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
