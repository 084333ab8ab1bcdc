/* The token file: good lines, every mistake with its line, and the look-up. Patterns of workspaces.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "common/access/token_table.h"
#include "common/access/workspace_pattern.h"
#include "common/core/buf.h"

/* SHA-256 of "test": of a token, too. */
#define HASH "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define OTHER_HASH                                                                                 \
    "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752" /* test2 */

static struct token_table *read_good(const char *text)
{
    struct token_table *table = NULL;
    struct buf mistakes;

    buf_init(&mistakes, 4096);
    if (token_table_parse("t", span_of(text), &table, &mistakes) < 0) {
        print_error("%s", mistakes.bytes ? mistakes.bytes : "");
        fail();
    }
    assert_int_equal(mistakes.len, 0);
    buf_done(&mistakes);
    return table;
}

static void expect_mistake_bytes(const char *text, size_t len, const char *line)
{
    struct token_table *table = NULL;
    struct buf mistakes;

    buf_init(&mistakes, 100000);
    assert_int_equal(token_table_parse("t", (struct span){text, len}, &table, &mistakes), -EINVAL);
    assert_null(table);
    if (!mistakes.bytes || !strstr(mistakes.bytes, line)) {
        fail_msg("expected: %s\ngot: %s", line, mistakes.bytes ? mistakes.bytes : "");
    }
    buf_done(&mistakes);
}

static void expect_mistake(const char *text, const char *line)
{
    expect_mistake_bytes(text, strlen(text), line);
}

static void a_line_is_a_hash_a_role_workspaces_and_a_name(void **state)
{
    struct token_table *table =
        read_good("# who may call\n\n"
                  "  " HASH "  client\tteam-*,home   the billing service \r\n"
                  "\t# and\n" OTHER_HASH " admin *");
    const struct access_token *first = token_table_get(table, 0);

    (void)state;
    assert_int_equal(token_table_count(table), 2);
    assert_int_equal(first->role, ROLE_CLIENT);
    assert_int_equal(first->line, 3);
    assert_true(span_equal(first->workspaces, span_of("team-*,home")));
    assert_true(span_equal(first->name, span_of("the billing service")));
    assert_int_equal(token_table_get(table, 1)->role, ROLE_ADMIN);
    assert_int_equal(token_table_get(table, 1)->name.len, 0);
    assert_null(token_table_get(table, 2));
    token_table_destroy(&table);
}

static void a_token_is_found_by_what_it_is_and_by_nothing_else(void **state)
{
    struct token_table *table = read_good(HASH " client a\n" OTHER_HASH " admin *");
    static const char *const unknown[] = {"",      "tes",         "test ", " test", "Test",
                                          "test3", "test\ntest2", HASH,    "*"};
    char longest[TOKEN_LEN_MAX + 2];

    (void)state;
    assert_ptr_equal(token_table_find(table, span_of("test")), token_table_get(table, 0));
    assert_ptr_equal(token_table_find(table, span_of("test2")), token_table_get(table, 1));
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_null(token_table_find(table, span_of(unknown[i])));
    }
    assert_null(token_table_find(table, (struct span){"test\0", 5}));
    assert_null(token_table_find(table, (struct span){"\0test", 5}));
    memset(longest, 'x', sizeof(longest));
    assert_null(token_table_find(table, (struct span){longest, sizeof(longest)}));
    token_table_destroy(&table);
}

static void an_empty_file_lets_nobody_in(void **state)
{
    static const char *const files[] = {"", "\n\n", "# nothing yet\n", "   \t\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct token_table *table = read_good(files[i]);

        assert_int_equal(token_table_count(table), 0);
        assert_null(token_table_find(table, span_of("test")));
        assert_null(token_table_find(table, span_of("")));
        token_table_destroy(&table);
    }
}

static void each_mistake_has_its_line(void **state)
{
    static const struct {
        const char *text, *line;
    } rows[] = {
        {"hello", "t:1: does not begin with a hash"},
        {"\n\nsha256: client a", "t:3: does not begin with a hash"},
        {"sha256:abcd client a", "t:1: does not begin with a hash"},
        {HASH "0 client a", "t:1: does not begin with a hash"},
        {HASH "x client a", "t:1: does not begin with a hash"},
        {"SHA256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 client a",
         "t:1: does not begin with a hash"},
        {"obx_abcdefgh client a", "t:1: holds a token itself, not its hash"},
        {HASH, "t:1: the second word is none of client, operator, admin"},
        {HASH " root a", "t:1: the second word is none of"},
        {HASH " Client a", "t:1: the second word is none of"},
        {HASH " client", "t:1: the third word names no workspaces"},
        {HASH " client a,,b", "t:1: the third word has a pattern"},
        {HASH " client ,a", "t:1: the third word has a pattern"},
        {HASH " client a,", "t:1: the third word ends with a comma"},
        {HASH " client a/b", "t:1: the third word has a pattern"},
        {HASH " client [ab]", "t:1: the third word has a pattern"},
        {HASH " client a,@none", "t:1: the third word has a pattern"},
        {HASH " client a\n" HASH " admin *", "t:2: is the token of line 1"},
        {HASH " client a caf\xe9", "t:1: holds bytes that are no text"},
    };
    char *longest = malloc(TOKEN_LINE_MAX + 200);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_mistake(rows[i].text, rows[i].line);
    }
    expect_mistake_bytes(HASH " client a x\0y", sizeof(HASH " client a x\0y") - 1,
                         "t:1: holds bytes that are no text");
    assert_non_null(longest);
    (void)snprintf(longest, TOKEN_LINE_MAX + 200, HASH " client a %0*d", TOKEN_LINE_MAX, 1);
    expect_mistake(longest, "t:1: is longer than 4096 bytes");
    free(longest);
}

static void all_mistakes_are_told_at_once_and_no_token_is_shown(void **state)
{
    struct token_table *table = NULL;
    struct buf mistakes;

    (void)state;
    buf_init(&mistakes, 4096);
    assert_int_equal(token_table_parse("t",
                                       span_of("obx_verysecret client a\nverysecret client a\n" HASH
                                               " verysecret a\n"),
                                       &table, &mistakes),
                     -EINVAL);
    assert_non_null(strstr(mistakes.bytes, "t:1: "));
    assert_non_null(strstr(mistakes.bytes, "t:2: "));
    assert_non_null(strstr(mistakes.bytes, "t:3: "));
    assert_null(strstr(mistakes.bytes, "verysecret"));
    buf_done(&mistakes);
}

static void too_many_tokens_are_refused(void **state)
{
    struct buf text, mistakes;
    struct token_table *table = NULL;

    (void)state;
    buf_init(&text, TOKEN_FILE_MAX);
    buf_init(&mistakes, 4096);
    for (unsigned i = 0; i <= TOKEN_COUNT_MAX; i++) {
        (void)buf_appendf(&text, "sha256:%064x client a\n", i);
    }
    assert_false(text.failed);
    assert_int_equal(token_table_parse("t", (struct span){text.bytes, text.len}, &table, &mistakes),
                     -EINVAL);
    assert_string_equal(mistakes.bytes, "t:10001: one token too many: 10000 at most\n");
    buf_done(&mistakes);
    buf_done(&text);
}

static void a_written_line_reads_back(void **state)
{
    unsigned char hash[TOKEN_HASH_BYTES];
    char token[TOKEN_LEN + 1], again[TOKEN_LEN + 1];
    struct buf line;

    (void)state;
    token_draw(token);
    token_draw(again);
    assert_string_not_equal(token, again);
    assert_int_equal(strlen(token), TOKEN_LEN);
    assert_true(token_is_well_formed(span_of(token)));
    token_hash(span_of(token), hash);
    buf_init(&line, 8192);
    assert_true(token_line_write(hash, ROLE_OPERATOR, span_of("a,b-*"), span_of("é 1"), &line));
    assert_null(strstr(line.bytes, token));
    struct token_table *table = read_good(line.bytes);
    const struct access_token *found = token_table_find(table, span_of(token));

    assert_non_null(found);
    assert_int_equal(found->role, ROLE_OPERATOR);
    assert_true(span_equal(found->name, span_of("é 1")));
    token_table_destroy(&table);
    assert_false(token_line_write(hash, ROLE_CLIENT, span_of("a b"), span_of(""), &line));
    assert_false(token_line_write(hash, ROLE_CLIENT, span_of("a"), span_of("x\ny"), &line));
    buf_done(&line);
}

static void patterns_match_whole_names(void **state)
{
    static const struct {
        const char *patterns, *name;
        bool matches;
    } rows[] = {
        {"home", "home", true},
        {"home", "home2", false},
        {"home", "hom", false},
        {"home", "Home", false},
        {"*", "anything", true},
        {"team-*", "team-", true},
        {"team-*", "team-a-b", true},
        {"team-*", "team", false},
        {"team-*", "xteam-a", false},
        {"*-prod", "a-prod", true},
        {"*-prod", "a-prod-b", false},
        {"a*b*c", "a__b__b_c", true},
        {"a*b*c", "a__b__b_", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"??", "a", false},
        {"**", "a", true},
        {"a%2F*", "a%2Fb", true},
        {"a%2F*", "a/b", false},
        {"a/*", "a%2Fb", false},
        {"%*", "%2e", true},
        {"a,b", "b", true},
        {"a,b", "a,b", false},
        {"a,b*", "c", false},
        {"@none", "@none", false},
        {"@none", "none", false},
        {"", "", false},
        {"*", "", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (workspace_patterns_match(span_of(rows[i].patterns), span_of(rows[i].name)) !=
            rows[i].matches) {
            fail_msg("%s, %s", rows[i].patterns, rows[i].name);
        }
    }
}

/* With a matcher that tries every way, this would run for years. */
static void a_pattern_of_many_stars_takes_no_time(void **state)
{
    char pattern[WORKSPACE_PATTERN_MAX], name[64];

    (void)state;
    for (size_t i = 0; i < sizeof(pattern); i++) {
        pattern[i] = i % 2 ? '*' : 'a';
    }
    pattern[sizeof(pattern) - 1] = 'b';
    memset(name, 'a', sizeof(name));
    assert_false(workspace_pattern_matches((struct span){pattern, sizeof(pattern)},
                                           (struct span){name, sizeof(name)}));
}

static void what_all_patterns_begin_with(void **state)
{
    static const struct {
        const char *patterns, *prefix;
    } rows[] = {
        {"team-*", "team-"}, {"team-a*,team-b", "team-"},
        {"home", "home"},    {"*", ""},
        {"a*,*", ""},        {"ab,abc", "ab"},
        {"abc,ab", "ab"},    {"a?c", "a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct span prefix = workspace_patterns_prefix(span_of(rows[i].patterns));

        if (!span_equal(prefix, span_of(rows[i].prefix))) {
            fail_msg("%s: %.*s", rows[i].patterns, (int)prefix.len, prefix.ptr);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_hash_a_role_workspaces_and_a_name),
        cmocka_unit_test(a_token_is_found_by_what_it_is_and_by_nothing_else),
        cmocka_unit_test(an_empty_file_lets_nobody_in),
        cmocka_unit_test(each_mistake_has_its_line),
        cmocka_unit_test(all_mistakes_are_told_at_once_and_no_token_is_shown),
        cmocka_unit_test(too_many_tokens_are_refused),
        cmocka_unit_test(a_written_line_reads_back),
        cmocka_unit_test(patterns_match_whole_names),
        cmocka_unit_test(a_pattern_of_many_stars_takes_no_time),
        cmocka_unit_test(what_all_patterns_begin_with),
    };

    return sodium_init() < 0 ? 1 : cmocka_run_group_tests_name("token_table", tests, NULL, NULL);
}
