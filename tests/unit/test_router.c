/* Paths and methods: every route finds itself, neighbours are told what they may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/router.h"

static void paths_lead_to_their_routes(void **state)
{
    static const struct {
        enum http_method method;
        const char *path;
        enum route_id route;
    } rows[] = {
        {HTTP_POST, "/v1/workspaces/w/sessions/s/entries", ROUTE_ACCEPT},
        {HTTP_GET, "/v1/workspaces/w/sessions/s/entries", ROUTE_LIST},
        {HTTP_POST, "/v1/workspaces/w/entries", ROUTE_ACCEPT_LANE},
        {HTTP_POST, "/v1/batch", ROUTE_BATCH},
        {HTTP_GET, "/v1/workspaces/w/entries/ob_1", ROUTE_GET},
        {HTTP_DELETE, "/v1/workspaces/w/entries/ob_1", ROUTE_REMOVE},
        {HTTP_POST, "/v1/workspaces/w/entries/ob_1/retry", ROUTE_RETRY},
        {HTTP_GET, "/v1/workspaces/w/sessions", ROUTE_SESSIONS},
        {HTTP_GET, "/v1/workspaces/w/sessions/s/events", ROUTE_EVENTS_SESSION},
        {HTTP_GET, "/v1/workspaces/w/events", ROUTE_EVENTS_WORKSPACE},
        {HTTP_GET, "/v1/events", ROUTE_EVENTS},
        {HTTP_GET, "/metrics", ROUTE_METRICS},
        {HTTP_GET, "/healthz", ROUTE_HEALTHZ},
        {HTTP_GET, "/readyz", ROUTE_READYZ},
        {HTTP_GET, "/nothing", ROUTE_NONE},
        {HTTP_GET, "", ROUTE_NONE},
        {HTTP_GET, "/v1/workspaces/w/sessions/s/entries/", ROUTE_NONE},
        {HTTP_GET, "/v1/workspaces/w/sessions/s/entries/x", ROUTE_NONE},
        {HTTP_POST, "/v1/workspaces//entries", ROUTE_NONE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (route_find(rows[i].method, span_of(rows[i].path)).route != rows[i].route) {
            fail_msg("%s", rows[i].path);
        }
    }
}

static void names_are_taken_as_they_stand(void **state)
{
    const struct route_match match =
        route_find(HTTP_GET, span_of("/v1/workspaces/w%2F/sessions/a:b~/entries"));

    (void)state;
    assert_true(span_equal(match.params.workspace, span_of("w%2F")));
    assert_true(span_equal(match.params.session, span_of("a:b~")));
}

static void a_known_path_says_which_methods_it_takes(void **state)
{
    const struct route_match match =
        route_find(HTTP_OTHER, span_of("/v1/workspaces/w/entries/ob_1"));

    (void)state;
    assert_int_equal(match.route, ROUTE_NONE);
    assert_int_equal(match.allowed, 1U << HTTP_GET | 1U << HTTP_PATCH | 1U << HTTP_DELETE);
    assert_int_equal(route_find(HTTP_GET, span_of("/nothing")).allowed, 0);
    assert_int_equal(http_method_of("GET"), HTTP_GET);
    assert_int_equal(http_method_of("get"), HTTP_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_their_routes),
        cmocka_unit_test(names_are_taken_as_they_stand),
        cmocka_unit_test(a_known_path_says_which_methods_it_takes),
    };

    return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
