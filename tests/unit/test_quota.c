/* The dynamic threshold: closed form against the rule it stands for, and what it promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/quota.h"

/* The rule itself: take one place at a time while no more are held than are free. */
static uint32_t one_by_one(uint32_t own, uint32_t free_places)
{
    uint32_t taken = 0;

    while (free_places > 0 && own <= free_places) {
        own++;
        free_places--;
        taken++;
    }
    return taken;
}

static void it_is_the_rule_in_closed_form(void **state)
{
    (void)state;
    for (uint32_t own = 0; own < 200; own++) {
        for (uint32_t free_places = 0; free_places < 200; free_places++) {
            assert_int_equal(quota_for(own, free_places), one_by_one(own, free_places));
        }
    }
}

static void one_workspace_alone_leaves_room_for_another(void **state)
{
    uint32_t own = 0;
    uint32_t free_places = 512;

    (void)state;
    for (uint32_t more; (more = quota_for(own, free_places)) > 0;) {
        own += more;
        free_places -= more;
    }
    assert_true(free_places >= 255);
    assert_true(quota_for(0, free_places) > 0);
}

static void a_workspace_that_holds_nothing_gets_a_place_while_one_is_free(void **state)
{
    (void)state;
    assert_int_equal(quota_for(0, 1), 1);
    assert_int_equal(quota_for(0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_rule_in_closed_form),
        cmocka_unit_test(one_workspace_alone_leaves_room_for_another),
        cmocka_unit_test(a_workspace_that_holds_nothing_gets_a_place_while_one_is_free),
    };

    return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
