/* What shared memory showed at one moment, copied out of it: everything a frame is made from. */
#ifndef API_CTL_TOP_SAMPLE_H
#define API_CTL_TOP_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/shm/target_table.h"

struct top_process {
    uint32_t slot;
    enum shm_role role;
    enum shm_process_state state;
    int32_t pid;
    uint32_t deaths;          /* in a row */
    int64_t uptime_ms;        /* -1: unknown, or down */
    int64_t heartbeat_age_ms; /* the same */
};

struct top_flight {
    uint32_t slot; /* the worker's */
    int32_t pid;   /* 0: unknown */
    enum shm_lock_activity activity;
    int64_t age_ms;
    char workspace[64 + 1];
    char session[128 + 1];
};

struct top_sample {
    uint64_t generation;
    int64_t mono_ms;
    int64_t uptime_ms; /* of the supervisor; -1: unknown */
    struct top_process processes[SHM_SLOT_MAX];
    size_t process_count;
    struct top_flight *flights; /* oldest first */
    size_t flight_count;
    size_t circuits[CIRCUIT_STATE_COUNT]; /* of targets, by state; none counted as closed */
    struct metrics_snapshot metrics;
};

/* Of the newest generation that lives. 0, or -errno as shm_attach_readonly() and -ENOMEM. */
int top_sample_take(struct top_sample **ret, const char *state_dir);
void top_sample_destroy(struct top_sample **sample);

#endif
