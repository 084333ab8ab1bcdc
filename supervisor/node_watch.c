/* The table of watched generations. Pure. */
#include "supervisor/node_watch.h"

#include <string.h>

void node_watch_init(struct node_watch *watch)
{
    watch->count = 0;
}

static const struct watched_node *find(const struct node_watch *watch, const char *node,
                                       uint64_t generation)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->nodes[i].generation == generation && strcmp(watch->nodes[i].node, node) == 0) {
            return &watch->nodes[i];
        }
    }
    return NULL;
}

void node_watch_see(struct node_watch *watch, const char *node, uint64_t generation)
{
    const struct watched_node *known = find(watch, node, generation);
    const size_t len = strlen(node);

    if (known) {
        watch->nodes[known - watch->nodes].is_seen = true;
        return;
    }
    if (watch->count < NODE_WATCH_MAX && len < sizeof(watch->nodes[0].node)) {
        struct watched_node *added = &watch->nodes[watch->count++];

        *added = (struct watched_node){.generation = generation, .is_seen = true};
        memcpy(added->node, node, len + 1);
    }
}

void node_watch_counter(struct node_watch *watch, const char *node, uint64_t generation,
                        int64_t counter, int64_t asked_ms, int64_t answered_ms)
{
    const struct watched_node *known = find(watch, node, generation);

    if (!known) {
        return;
    }
    struct watched_node *mine = &watch->nodes[known - watch->nodes];
    if (!mine->has_counter || mine->counter != counter) {
        mine->has_counter = true;
        mine->counter = counter;
        mine->since_ms = answered_ms;
    }
    mine->last_ms = asked_ms;
}

bool node_watch_is_dead(const struct node_watch *watch, const char *node, uint64_t generation)
{
    const struct watched_node *known = find(watch, node, generation);

    return known && known->has_counter && known->last_ms - known->since_ms >= NODE_WATCH_DEAD_MS;
}

void node_watch_reset(struct node_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        watch->nodes[i].has_counter = false;
    }
}

void node_watch_forget_unseen(struct node_watch *watch)
{
    size_t kept = 0;

    for (size_t i = 0; i < watch->count; i++) {
        if (watch->nodes[i].is_seen) {
            watch->nodes[kept] = watch->nodes[i];
            watch->nodes[kept++].is_seen = false;
        }
    }
    watch->count = kept;
}
