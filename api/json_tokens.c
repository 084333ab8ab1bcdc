/* jsmn, with room for as many tokens as a text has. */
#include <errno.h>
#include <stdlib.h>

#include "common/core/span.h"

/* The library is its header; this file holds its code. */
#define JSMN_PARENT_LINKS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include <jsmn.h>
#pragma GCC diagnostic pop
#undef JSMN_PARENT_LINKS

#include "api/json_tokens.h"

void json_tokens_init(struct json_tokens *tokens)
{
    tokens->all = tokens->few;
    tokens->count = tokens->model = tokens->payload = 0;
}

void json_tokens_done(struct json_tokens *tokens)
{
    if (tokens->all != tokens->few) {
        free(tokens->all);
    }
}

int json_tokens_read(struct json_tokens *tokens, struct span text)
{
    jsmn_parser parser;

    jsmn_init(&parser);
    tokens->count = jsmn_parse(&parser, text.ptr, text.len, tokens->few, JSON_TOKENS_FEW);
    if (tokens->count != JSMN_ERROR_NOMEM) {
        return 0;
    }
    jsmn_init(&parser);
    tokens->count = jsmn_parse(&parser, text.ptr, text.len, NULL, 0);
    jsmntok_t *all = tokens->count > 0 ? calloc((size_t)tokens->count, sizeof(*all)) : NULL;

    if (!all) {
        tokens->count = 0;
        return -ENOMEM;
    }
    tokens->all = all;
    jsmn_init(&parser);
    tokens->count = jsmn_parse(&parser, text.ptr, text.len, all, (unsigned)tokens->count);
    return 0;
}

struct span json_tokens_raw(struct span text, const jsmntok_t *token)
{
    /* A string token's ends stand inside its quotes. */
    const int quote = token->type == JSMN_STRING ? 1 : 0;

    return (struct span){text.ptr + token->start - quote,
                         (size_t)(token->end - token->start + 2 * quote)};
}

int json_tokens_behind(const struct json_tokens *tokens, int at)
{
    const int end = tokens->all[at].end;

    do {
        at++;
    } while (at < tokens->count && tokens->all[at].start < end);
    return at;
}
