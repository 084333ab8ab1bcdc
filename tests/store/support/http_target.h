/* A target for tests of the worker: a small HTTP server in threads of the test's own process. It
 * keeps what it was sent, and obeys one behaviour at a time. Loopback, a free port. */
#ifndef TESTS_STORE_SUPPORT_HTTP_TARGET_H
#define TESTS_STORE_SUPPORT_HTTP_TARGET_H

#include <stdint.h>

enum target_behaviour {
    TARGET_ANSWER,      /* 200 */
    TARGET_DELAY,       /* 200 after target_set_delay's time */
    TARGET_HOLD,        /* 200 once the behaviour changes */
    TARGET_KEEP_CLOSE,  /* stores the message, closes without an answer */
    TARGET_FORGET_CLOSE /* the same without storing */
};

struct http_target;

struct http_target *http_target_start(void);
/* Waits for its connections to end: the worker must be gone. */
void http_target_stop(struct http_target **target);
int http_target_port(const struct http_target *target);
void http_target_behave(struct http_target *target, enum target_behaviour behaviour);
void http_target_set_delay(struct http_target *target, unsigned ms);

/* POSTs with that Idempotency-Key (NULL: all), look-ups, and requests being held now. */
unsigned http_target_posts(struct http_target *target, const char *key);
unsigned http_target_lookups(struct http_target *target);
unsigned http_target_open(struct http_target *target);
/* How often no POST was open for longer than half a second between two. */
unsigned http_target_long_gaps(struct http_target *target);

#endif
