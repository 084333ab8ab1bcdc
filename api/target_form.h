/* A workspace's own target: the request that sets it, the JSON that is stored, the JSON that is
 * shown. Credentials go in and never out. Pure. Contract §7, §11, §13.
 *
 * Stored as {"url", "executor"?, "username"?, "password"?, "secrets"?}: the worker reads it. */
#ifndef API_TARGET_FORM_H
#define API_TARGET_FORM_H

#include "api/json_body.h"
#include "common/core/buf.h"

#define TARGET_USERNAME_MAX 256
#define TARGET_PASSWORD_MAX 1024

/* PROBLEM_NONE and the text to store, which the caller frees; or the problem, with its detail in
 * `body`. Either way json_body_done(body). */
enum problem_id target_form_read(struct span text, struct json_body *body, char **ret_stored);
/* Writes what may be shown of a stored target, and how the circuit of a URL stands, which `circuit`
 * tells; false: it is none. */
typedef const char *target_circuit_fn(const char *url, void *arg);
bool target_form_show(struct span stored, target_circuit_fn *circuit, void *arg, struct buf *out);

#endif
