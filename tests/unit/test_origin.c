/* Which web pages may call where no token is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/origin.h"
#include "common/base/settings.h"

static char first[] = "https://app.example.org", second[] = "http://other.example:8080";
static char *items[] = {first, second};
static const struct text_list none = {0}, two = {items, 2};

struct row {
    const char *origin, *host;
    enum problem_id problem;
};

static void expect(const struct text_list *listed, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (origin_judge(listed, span_of(rows[i].origin), span_of(rows[i].host)) !=
            rows[i].problem) {
            fail_msg("origin %s, host %s", rows[i].origin ? rows[i].origin : "(none)",
                     rows[i].host ? rows[i].host : "(none)");
        }
    }
}

static void programs_come_under_addresses_and_localhost(void **state)
{
    static const struct row rows[] = {
        {NULL, "127.0.0.1:7780", PROBLEM_NONE},
        {NULL, "127.0.0.1", PROBLEM_NONE},
        {NULL, "[::1]:7780", PROBLEM_NONE},
        {NULL, "[::1]", PROBLEM_NONE},
        {NULL, "localhost:7780", PROBLEM_NONE},
        {NULL, "LOCALHOST", PROBLEM_NONE},
        {NULL, "outboxd.localhost:1", PROBLEM_NONE},
        {NULL, "10.1.2.3:80", PROBLEM_NONE},
        {NULL, NULL, PROBLEM_NONE}, /* HTTP/1.0 */
    };

    (void)state;
    expect(&none, rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_name_of_a_strangers_is_not_ours(void **state)
{
    static const struct row rows[] = {
        {NULL, "evil.example:7780", PROBLEM_FOREIGN_HOST},
        {"http://evil.example:7780", "evil.example:7780", PROBLEM_FOREIGN_HOST},
        {NULL, "notlocalhost", PROBLEM_FOREIGN_HOST},
        {NULL, "localhost.evil.example", PROBLEM_FOREIGN_HOST},
        {NULL, "127.0.0.1.evil.example", PROBLEM_FOREIGN_HOST},
        {NULL, "127.0.0.1 evil", PROBLEM_FOREIGN_HOST},
        {NULL, "[::1", PROBLEM_FOREIGN_HOST},
        {NULL, "", PROBLEM_FOREIGN_HOST},
        {NULL, ":80", PROBLEM_FOREIGN_HOST},
    };

    (void)state;
    expect(&none, rows, sizeof(rows) / sizeof(rows[0]));
}

static void pages_of_other_sites_are_kept_out(void **state)
{
    static const struct row rows[] = {
        {"http://127.0.0.1:7780", "127.0.0.1:7780", PROBLEM_NONE}, /* our own page */
        {"http://localhost:7780", "localhost:7780", PROBLEM_NONE},
        {"https://localhost:7780", "LOCALHOST:7780", PROBLEM_NONE}, /* behind a proxy with TLS */
        {"http://evil.example", "127.0.0.1:7780", PROBLEM_FOREIGN_ORIGIN},
        {"http://localhost:8080", "localhost:7780", PROBLEM_FOREIGN_ORIGIN},
        {"http://localhost", "localhost:7780", PROBLEM_FOREIGN_ORIGIN},
        {"null", "localhost:7780", PROBLEM_FOREIGN_ORIGIN},
        {"", "localhost:7780", PROBLEM_FOREIGN_ORIGIN},
        {"http://", "localhost:7780", PROBLEM_FOREIGN_ORIGIN},
        {"https://app.example.org", "localhost:7780", PROBLEM_FOREIGN_ORIGIN},
        {"http://localhost:7780", NULL, PROBLEM_FOREIGN_ORIGIN},
    };

    (void)state;
    expect(&none, rows, sizeof(rows) / sizeof(rows[0]));
}

static void listed_origins_come_in_exactly(void **state)
{
    static const struct row rows[] = {
        {"https://app.example.org", "localhost:7780", PROBLEM_NONE},
        {"http://other.example:8080", "127.0.0.1", PROBLEM_NONE},
        {"http://app.example.org", "localhost", PROBLEM_FOREIGN_ORIGIN},
        {"https://app.example.org:443", "localhost", PROBLEM_FOREIGN_ORIGIN},
        {"https://app.example.org.evil", "localhost", PROBLEM_FOREIGN_ORIGIN},
        {"https://APP.example.org", "localhost", PROBLEM_FOREIGN_ORIGIN},
        {NULL, "app.example.org", PROBLEM_NONE}, /* a proxy passes its own name on */
        {NULL, "other.example:8080", PROBLEM_NONE},
        {NULL, "other.example", PROBLEM_FOREIGN_HOST},
    };

    (void)state;
    expect(&two, rows, sizeof(rows) / sizeof(rows[0]));
    assert_true(origin_is_listed(&two, span_of("https://app.example.org")));
    assert_false(origin_is_listed(&two, span_of("https://app.example.or")));
    assert_false(origin_is_listed(&two, span_of("*")));
    assert_false(origin_is_listed(&two, (struct span){0}));
    assert_false(origin_is_listed(&none, span_of("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_come_under_addresses_and_localhost),
        cmocka_unit_test(a_name_of_a_strangers_is_not_ours),
        cmocka_unit_test(pages_of_other_sites_are_kept_out),
        cmocka_unit_test(listed_origins_come_in_exactly),
    };

    return cmocka_run_group_tests_name("origin", tests, NULL, NULL);
}
