/* BLAKE2b over tagged parts: no two different messages give the same text to hash. */
#include "api/accept_digest.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/json_tokens.h"
#include "common/store/entry.h"

static void hash_part(crypto_generichash_state *state, char tag, struct span part)
{
    char head[32];
    const int len = snprintf(head, sizeof(head), "%c%zu:", tag, part.len);

    (void)crypto_generichash_update(state, (const unsigned char *)head, (unsigned long long)len);
    (void)crypto_generichash_update(state, (const unsigned char *)part.ptr, part.len);
}

struct by_name {
    struct span text;
    const struct json_tokens *tokens;
};

static int compare_names(const void *one, const void *other, void *arg)
{
    const struct by_name *by = arg;
    const struct span a = json_tokens_raw(by->text, &by->tokens->all[*(const int *)one]);
    const struct span b = json_tokens_raw(by->text, &by->tokens->all[*(const int *)other]);
    const int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* A value whose members may stand in any order and whose blanks do not count. Numbers and strings
 * count as they were spelt: no number is too large. False: out of memory. Recursion ends at
 * JSON_DEPTH_MAX. */
static bool hash_value(crypto_generichash_state *state, struct span text,
                       const struct json_tokens *tokens, int at)
{
    const jsmntok_t *token = &tokens->all[at];
    struct by_name by = {text, tokens};
    int child = at + 1;
    int *names;
    bool is_done = true;

    switch (token->type) {
    case JSMN_UNDEFINED:
    case JSMN_STRING:
    case JSMN_PRIMITIVE:
        hash_part(state, 'v', json_tokens_raw(text, token));
        return true;
    case JSMN_ARRAY:
        hash_part(state, '[', (struct span){"", 0});
        for (int i = 0; i < token->size && is_done; i++) {
            is_done = hash_value(state, text, tokens, child);
            child = json_tokens_behind(tokens, child);
        }
        hash_part(state, ']', (struct span){"", 0});
        return is_done;
    case JSMN_OBJECT:
        break;
    }
    names = calloc((size_t)token->size + 1, sizeof(*names));
    if (!names) {
        return false;
    }
    for (int i = 0; i < token->size; i++) {
        names[i] = child;
        child = json_tokens_behind(tokens, child + 1);
    }
    qsort_r(names, (size_t)token->size, sizeof(*names), compare_names, &by);
    hash_part(state, '{', (struct span){"", 0});
    for (int i = 0; i < token->size && is_done; i++) {
        hash_part(state, 'n', json_tokens_raw(text, &tokens->all[names[i]]));
        is_done = hash_value(state, text, tokens, names[i] + 1);
    }
    hash_part(state, '}', (struct span){"", 0});
    free(names);
    return is_done;
}

int accept_digest_make(const struct entry_body *body, struct span text,
                       const struct json_tokens *tokens, char ret[ACCEPT_DIGEST_LEN + 1])
{
    unsigned char hash[ACCEPT_DIGEST_LEN / 2];
    crypto_generichash_state state;
    bool is_done = true;

    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    hash_part(&state, 'k', body->kind);
    hash_part(&state, 'u', body->user_id);
    if (body->has_text) {
        hash_part(&state, 't', body->text);
    }
    if (tokens->model > 0) {
        hash_part(&state, 'm', (struct span){"", 0});
        is_done = hash_value(&state, text, tokens, tokens->model);
    }
    if (is_done && tokens->payload > 0) {
        hash_part(&state, 'p', (struct span){"", 0});
        is_done = hash_value(&state, text, tokens, tokens->payload);
    }
    for (uint32_t i = 0; i < body->depends_on_count; i++) {
        hash_part(&state, 'd', body->depends_on[i]);
    }
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    (void)sodium_bin2hex(ret, ACCEPT_DIGEST_LEN + 1, hash, sizeof(hash));
    return is_done ? 0 : -ENOMEM;
}
