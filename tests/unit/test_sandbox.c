/* What a process can't do any more once it is in the sandbox, and what it still can. Each test does
 * it in a process of its own: there is no way out of a sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<seccomp.h>)
#include <seccomp.h>
#else
#define seccomp_syscall_resolve_name(name) (-1)
#endif

#include "common/base/sandbox.h"

#define CANNOT 77 /* exit status: no seccomp here */

/* Runs `does` in the sandbox of a process of its own; what it returned. */
static int in_sandbox(int (*does)(void))
{
    int status;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        const int err = sandbox_enter();

        _exit(err == 0 ? does() : CANNOT);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        skip();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- the sandboxed side: 0, or the number of what went wrong ---- */

static long status_value(const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "re");

    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtol(line + strlen(name), NULL, 10);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return value;
}

static int shows_its_filter(void)
{
    return status_value("Seccomp:") == 2 && status_value("NoNewPrivs:") == 1 ? 0 : 1;
}

static int execute(void)
{
    char name[] = "true";
    char *argv[] = {name, NULL}, *none[] = {NULL};

    (void)execve("/bin/true", argv, none);
    return errno == EPERM ? 0 : 1;
}

/* Numbers that make each of them harmless, should it be let through: -1 is no address, no
 * descriptor, no process of ours. */
static int make_each_refused_call(void)
{
    static const struct {
        const char *name;
        bool is_always;
    } calls[] = {
#define ALWAYS              true
#define UNSANITIZED         false
#define REFUSED(call, when) {.name = #call, .is_always = (when)},
#include "common/base/sandbox.def"
    };

    if (status_value("Seccomp:") != 2) {
        return 250; /* then nothing here is tried */
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const long number = seccomp_syscall_resolve_name(calls[i].name);

        errno = 0;
        if (calls[i].is_always && number >= 0 &&
            (syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) != -1 || errno != EPERM)) {
            return (int)i + 1;
        }
    }
    return 0;
}

static int open_sockets(void)
{
    static const int used[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    static const int unused[] = {AF_PACKET, AF_ALG, AF_VSOCK, AF_BLUETOOTH, AF_AX25, AF_KEY};

    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        const int fd = socket(used[i], used[i] == AF_NETLINK ? SOCK_RAW : SOCK_STREAM, 0);

        if (fd < 0 && errno != EAFNOSUPPORT) { /* a machine without IPv6 */
            return 1;
        }
        close(fd);
    }
    for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++) {
        if (socket(unused[i], SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT) {
            return 2;
        }
    }
    return 0;
}

static int make_code(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);

    if (page != MAP_FAILED || errno != EPERM) {
        return 1;
    }
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (page == MAP_FAILED || mprotect(page, 4096, PROT_READ) < 0) {
        return 2;
    }
    return mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0 && errno == EPERM ? 0 : 3;
}

static void *resolve(void *name)
{
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const int err = getaddrinfo(name, "80", &hints, &found);

    if (err == 0) {
        freeaddrinfo(found);
    }
    return err == 0 ? name : NULL;
}

/* As libcurl does: in a thread, with the modules of NSS that are loaded only then. */
static int resolve_in_a_thread(void)
{
    char name[] = "localhost";
    void *result = NULL;
    pthread_t thread;

    if (pthread_create(&thread, NULL, resolve, name) != 0) {
        return 1;
    }
    return pthread_join(thread, &result) == 0 && result ? 0 : 2;
}

static int abort_it(void)
{
    (void)signal(SIGABRT, SIG_DFL);
    abort();
}

/* ---- the tests ---- */

static void a_sandboxed_process_shows_its_filter(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(shows_its_filter), 0);
}

static void it_cannot_execute_anything(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(execute), 0);
}

static void each_call_of_the_table_is_refused(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(make_each_refused_call), 0);
}

static void it_has_sockets_of_the_network_and_no_others(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(open_sockets), 0);
}

static void it_cannot_turn_data_into_code(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(make_code), 0);
}

static void it_resolves_names_in_threads(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(resolve_in_a_thread), 0);
}

static void it_can_still_abort(void **unused)
{
    (void)unused;
    assert_int_equal(in_sandbox(abort_it), 1000 + SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sandboxed_process_shows_its_filter),
        cmocka_unit_test(it_cannot_execute_anything),
        cmocka_unit_test(each_call_of_the_table_is_refused),
        cmocka_unit_test(it_has_sockets_of_the_network_and_no_others),
        cmocka_unit_test(it_cannot_turn_data_into_code),
        cmocka_unit_test(it_resolves_names_in_threads),
        cmocka_unit_test(it_can_still_abort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
