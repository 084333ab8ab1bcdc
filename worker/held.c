/* Two chained hash tables: sessions, and workspaces with their counts. */
#include "worker/held.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/core/keys.h"

#define BUCKETS 4096 /* a power of two, well above what one worker holds */

struct session_node {
    struct session_node *next;
    struct span workspace, session;
    struct delivery *delivery;
};

struct workspace_node {
    struct workspace_node *next;
    struct workspace_node *next_in_partition, **link_in_partition;
    uint32_t partition, count, waiting;
    size_t len;
    char name[];
};

struct held {
    struct session_node *sessions[BUCKETS];
    struct workspace_node *workspaces[BUCKETS];
    struct workspace_node *by_partition[PARTITION_COUNT];
    uint32_t count, waiting;
};

int held_create(struct held **ret)
{
    struct held *held = calloc(1, sizeof(*held));

    if (!held) {
        return -ENOMEM;
    }
    *ret = held;
    return 0;
}

void held_destroy(struct held **held)
{
    free(*held);
    *held = NULL;
}

static size_t bucket_of(struct span workspace, struct span session)
{
    return (fnv1a64(workspace.ptr, workspace.len) * 31 + fnv1a64(session.ptr, session.len)) &
           (BUCKETS - 1);
}

static struct session_node **find_session(const struct held *held, struct span workspace,
                                          struct span session)
{
    struct session_node *const *at = &held->sessions[bucket_of(workspace, session)];

    while (*at &&
           !(span_equal((*at)->workspace, workspace) && span_equal((*at)->session, session))) {
        at = &(*at)->next;
    }
    return (struct session_node **)(uintptr_t)at;
}

static struct workspace_node **find_workspace(const struct held *held, struct span name)
{
    struct workspace_node *const *at =
        &held->workspaces[fnv1a64(name.ptr, name.len) & (BUCKETS - 1)];

    while (*at && !span_equal((struct span){(*at)->name, (*at)->len}, name)) {
        at = &(*at)->next;
    }
    return (struct workspace_node **)(uintptr_t)at;
}

struct delivery *held_find(const struct held *held, struct span workspace, struct span session)
{
    const struct session_node *node = *find_session(held, workspace, session);

    return node ? node->delivery : NULL;
}

static struct workspace_node *workspace_begin(struct held *held, struct span name)
{
    struct workspace_node **at = find_workspace(held, name);
    struct workspace_node *node = *at;

    if (node) {
        return node;
    }
    node = calloc(1, sizeof(*node) + name.len);
    if (!node) {
        return NULL;
    }
    node->len = name.len;
    memcpy(node->name, name.ptr, name.len);
    node->partition = partition_of(name.ptr, name.len);
    *at = node;
    node->link_in_partition = &held->by_partition[node->partition];
    node->next_in_partition = *node->link_in_partition;
    if (node->next_in_partition) {
        node->next_in_partition->link_in_partition = &node->next_in_partition;
    }
    *node->link_in_partition = node;
    return node;
}

static void workspace_end(struct held *held, struct span name)
{
    struct workspace_node **at = find_workspace(held, name);
    struct workspace_node *node = *at;

    if (--node->count > 0) {
        return;
    }
    *at = node->next;
    *node->link_in_partition = node->next_in_partition;
    if (node->next_in_partition) {
        node->next_in_partition->link_in_partition = node->link_in_partition;
    }
    free(node);
}

int held_insert(struct held *held, struct span workspace, struct span session,
                struct delivery *delivery)
{
    struct session_node **at = find_session(held, workspace, session);

    if (*at) {
        return -EEXIST;
    }
    struct session_node *node = malloc(sizeof(*node));
    struct workspace_node *counted = node ? workspace_begin(held, workspace) : NULL;

    if (!counted) {
        free(node);
        return -ENOMEM;
    }
    *node = (struct session_node){.workspace = workspace, .session = session, .delivery = delivery};
    *at = node;
    counted->count++;
    held->count++;
    return 0;
}

void held_remove(struct held *held, struct span workspace, struct span session)
{
    struct session_node **at = find_session(held, workspace, session);
    struct session_node *node = *at;

    if (!node) {
        return;
    }
    *at = node->next;
    free(node);
    workspace_end(held, workspace);
    held->count--;
}

uint32_t held_count(const struct held *held)
{
    return held->count;
}

void held_set_waiting(struct held *held, struct span workspace, bool is_waiting)
{
    struct workspace_node *node = *find_workspace(held, workspace);

    if (!node) {
        return; /* not held */
    }
    if (is_waiting) {
        node->waiting++;
        held->waiting++;
    } else {
        node->waiting--;
        held->waiting--;
    }
}

uint32_t held_used(const struct held *held)
{
    return held->count - held->waiting;
}

uint32_t held_used_by(const struct held *held, struct span workspace)
{
    const struct workspace_node *node = *find_workspace(held, workspace);

    return node ? node->count - node->waiting : 0;
}

uint32_t held_workspaces_of(const struct held *held, uint32_t partition, struct held_workspace *ret,
                            uint32_t max)
{
    uint32_t count = 0;

    for (const struct workspace_node *node = held->by_partition[partition]; node && count < max;
         node = node->next_in_partition) {
        ret[count] = (struct held_workspace){.name = {node->name, node->len},
                                             .partition = partition,
                                             .count = node->count - node->waiting};
        count++;
    }
    return count;
}
