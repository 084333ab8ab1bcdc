/* Address ranges: denied before allowed, IPv4 in every form, malformed ranges named. That the
 * defaults of targets.deny are such ranges is test_settings.c's. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/settings.h"
#include "worker/address_rules.h"

static const char *const some_deny[] = {"169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128"};

static struct address_rules *rules_of(const char *const *allow, size_t allow_count,
                                      const char *const *deny, size_t deny_count)
{
    const struct text_list allowed = {(char **)(uintptr_t)allow, allow_count};
    const struct text_list denied = {(char **)(uintptr_t)deny, deny_count};
    struct address_rules *rules = NULL;
    const char *bad = NULL;

    assert_int_equal(address_rules_create(&allowed, &denied, &rules, &bad), 0);
    return rules;
}

static void denied_ranges_hold_link_local_and_metadata_addresses(void **state)
{
    static const struct {
        const char *address;
        bool permitted;
    } rows[] = {
        {"127.0.0.1", true},
        {"10.1.2.3", true},
        {"::1", true},
        {"169.254.169.254", false},
        {"169.253.1.1", true},
        {"::ffff:169.254.169.254", false},
        {"fe80::1", false},
        {"febf::1", false},
        {"fec0::1", true},
        {"fe80::1%eth0", false},
        {"fd00:ec2::254", false},
        {"fd00:ec2::253", true},
        {"", false},
        {"somewhere", false},
        {"/run/socket", false},
    };
    struct address_rules *rules = rules_of(NULL, 0, some_deny, 3);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (address_rules_permit(rules, rows[i].address) != rows[i].permitted) {
            fail_msg("%s", rows[i].address);
        }
    }
    address_rules_destroy(&rules);
}

static void with_allowed_ranges_only_those_are_permitted(void **state)
{
    static const char *const allow[] = {"10.0.0.0/8", "192.0.2.7"};
    static const char *const deny[] = {"10.9.0.0/16"};
    struct address_rules *rules = rules_of(allow, 2, deny, 1);

    (void)state;
    assert_true(address_rules_permit(rules, "10.1.1.1"));
    assert_true(address_rules_permit(rules, "192.0.2.7"));
    assert_false(address_rules_permit(rules, "10.9.1.1"));
    assert_false(address_rules_permit(rules, "127.0.0.1"));
    assert_false(address_rules_permit(rules, "::1"));
    address_rules_destroy(&rules);
}

/* Denied: 169.254.0.0/16 and 10.0.0.0/8, as IPv4 only. */
static void an_ipv6_address_that_leads_to_a_denied_ipv4_address_is_denied(void **state)
{
    static const char *const deny[] = {"169.254.0.0/16", "10.0.0.0/8"};
    static const struct {
        const char *address;
        bool permitted;
    } rows[] = {
        {"::ffff:10.0.0.1", false},
        {"::10.0.0.1", false},
        {"::ffff:0:10.0.0.1", false},
        {"64:ff9b::169.254.169.254", false},
        {"64:ff9b::a9fe:a9fe", false},
        {"64:ff9b::192.0.2.1", true},
        {"64:ff9b:1:a00:0:100::", false},
        {"64:ff9b:1:ffff::10.0.0.1", false},
        {"64:ff9b:1::192.0.2.1", true},
        {"64:ff9b:2::10.0.0.1", true},
        {"2002:a00:1::1", false},
        {"2002:a9fe:a9fe::", false},
        {"2002:c000:201::1", true},
        {"2001:0:1:2:3:4:f5ff:fffe", false},
        {"2001:0:1:2:3:4:3fff:fdfe", true},
        {"2001:1:1:2:3:4:f5ff:fffe", true},
        {"::1", true},
        {"2001:db8::10.0.0.1", true},
    };
    struct address_rules *rules = rules_of(NULL, 0, deny, 2);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (address_rules_permit(rules, rows[i].address) != rows[i].permitted) {
            fail_msg("%s", rows[i].address);
        }
    }
    address_rules_destroy(&rules);
}

static void the_unspecified_address_is_never_permitted(void **state)
{
    static const char *const all[] = {"0.0.0.0/0", "::/0"};
    static const char *const unspecified[] = {"0.0.0.0", "::", "::ffff:0.0.0.0", "::%eth0"};
    struct address_rules *any = rules_of(NULL, 0, NULL, 0);
    struct address_rules *allowed = rules_of(all, 2, NULL, 0);

    (void)state;
    for (size_t i = 0; i < sizeof(unspecified) / sizeof(unspecified[0]); i++) {
        assert_false(address_rules_permit(any, unspecified[i]));
        assert_false(address_rules_permit(allowed, unspecified[i]));
    }
    assert_true(address_rules_permit(allowed, "::1"));
    assert_true(address_rules_permit(allowed, "0.0.0.1"));
    address_rules_destroy(&any);
    address_rules_destroy(&allowed);
}

/* Otherwise an allowed range would let everything in that a translator can reach. */
static void being_allowed_takes_the_addresss_own_range(void **state)
{
    static const char *const allow[] = {"10.0.0.0/8"};
    struct address_rules *rules = rules_of(allow, 1, NULL, 0);

    (void)state;
    assert_true(address_rules_permit(rules, "::ffff:10.0.0.1"));
    assert_false(address_rules_permit(rules, "64:ff9b::10.0.0.1"));
    assert_false(address_rules_permit(rules, "2002:a00:1::"));
    address_rules_destroy(&rules);
}

static void a_sockets_address_is_judged_as_its_text_is(void **state)
{
    static const char *const deny[] = {"10.0.0.0/8", "fe80::/10"};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr other = {.sa_family = AF_UNIX};
    struct address_rules *rules = rules_of(NULL, 0, deny, 2);

    (void)state;
    v4.sin_addr.s_addr = htonl(0x0a000001);
    assert_false(address_rules_permit_socket(rules, (struct sockaddr *)&v4));
    v4.sin_addr.s_addr = htonl(0x0b000001);
    assert_true(address_rules_permit_socket(rules, (struct sockaddr *)&v4));
    assert_int_equal(inet_pton(AF_INET6, "fe80::1", &v6.sin6_addr), 1);
    assert_false(address_rules_permit_socket(rules, (struct sockaddr *)&v6));
    assert_int_equal(inet_pton(AF_INET6, "64:ff9b::10.1.1.1", &v6.sin6_addr), 1);
    assert_false(address_rules_permit_socket(rules, (struct sockaddr *)&v6));
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr), 1);
    assert_true(address_rules_permit_socket(rules, (struct sockaddr *)&v6));
    assert_false(address_rules_permit_socket(rules, &other));
    address_rules_destroy(&rules);
}

static void malformed_ranges_are_named(void **state)
{
    static const char *const bad_ones[] = {"10.0.0.0/33", "10.0.0/8", "::/129",     "host",      "",
                                           "/8",          "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/8x"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad_ones) / sizeof(bad_ones[0]); i++) {
        char *item = (char *)(uintptr_t)bad_ones[i];
        const struct text_list none = {NULL, 0};
        const struct text_list list = {&item, 1};
        struct address_rules *rules = NULL;
        const char *bad = NULL;

        if (address_rules_create(&none, &list, &rules, &bad) != -EINVAL || bad != bad_ones[i]) {
            fail_msg("%s", bad_ones[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(denied_ranges_hold_link_local_and_metadata_addresses),
        cmocka_unit_test(with_allowed_ranges_only_those_are_permitted),
        cmocka_unit_test(an_ipv6_address_that_leads_to_a_denied_ipv4_address_is_denied),
        cmocka_unit_test(the_unspecified_address_is_never_permitted),
        cmocka_unit_test(being_allowed_takes_the_addresss_own_range),
        cmocka_unit_test(a_sockets_address_is_judged_as_its_text_is),
        cmocka_unit_test(malformed_ranges_are_named),
    };

    return cmocka_run_group_tests_name("address rules", tests, NULL, NULL);
}
