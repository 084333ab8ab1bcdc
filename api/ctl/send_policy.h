/* What an answer to a message means, how long to wait before it is sent again, and what is said of
 * it. Pure. */
#ifndef API_CTL_SEND_POLICY_H
#define API_CTL_SEND_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;

enum send_trouble {
    SEND_NONE, /* 202 or 200: the server has it */
    SEND_UNREACHED,
    SEND_UNAVAILABLE, /* the server or its store can't now */
    SEND_FULL,        /* the session can't now */
    SEND_REFUSED,     /* it would be refused again and again */
};

enum send_trouble send_judge(long status);
/* For people: "the store cannot take it now". */
const char *send_trouble_text(enum send_trouble trouble);
/* Before the next try, after `tries` before this one (0: it was the first): doubling up to 5 s, no
 * less than the server asked for (-1: nothing). */
int64_t send_wait_ms(unsigned tries, int64_t retry_after_ms);
/* The line that says which answer it was. */
void send_write_outcome(long status, const json_t *answer, const char *client_message_id,
                        bool is_coloured, struct buf *out);

#endif
