/* Addresses of `listen`: read, shown, and asked of an open socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/listen_address.h"

static void what_is_read_is_shown_the_same(void **unused)
{
    static const char *const texts[] = {"127.0.0.1:7780", "0.0.0.0:1", "[::1]:7780",
                                        "[2001:db8::1]:65535", "unix:/run/outboxd/api.sock"};

    (void)unused;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct listen_address address;
        const char *reason = NULL;

        assert_int_equal(listen_address_parse(texts[i], &address, &reason), 0);
        assert_string_equal(listen_address_show(&address).text, texts[i]);
    }
}

static void local_is_what_no_other_machine_reaches(void **unused)
{
    static const struct {
        const char *text;
        bool is_local;
    } cases[] = {{"127.0.0.1:1", true}, {"127.9.9.9:1", true},     {"0.0.0.0:1", false},
                 {"10.0.0.1:1", false}, {"[::1]:1", true},         {"[::]:1", false},
                 {"unix:/x", true},     {"[2001:db8::1]:1", false}};

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct listen_address address;
        const char *reason = NULL;

        assert_int_equal(listen_address_parse(cases[i].text, &address, &reason), 0);
        assert_int_equal(address.is_local, cases[i].is_local);
    }
}

/* The address that a socket of this family is bound to by itself. */
static struct listen_address bound(int family)
{
    struct listen_address address;
    const struct sockaddr_un un = {.sun_family = AF_UNIX};
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (family == AF_UNIX) { /* an abstract name that the kernel chooses */
        assert_int_equal(bind(fd, (const struct sockaddr *)&un, sizeof(un.sun_family)), 0);
    }
    assert_int_equal(listen_address_of_socket(fd, &address), 0);
    close(fd);
    return address;
}

static void an_open_socket_tells_its_address(void **unused)
{
    (void)unused;
    const struct listen_address v4 = bound(AF_INET);
    const struct listen_address abstract = bound(AF_UNIX);

    assert_string_equal(listen_address_show(&v4).text, "0.0.0.0:0");
    assert_false(v4.is_local);
    assert_memory_equal(listen_address_show(&abstract).text, "unix:@", 6);
    assert_int_equal(strlen(listen_address_show(&abstract).text), 11);
    assert_true(abstract.is_local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_shown_the_same),
        cmocka_unit_test(local_is_what_no_other_machine_reaches),
        cmocka_unit_test(an_open_socket_tells_its_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
