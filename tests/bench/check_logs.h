/* The two logs of a run laid side by side: what the load generator sent, what the target got. */
#ifndef TESTS_BENCH_CHECK_LOGS_H
#define TESTS_BENCH_CHECK_LOGS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/bench/sink_log.h"

/* One message with both sides' times, ns on CLOCK_MONOTONIC; 0: did not happen. */
struct message {
    char id[MESSAGE_ID_MAX];
    uint32_t session;
    int status;                             /* of its acceptance */
    uint64_t send_ns, answer_ns;            /* the client's request and its answer */
    uint64_t first_post_ns;                 /* at the target, successful or not */
    uint64_t confirmed_ns, confirmed_at_ns; /* begin and end of its first successful POST */
    uint32_t posts, confirmed;
};

struct message_table {
    struct message *messages; /* owned */
    size_t count, cap;
    size_t *slots; /* owned: hash by ID, index + 1 */
    size_t slot_count;
    uint64_t posts, unknown_posts, first_post_ns, last_post_ns;
};

/* 0 or -errno. */
int check_logs_read(const char *load_log, const char *sink_log, struct message_table *ret);
void check_logs_done(struct message_table *table);

#endif
