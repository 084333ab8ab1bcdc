/* The body of an accept request, read: what is accepted, or which problem it is. Pure; knows no
 * store and no server. Contract §7, first two rows and POST /v1/batch; §11 limits. */
#ifndef API_ACCEPT_FORM_H
#define API_ACCEPT_FORM_H

#include "api/accept_digest.h"
#include "api/json_body.h"
#include "common/core/keys.h"
#include "common/store/entry.h"

#define USER_ID_MAX   256
#define KIND_NAME_MAX 64
#define KIND_PROMPT   "prompt"

struct accept_source {
    struct span body;
    struct span idempotency_key; /* header; NULL ptr: absent */
    struct span traceparent;     /* header; empty: absent */
    size_t max_text_bytes;       /* the longest text, payload or model */
    bool is_line;                /* of a batch: it names its workspace, perhaps its session */
};
struct accept_form {
    struct span workspace, session;     /* of a line; session.ptr NULL: it names none */
    struct entry_body body;             /* spans into the source and into `json` */
    struct json_body json;              /* owned; the whole document, and why not */
    char digest[ACCEPT_DIGEST_LEN + 1]; /* hex */
};

/* PROBLEM_NONE, or the problem. Either way accept_form_done() ends it. */
enum problem_id accept_form_read(const struct accept_source *source, struct accept_form *ret);
void accept_form_done(struct accept_form *form);
/* The payload, or NULL; lives as long as the form. */
const json_t *accept_form_payload(const struct accept_form *form);

#endif
