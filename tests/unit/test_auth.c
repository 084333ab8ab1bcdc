/* Who may do what: every route with every role, and what a header of a request is worth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "api/auth.h"
#include "common/core/buf.h"

/* Whose routes they are, and each stands in one of these lists only. */
static const enum route_id open_routes[] = {ROUTE_HEALTHZ, ROUTE_READYZ, ROUTE_DASHBOARD,
                                            ROUTE_DASHBOARD_FILE};
static const enum route_id client_routes[] = {
    ROUTE_ACCEPT,         ROUTE_ACCEPT_LANE,      ROUTE_LIST,     ROUTE_GET,
    ROUTE_EVENTS_SESSION, ROUTE_EVENTS_WORKSPACE, ROUTE_EVENTS,   ROUTE_WORKSPACES,
    ROUTE_WORKSPACE,      ROUTE_METRICS,          ROUTE_SESSIONS, ROUTE_BATCH,
};
static const enum route_id operator_routes[] = {
    ROUTE_RETRY,  ROUTE_REMOVE, ROUTE_EDIT,   ROUTE_CONFIRM, ROUTE_PARK,
    ROUTE_UNPARK, ROUTE_PAUSE,  ROUTE_RESUME, ROUTE_SWEEP,   ROUTE_TARGET_GET,
};
static const enum route_id admin_routes[] = {ROUTE_CLEANUP, ROUTE_TARGET_SET, ROUTE_TARGET_DELETE};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool stands_in(const enum route_id *list, size_t count, enum route_id route)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == route) {
            return true;
        }
    }
    return false;
}

/* 0: open, 1 + role; fails for a route that stands in no list: decide who may ask. */
static unsigned level_of(enum route_id route)
{
    const bool in[] = {
        stands_in(open_routes, COUNT(open_routes), route),
        stands_in(client_routes, COUNT(client_routes), route),
        stands_in(operator_routes, COUNT(operator_routes), route),
        stands_in(admin_routes, COUNT(admin_routes), route),
    };
    unsigned level = COUNT(in);

    for (unsigned i = 0; i < COUNT(in); i++) {
        if (in[i]) {
            assert_int_equal(level, COUNT(in));
            level = i;
        }
    }
    if (level == COUNT(in)) {
        fail_msg("%s: in no list", route_labels[route]);
    }
    return level;
}

static struct token_table *table;

/* One token of each role, called client, operator and admin, for workspaces a and b-*. */
static int make_table(void **state)
{
    struct buf text, mistakes;

    (void)state;
    if (sodium_init() < 0) {
        return -1;
    }
    buf_init(&text, 4096);
    buf_init(&mistakes, 4096);
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        unsigned char hash[TOKEN_HASH_BYTES];

        token_hash(span_of(access_role_name((enum access_role)role)), hash);
        (void)token_line_write(hash, (enum access_role)role, span_of("a,b-*"), span_of("x"), &text);
    }
    const int err = token_table_parse("t", (struct span){text.bytes, text.len}, &table, &mistakes);
    buf_done(&text);
    buf_done(&mistakes);
    return err;
}

static int destroy_table(void **state)
{
    (void)state;
    token_table_destroy(&table);
    return 0;
}

static enum problem_id judge(const char *authorization, enum route_id route, const char *workspace)
{
    const struct auth_headers headers = {.count = authorization ? 1 : 0,
                                         .authorization = span_of(authorization)};
    const struct access_token *caller;

    return auth_judge(table, &headers, route,
                      route_has_workspace(route) ? span_of(workspace) : (struct span){0}, &caller);
}

static void every_route_takes_its_roles_and_no_others(void **state)
{
    static const char *const bearers[] = {"Bearer client", "Bearer operator", "Bearer admin"};

    (void)state;
    for (unsigned route = 0; route < ROUTE_COUNT; route++) {
        const unsigned level = level_of((enum route_id)route);

        for (unsigned role = 0; role < ROLE_COUNT; role++) {
            const enum problem_id problem = judge(bearers[role], (enum route_id)route, "b-1");

            if (problem != (role + 1 >= level ? PROBLEM_NONE : PROBLEM_FORBIDDEN)) {
                fail_msg("%s with %s: %d", route_labels[route], bearers[role], (int)problem);
            }
        }
    }
}

static void nobody_touches_other_workspaces_whatever_the_role(void **state)
{
    static const char *const others[] = {"b", "B-1", "aa", "c", "a%20", "*", "b_1", "%61"};

    (void)state;
    for (unsigned route = 0; route < ROUTE_COUNT; route++) {
        for (size_t i = 0; route_has_workspace((enum route_id)route) && i < COUNT(others); i++) {
            if (judge("Bearer admin", (enum route_id)route, others[i]) != PROBLEM_FORBIDDEN) {
                fail_msg("%s of %s", route_labels[route], others[i]);
            }
        }
    }
}

static void without_a_token_only_open_routes_answer(void **state)
{
    (void)state;
    for (unsigned route = 0; route < ROUTE_COUNT; route++) {
        const bool is_open = level_of((enum route_id)route) == 0;

        assert_int_equal(judge(NULL, (enum route_id)route, "a"),
                         is_open ? PROBLEM_NONE : PROBLEM_TOKEN_MISSING);
        assert_int_equal(judge("Bearer wrong", (enum route_id)route, "a"),
                         is_open ? PROBLEM_NONE : PROBLEM_TOKEN_INVALID);
    }
    assert_int_equal(judge(NULL, ROUTE_NONE, ""), PROBLEM_TOKEN_MISSING);
    assert_int_equal(judge("Bearer client", ROUTE_NONE, ""), PROBLEM_NONE);
}

static void a_header_is_read_as_the_rfc_says(void **state)
{
    static const struct {
        const char *header;
        enum problem_id problem;
    } rows[] = {
        {"Bearer client", PROBLEM_NONE},
        {"bearer client", PROBLEM_NONE},
        {"BEARER \t client \t", PROBLEM_NONE},
        {"Bearer", PROBLEM_INVALID_AUTHORIZATION},
        {"Bearer   ", PROBLEM_INVALID_AUTHORIZATION},
        {"", PROBLEM_TOKEN_MISSING},
        {"client", PROBLEM_TOKEN_MISSING},
        {"Bearerclient", PROBLEM_TOKEN_MISSING},
        {"Basic Y2xpZW50", PROBLEM_TOKEN_MISSING},
        {"Bearer Client", PROBLEM_TOKEN_INVALID},
        {"Bearer client admin", PROBLEM_TOKEN_INVALID},
        {"Bearer client, Bearer admin", PROBLEM_TOKEN_INVALID},
        {"Bearer \"client\"", PROBLEM_TOKEN_INVALID},
        {"Bearer client\n", PROBLEM_TOKEN_INVALID},
        {"Bearer cl%69ent", PROBLEM_TOKEN_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (judge(rows[i].header, ROUTE_ACCEPT, "a") != rows[i].problem) {
            fail_msg("'%s'", rows[i].header);
        }
    }
}

static void two_headers_are_none(void **state)
{
    const struct auth_headers headers = {.count = 2, .authorization = span_of("Bearer admin")};
    const struct access_token *caller = NULL;

    (void)state;
    assert_int_equal(auth_judge(table, &headers, ROUTE_ACCEPT, span_of("a"), &caller),
                     PROBLEM_INVALID_AUTHORIZATION);
    assert_null(caller);
}

static void the_caller_is_known_where_it_may_go_on(void **state)
{
    const struct auth_headers headers = {.count = 1, .authorization = span_of("Bearer operator")};
    const struct access_token *caller = NULL;

    (void)state;
    assert_int_equal(auth_judge(table, &headers, ROUTE_READYZ, span_of(""), &caller), PROBLEM_NONE);
    assert_int_equal(caller->role, ROLE_OPERATOR);
    assert_int_equal(auth_judge(table, &headers, ROUTE_CLEANUP, span_of("a"), &caller),
                     PROBLEM_FORBIDDEN);
    assert_null(caller);
    assert_int_equal(auth_judge(NULL, &headers, ROUTE_CLEANUP, span_of("a"), &caller),
                     PROBLEM_NONE);
    assert_null(caller);
}

static void each_refusal_has_its_challenge(void **state)
{
    (void)state;
    assert_string_equal(auth_challenge(PROBLEM_TOKEN_MISSING), "Bearer realm=\"outboxd\"");
    assert_non_null(strstr(auth_challenge(PROBLEM_TOKEN_INVALID), "error=\"invalid_token\""));
    assert_non_null(
        strstr(auth_challenge(PROBLEM_INVALID_AUTHORIZATION), "error=\"invalid_request\""));
    assert_non_null(strstr(auth_challenge(PROBLEM_FORBIDDEN), "error=\"insufficient_scope\""));
    assert_null(auth_challenge(PROBLEM_NOT_FOUND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_takes_its_roles_and_no_others),
        cmocka_unit_test(nobody_touches_other_workspaces_whatever_the_role),
        cmocka_unit_test(without_a_token_only_open_routes_answer),
        cmocka_unit_test(a_header_is_read_as_the_rfc_says),
        cmocka_unit_test(two_headers_are_none),
        cmocka_unit_test(the_caller_is_known_where_it_may_go_on),
        cmocka_unit_test(each_refusal_has_its_challenge),
    };

    return cmocka_run_group_tests_name("auth", tests, make_table, destroy_table);
}
