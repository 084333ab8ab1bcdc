/* A command's conversation with the server: which one, with which token, and what is said where it
 * does not answer or refuses. */
#ifndef API_CTL_ASKING_H
#define API_CTL_ASKING_H

#include "api/ctl/answers.h"
#include "api/ctl/call.h"
#include "api/ctl/http_client.h"

struct asking {
    const struct options *options;
    struct http_client *client; /* owned */
    long limit_ms;              /* for each call; 0: a minute, or 15 for long ones */
};

/* An enum exit_code; what is wrong (token file, address) has been said. Nothing is connected yet.
 */
int asking_open(struct asking *ret, const struct options *options);
void asking_close(struct asking *asking);

/* Whatever the answer is: 0, or -EIO (http_client_mistake() says what happened). */
int asking_try(struct asking *asking, const struct call *call, struct http_answer *ret);
/* EXIT_CODE_OK with *ret, a success; else it has been explained on stderr, and with --json on
 * stdout. */
int asking_call(struct asking *asking, const struct call *call, struct http_answer *ret);
/* The same, and the answer shown: as it came with --json, else by `print`. */
int asking_show(struct asking *asking, const struct call *call, answer_print_fn *print);

/* Fills the call in from the command line: an enum exit_code, what is wrong has been said. */
typedef int call_make_fn(const struct options *options, struct call *call);
/* A command that is one call: makes it, asks, shows. */
int asking_run(const struct options *options, call_make_fn *make, answer_print_fn *print);

/* Says that nobody answered, and how to find the server. Returns EXIT_CODE_UNREACHABLE. */
int asking_explain_silence(const struct asking *asking);
/* An answer that is no success, which is taken: says what it means. Returns the exit code for it.
 */
int asking_explain_refusal(const struct asking *asking, struct http_answer *answer);
/* Says that a success is none of outboxd's answers. Returns EXIT_CODE_UNREACHABLE. */
int asking_explain_nonsense(const struct asking *asking);
/* A refusal of our own: "title: subject is status", what to do, and the problem document for
 * --json. */
void asking_explain(const struct asking *asking, const char *code, const char *title,
                    const char *subject, const char *status, const char *advice);

/* With --json a failure that the server did not describe is a problem document on stdout too. */
void output_problem(const struct options *options, const char *code, const char *title,
                    const char *detail);
/* All of `out` to stdout; EXIT_CODE_FAILED with what is wrong said. */
int output_write(const struct buf *out);

#endif
