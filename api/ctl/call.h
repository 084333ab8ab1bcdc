/* One request to the API, as a command makes it from its arguments. */
#ifndef API_CTL_CALL_H
#define API_CTL_CALL_H

#include "api/ctl/options.h"
#include "common/core/buf.h"

struct call {
    const char *method;
    struct buf path, body;
    bool is_long; /* goes through a whole workspace: may take minutes */
};

void call_init(struct call *call);
void call_done(struct call *call);

/* A workspace's path with something behind it ("/park"); the other two likewise. Each returns an
 * enum exit_code; what is wrong with a name has been said on stderr. */
int call_workspace(const struct options *options, const char *method, const char *behind,
                   struct call *call);
int call_session(const struct options *options, const char *method, const char *behind,
                 struct call *call);
int call_entry(const struct options *options, const char *method, const char *id,
               const char *behind, struct call *call);

/* Members of the body, a JSON object; call_end_body closes it. False: what is wrong has been said.
 */
bool call_add_text(const struct options *options, struct call *call, const char *name,
                   const char *text);
/* JSON goes out as it was given: only checked, never written anew, so that no number loses a digit.
 */
bool call_add_json(const struct options *options, struct call *call, const char *name,
                   struct span json);
/* The value of an option, as it stands or from standard input ("-"); nothing where it is not given.
 */
bool call_add_json_option(const struct options *options, struct call *call, const char *name,
                          enum option_id option);
bool call_add_json_file(const struct options *options, struct call *call, const char *name,
                        const char *path);
bool call_add_text_file(const struct options *options, struct call *call, const char *name,
                        const char *path);
void call_end_body(struct call *call);

/* Whether it may be called so; says on stderr if not. */
bool name_is_workspace(const struct options *options, const char *name);
bool name_is_session(const struct options *options, const char *name);

#endif
