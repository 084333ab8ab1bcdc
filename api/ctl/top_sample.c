/* Reads one moment out of shared memory and lets go of it. Times there may be garbage: what does
 * not make sense is unknown, never negative. */
#include "api/ctl/top_sample.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

#define AHEAD_MS 1000 /* a time so little ahead of us was written while we read */

static int64_t since(int64_t then_ms, int64_t now_ms)
{
    if (then_ms <= 0 || then_ms > now_ms + AHEAD_MS) {
        return -1;
    }
    return then_ms < now_ms ? now_ms - then_ms : 0;
}

static void read_process(struct top_sample *sample, const struct shm *shm, uint32_t slot)
{
    struct shm_process process;

    if (shm_process_read(shm, slot, &process) < 0) {
        return;
    }
    const bool is_down = process.state == SHM_PROCESS_DOWN ||
                         process.state == SHM_PROCESS_WAITING ||
                         process.state == SHM_PROCESS_FAILED;

    sample->processes[sample->process_count++] = (struct top_process){
        .slot = slot,
        .role = process.role,
        .state = process.state,
        .pid = is_down ? 0 : process.pid,
        .deaths = process.state == SHM_PROCESS_DOWN ? 0 : process.restart.deaths,
        .uptime_ms = is_down ? -1 : since(process.started_mono_ms, sample->mono_ms),
        .heartbeat_age_ms = is_down ? -1 : since(process.heartbeat_mono_ms, sample->mono_ms),
    };
    if (slot == SHM_SLOT_SUPERVISOR) {
        sample->uptime_ms = since(process.started_mono_ms, sample->mono_ms);
    }
}

struct collecting {
    struct top_sample *sample;
    uint32_t slot;
    int32_t pid;
    size_t capacity;
    bool is_out_of_memory;
};

static bool has_room(struct collecting *collecting)
{
    struct top_sample *sample = collecting->sample;

    if (sample->flight_count < collecting->capacity) {
        return true;
    }
    const size_t capacity = collecting->capacity ? collecting->capacity * 2 : 64;
    struct top_flight *longer = realloc(sample->flights, capacity * sizeof(*longer));

    if (!longer) {
        collecting->is_out_of_memory = true;
        return false;
    }
    sample->flights = longer;
    collecting->capacity = capacity;
    return true;
}

static void on_lock(const struct shm_lock *lock, void *arg)
{
    struct collecting *collecting = arg;
    struct top_sample *sample = collecting->sample;

    if (!has_room(collecting)) {
        return;
    }
    const int64_t age_ms = since(lock->started_mono_ms, sample->mono_ms);
    struct top_flight *flight = &sample->flights[sample->flight_count++];

    *flight = (struct top_flight){
        .slot = collecting->slot,
        .pid = collecting->pid,
        .activity = lock->activity,
        .age_ms = age_ms > 0 ? age_ms : 0,
    };
    memcpy(flight->workspace, lock->workspace, sizeof(flight->workspace));
    memcpy(flight->session, lock->session, sizeof(flight->session));
}

static int by_age(const void *a, const void *b)
{
    const struct top_flight *left = a, *right = b;

    if (left->age_ms != right->age_ms) {
        return left->age_ms > right->age_ms ? -1 : 1;
    }
    const int order = strcmp(left->workspace, right->workspace);

    return order != 0 ? order : strcmp(left->session, right->session);
}

static int read_flights(struct top_sample *sample, const struct shm *shm)
{
    struct collecting collecting = {.sample = sample};

    for (size_t i = 0; i < sample->process_count; i++) {
        collecting.slot = sample->processes[i].slot;
        collecting.pid = sample->processes[i].pid;
        lock_table_each(shm, collecting.slot, on_lock, &collecting);
    }
    if (sample->flight_count > 0) {
        qsort(sample->flights, sample->flight_count, sizeof(*sample->flights), by_age);
    }
    return collecting.is_out_of_memory ? -ENOMEM : 0;
}

int top_sample_take(struct top_sample **ret, const char *state_dir)
{
    struct shm *shm = NULL;
    int err = shm_attach_readonly(&shm, state_dir);

    if (err < 0) {
        return err;
    }
    struct top_sample *sample = calloc(1, sizeof(*sample));

    if (!sample) {
        shm_destroy(&shm);
        return -ENOMEM;
    }
    sample->generation = shm_generation(shm);
    sample->mono_ms = clock_mono_ms();
    sample->uptime_ms = -1;
    for (uint32_t slot = 0; slot < shm_slot_count(shm) && slot < SHM_SLOT_MAX; slot++) {
        read_process(sample, shm, slot);
    }
    metrics_snapshot_all(shm, &sample->metrics);
    target_table_count(shm, clock_mono_ns(), sample->circuits);
    err = read_flights(sample, shm);
    shm_destroy(&shm);
    if (err < 0) {
        top_sample_destroy(&sample);
        return err;
    }
    *ret = sample;
    return 0;
}

void top_sample_destroy(struct top_sample **sample)
{
    if (*sample) {
        free((*sample)->flights);
        free(*sample);
        *sample = NULL;
    }
}
