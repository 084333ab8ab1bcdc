/* Token files: what is taken is found by its hash's line only, and what is refused is never shown.
 */
#include <errno.h>
#include <sodium.h>

#include "common/access/token_table.h"
#include "common/access/workspace_pattern.h"
#include "common/core/buf.h"
#include "common/core/keys.h"
#include "tests/fuzz/fuzz.h"

static void check_row(const struct access_token *token)
{
    const struct span prefix = workspace_patterns_prefix(token->workspaces);

    MUST_HOLD((unsigned)token->role < ROLE_COUNT);
    MUST_HOLD(!workspace_patterns_refusal(token->workspaces));
    /* A name that all patterns begin with is one that could match only if it holds the prefix. */
    if (prefix.len > 0 && prefix.len < WORKSPACE_MAX) {
        MUST_HOLD(!access_token_may_touch(token, (struct span){prefix.ptr, prefix.len - 1}));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct span text = {(const char *)bytes, len};
    struct token_table *table = NULL;
    struct buf mistakes;

    MUST_HOLD(sodium_init() >= 0);
    buf_init(&mistakes, 1 << 20);
    const int err = token_table_parse("t", text, &table, &mistakes);
    MUST_HOLD(err == 0 || err == -EINVAL);
    MUST_HOLD((err == -EINVAL) == (mistakes.len > 0));
    for (size_t i = 0; table && i < token_table_count(table); i++) {
        check_row(token_table_get(table, i));
    }
    if (table) {
        (void)token_table_find(table, text);
    }
    token_table_destroy(&table);
    buf_done(&mistakes);
    return 0;
}
