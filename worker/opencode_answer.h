/* Reads what opencode answers. All of it is untrusted JSON. Pure. Contract §4 `opencode`. */
#ifndef WORKER_OPENCODE_ANSWER_H
#define WORKER_OPENCODE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"

/* The longest message ID that is kept as a baseline. */
#define OPENCODE_BASELINE_MAX 128

/* Whether an answer to a prompt comes from an agent: JSON with `info.role`. An unknown path answers
 * 200 too, with a web page. */
bool opencode_is_reply(struct span body);

/* The version in an answer of GET /global/health; "" if there is none. */
struct opencode_version {
    char text[32];
};
struct opencode_version opencode_read_version(struct span body);

enum opencode_message {
    OPENCODE_MESSAGE_STORED,
    OPENCODE_MESSAGE_EMPTY,     /* stored without its parts: the same IDs complete it */
    OPENCODE_MESSAGE_NOT_THERE, /* the server says so */
    OPENCODE_MESSAGE_UNKNOWN,   /* anything else proves nothing */
};
/* An answer of GET …/message/{id}. */
enum opencode_message opencode_read_message(int status, struct span body, const char *id);

/* As the name of a message: there was none. */
#define OPENCODE_EMPTY_TRANSCRIPT "-"

/* What is looked for in a transcript: a user message with exactly this text, created at or after
 * `not_before_ms` (server's clock), after the message `baseline` if that is known, and not after
 * the message `until`. The rest is noted from page to page, the newest one first. */
struct opencode_search {
    struct span text;
    int64_t not_before_ms;
    struct span baseline; /* empty: none */
    struct span until;    /* empty: up to now */
    bool has_met_until;
    bool has_passed_one; /* a fitting message before `until` was met: whose it is shows only then */
};
/* One page, oldest message first. */
struct opencode_page {
    bool is_readable; /* an array of messages */
    bool is_found;
    bool is_past_start; /* it reaches back to before the window, or to the baseline */
    size_t count;       /* of messages */
};
struct opencode_page opencode_read_page(struct span body, struct opencode_search *search);

/* The ID of the newest message of a page; empty if there is none. 0, or -EBADMSG. */
int opencode_read_newest(struct span body, char ret_id[OPENCODE_BASELINE_MAX + 1]);

#endif
