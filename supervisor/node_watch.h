/* Whether generations of other nodes live, from their counters in the store. A generation is dead
 * only when an observer that was connected throughout saw its counter unchanged for 10 s (contract
 * §8). Pure: the time is given. */
#ifndef SUPERVISOR_NODE_WATCH_H
#define SUPERVISOR_NODE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODE_WATCH_MAX     256
#define NODE_WATCH_DEAD_MS 10000

struct watched_node {
    char node[65];
    uint64_t generation;
    bool is_seen; /* a token of it was seen since the last node_watch_forget_unseen() */
    bool has_counter;
    int64_t counter;
    int64_t since_ms; /* when that value was first answered, CLOCK_MONOTONIC */
    int64_t last_ms;  /* when the last reading that still had it was asked for */
};

struct node_watch {
    struct watched_node nodes[NODE_WATCH_MAX];
    size_t count;
};

void node_watch_init(struct node_watch *watch);
/* A token of that generation stands in the store. Beyond NODE_WATCH_MAX: not watched for now;
 * expiry gets them. */
void node_watch_see(struct node_watch *watch, const char *node, uint64_t generation);
/* A reading that was asked for at asked_ms and answered at answered_ms. An absent counter reads 0.
 */
void node_watch_counter(struct node_watch *watch, const char *node, uint64_t generation,
                        int64_t counter, int64_t asked_ms, int64_t answered_ms);
bool node_watch_is_dead(const struct node_watch *watch, const char *node, uint64_t generation);
/* The connection was lost: nothing that was observed before counts. */
void node_watch_reset(struct node_watch *watch);
/* Ends a cycle: generations without tokens are watched no more. */
void node_watch_forget_unseen(struct node_watch *watch);

#endif
