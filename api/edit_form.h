/* Bodies of edits and echoes, read. Pure. Contract §7, `PATCH …/entries/{id}`, `POST …/confirm`. */
#ifndef API_EDIT_FORM_H
#define API_EDIT_FORM_H

#include "api/json_body.h"
#include "api/json_tokens.h"
#include "common/core/buf.h"
#include "common/store/store_operate.h"

struct edit_form {
    struct json_body body;
    struct json_tokens tokens;
    struct entry_patch patch; /* spans into the request's body */
};
/* PROBLEM_NONE, or the problem (body.detail says more). edit_form_done() in either case. */
enum problem_id edit_form_read(struct span text, size_t max_text_bytes, struct edit_form *ret);
void edit_form_done(struct edit_form *form);

struct confirm_form {
    struct json_body body;
    struct span entry_id, session, client_message_id; /* spans into `body` */
    struct buf result;                                /* payload_result's line; empty: none */
};
enum problem_id confirm_form_read(struct span text, struct confirm_form *ret);
void confirm_form_done(struct confirm_form *form);

#endif
