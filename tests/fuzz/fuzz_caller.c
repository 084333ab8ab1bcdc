/* Who calls: what a request's head says of it. Four lines: Authorization, Origin, Host, workspace.
 * Only the one token that there is lets anybody in, and only into its workspaces. */
#include <sodium.h>

#include "api/auth.h"
#include "api/origin.h"
#include "common/access/token_table.h"
#include "common/access/workspace_pattern.h"
#include "common/base/settings.h"
#include "tests/fuzz/fuzz.h"

static struct span take_line(struct span *text)
{
    const char *end = text->len > 0 ? memchr(text->ptr, '\n', text->len) : NULL;
    const struct span line = {text->ptr, end ? (size_t)(end - text->ptr) : text->len};

    text->ptr += line.len + (end ? 1 : 0);
    text->len -= line.len + (end ? 1 : 0);
    return line;
}

#define TOKEN "outbox_fuzz"

static const struct token_table *table_of_one(void)
{
    static struct token_table *table;
    unsigned char hash[TOKEN_HASH_BYTES];
    struct buf text, mistakes;

    if (!table) {
        MUST_HOLD(sodium_init() >= 0);
        buf_init(&text, 4096);
        buf_init(&mistakes, 4096);
        token_hash(span_of(TOKEN), hash);
        MUST_HOLD(token_line_write(hash, ROLE_CLIENT, span_of("team-*,home"), span_of("n"), &text));
        MUST_HOLD(token_table_parse("t", (struct span){text.bytes, text.len}, &table, &mistakes) ==
                  0);
        buf_done(&text);
        buf_done(&mistakes);
    }
    return table;
}

static void check_token(struct span authorization, struct span workspace)
{
    const struct auth_headers headers = {authorization.len > 0, authorization};

    for (int i = 0; i < ROUTE_COUNT; i++) {
        const enum route_id route = (enum route_id)i;
        const struct access_token *caller = NULL;
        const enum problem_id problem =
            auth_judge(table_of_one(), &headers, route, workspace, &caller);

        (void)auth_challenge(problem);
        if (caller) {
            MUST_HOLD(authorization.len >= strlen(TOKEN) &&
                      memmem(authorization.ptr, authorization.len, TOKEN, strlen(TOKEN)));
        }
        if (problem == PROBLEM_NONE && caller && route_has_workspace(route)) {
            MUST_HOLD(span_equal(workspace, span_of("home")) ||
                      (workspace.len >= 5 && memcmp(workspace.ptr, "team-", 5) == 0));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static char listed_origin[] = "https://chat.example";
    char *items[] = {listed_origin};
    const struct text_list listed = {items, 1};
    struct span text = {(const char *)bytes, len};
    const struct span authorization = take_line(&text), origin = take_line(&text);
    const struct span host = take_line(&text), workspace = take_line(&text);

    check_token(authorization, workspace);
    const enum problem_id problem = origin_judge(&listed, origin, host);

    MUST_HOLD(problem == PROBLEM_NONE || problem == PROBLEM_FOREIGN_ORIGIN ||
              problem == PROBLEM_FOREIGN_HOST);
    MUST_HOLD(!origin_is_listed(&listed, origin) || span_equal(origin, span_of(listed_origin)));
    return 0;
}
