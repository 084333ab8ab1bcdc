/* One connection under test with its own loop: what it told, and calls that can be waited for. */
#ifndef TESTS_STORE_SUPPORT_CONN_PROBE_H
#define TESTS_STORE_SUPPORT_CONN_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/store/scripts.h"
#include "common/store/store_conn.h"

struct probe {
    uv_loop_t loop;
    uv_timer_t alarm; /* wakes the loop, so that a wait ends even if nothing happens */
    struct store_conn *conn;
    int ups, downs;
    enum store_result why; /* of the last on_state */
    bool is_closed;
};

struct answer {
    int count; /* how often the callback ran */
    enum store_result result;
    bool has_reply;
    int type;
    long long integer;
    size_t elements;
    char text[256];
};

/* Zeroed members of `options` get values for tests: short delays, no time limit on commands, 1000
 * outstanding. */
void probe_open(struct probe *probe, const struct store_conn_options *options);
/* Closes the connection, checks that nothing is left in the loop. */
void probe_close(struct probe *probe);

/* Turns the loop once, at most some milliseconds; fails the test when the wait as a whole is
 * hopelessly long. */
void probe_turn(struct probe *probe, uint64_t started_ms);
#define PROBE_WAIT(probe, condition)                                                               \
    do {                                                                                           \
        uint64_t started_ms_ = uv_hrtime() / 1000000;                                              \
        while (!(condition)) {                                                                     \
            probe_turn((probe), started_ms_);                                                      \
        }                                                                                          \
    } while (0)
void probe_wait_up(struct probe *probe);

/* `words`: the command, ended by NULL. The answer must outlive the call. */
void probe_send(struct probe *probe, struct answer *answer, const char *const *words);
#define PROBE_SEND(probe, answer, ...)                                                             \
    probe_send((probe), (answer), (const char *const[]){__VA_ARGS__, NULL})
/* Sends and waits. */
#define PROBE_ASK(probe, into, ...)                                                                \
    do {                                                                                           \
        *(into) = (struct answer){0};                                                              \
        PROBE_SEND((probe), (into), __VA_ARGS__);                                                  \
        PROBE_WAIT((probe), (into)->count > 0);                                                    \
    } while (0)
/* A script of the test's own, with one key. */
void probe_eval(struct probe *probe, struct answer *answer, const struct store_script *script,
                const char *key, const char *argument, uint32_t replicas);
/* The callback behind all of these: `arg` is a struct answer. */
void probe_on_reply(enum store_result result, const struct redisReply *reply, void *arg);

#endif
