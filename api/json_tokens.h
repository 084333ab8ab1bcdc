/* Where the values of a JSON text stand in it. The text must be valid already (jansson has said
 * so): jsmn, which is lenient, then can't misread it. Pure. */
#ifndef API_JSON_TOKENS_H
#define API_JSON_TOKENS_H

#include "common/core/span.h"

#define JSMN_HEADER
#define JSMN_PARENT_LINKS
#include <jsmn.h>

#define JSON_TOKENS_FEW 64

struct json_tokens {
    jsmntok_t few[JSON_TOKENS_FEW];
    jsmntok_t *all; /* `few`, or owned */
    int count;
    int model, payload; /* for accept forms: index of their values; 0: absent */
};

void json_tokens_init(struct json_tokens *tokens);
void json_tokens_done(struct json_tokens *tokens);
/* 0, or -ENOMEM. */
int json_tokens_read(struct json_tokens *tokens, struct span text);
/* A value as it stands, a string with its quotes. */
struct span json_tokens_raw(struct span text, const jsmntok_t *token);
/* The index behind a value and all that is in it. */
int json_tokens_behind(const struct json_tokens *tokens, int at);

#endif
