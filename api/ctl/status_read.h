/* The state of the server, asked of /readyz and /metrics. */
#ifndef API_CTL_STATUS_READ_H
#define API_CTL_STATUS_READ_H

#include <jansson.h>

struct asking;
struct http_answer;

/* 0 and *ret_state (status_answers.h; the caller gives it back); -EIO: nobody answered; -EPROTO:
 * with *ret_answer, which is none of outboxd's /readyz. Says nothing. */
int status_read(struct asking *asking, json_t **ret_state, struct http_answer *ret_answer);

#endif
