/* The guard of a request, on real connections: asked when the connection is there, and nothing is
 * written once it has said no. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <uv.h>

#include "common/base/settings.h"
#include "tests/store/support/http_target.h"
#include "worker/address_rules.h"
#include "worker/transfer.h"

struct attempt {
    bool may_start; /* what the guard says */
    unsigned asked, started, done;
    struct transfer_result result;
};

static uv_loop_t loop;
static struct transfers *transfers;
static struct http_target *target;

static bool may_start(void *arg)
{
    struct attempt *attempt = arg;

    attempt->asked++;
    return attempt->may_start;
}

static void started(void *arg)
{
    ((struct attempt *)arg)->started++;
}

static void on_done(const struct transfer_result *result, void *arg)
{
    struct attempt *attempt = arg;

    attempt->done++;
    attempt->result = *result;
}

static struct attempt post(const char *key, bool allowed)
{
    struct attempt attempt = {.may_start = allowed};
    char url[64], header[64];
    const struct transfer_request request = {
        .method = "POST",
        .url = url,
        .headers = {header},
        .header_count = 1,
        .body = {"{}", 2},
        .timeout_ms = 20000,
        .may_start = may_start,
    };

    snprintf(url, sizeof(url), "http://127.0.0.1:%d/notes", http_target_port(target));
    snprintf(header, sizeof(header), "Idempotency-Key: %s", key);
    assert_int_equal(transfer_start(transfers, &request, started, on_done, &attempt), 0);
    while (attempt.done == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    return attempt;
}

static void check_refused(const char *key)
{
    const struct attempt attempt = post(key, false);

    assert_int_equal(attempt.asked, 1);
    assert_int_equal(attempt.started, 0);
    assert_true(attempt.result.is_too_late);
    assert_false(attempt.result.is_started);
    assert_int_equal(attempt.result.status, 0);
    assert_int_equal(http_target_posts(target, key), 0);
}

static void what_its_guard_refuses_is_not_started_on_a_new_connection_or_a_used_one(void **state)
{
    (void)state;
    check_refused("k1");
    const struct attempt attempt = post("k2", true);

    assert_int_equal(attempt.asked, 1);
    assert_int_equal(attempt.started, 1);
    assert_false(attempt.result.is_too_late);
    assert_true(attempt.result.is_started);
    assert_int_equal(attempt.result.status, 200);
    assert_int_equal(http_target_posts(target, "k2"), 1);
    check_refused("k3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_its_guard_refuses_is_not_started_on_a_new_connection_or_a_used_one),
    };
    const struct transfer_limits limits = {
        .connect_timeout_ms = 10000, .max_response_bytes = 65536, .max_connections = 4};
    const struct text_list none = {0};
    struct address_rules *rules;
    const char *bad;

    uv_loop_init(&loop);
    target = http_target_start();
    if (address_rules_create(&none, &none, &rules, &bad) < 0 ||
        transfers_create(&loop, &limits, rules, &transfers) < 0) {
        return 1;
    }
    const int failed = cmocka_run_group_tests_name("transfer", tests, NULL, NULL);

    transfers_destroy(&transfers);
    address_rules_destroy(&rules);
    uv_run(&loop, UV_RUN_DEFAULT);
    http_target_stop(&target);
    return failed + (uv_loop_close(&loop) < 0);
}
