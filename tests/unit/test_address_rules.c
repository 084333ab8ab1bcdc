/* Address ranges: denied before allowed, IPv4 in every form, malformed ranges named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/settings.h"
#include "worker/address_rules.h"

static const char *const default_deny[] = {"169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128"};

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

static void link_local_and_metadata_addresses_are_denied_by_default(void **state)
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
    struct address_rules *rules = rules_of(NULL, 0, default_deny, 3);

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
        cmocka_unit_test(link_local_and_metadata_addresses_are_denied_by_default),
        cmocka_unit_test(with_allowed_ranges_only_those_are_permitted),
        cmocka_unit_test(malformed_ranges_are_named),
    };

    return cmocka_run_group_tests_name("address rules", tests, NULL, NULL);
}
