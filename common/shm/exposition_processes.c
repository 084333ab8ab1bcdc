/* What the segment tells of its processes, and which build this is. Roles go by the slot's number:
 * one series per slot, whatever its memory says. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "build_config.h"
#include "common/base/err.h"
#include "common/shm/exposition.h"
#include "common/shm/metrics.h"
#include "common/shm/shm.h"

struct process_samples {
    char slots[SHM_SLOT_MAX][12];
    struct exposition_sample up[SHM_SLOT_MAX], looping[SHM_SLOT_MAX];
    size_t count;
};

static void add_process(struct process_samples *samples, uint32_t slot,
                        const struct shm_process *process)
{
    const bool is_up =
        process->state == SHM_PROCESS_READY || process->state == SHM_PROCESS_DRAINING;
    const size_t i = samples->count++;
    const struct exposition_sample sample = {
        .labels = {shm_role_name(shm_slot_role(slot)), samples->slots[i]}};

    (void)snprintf(samples->slots[i], sizeof(samples->slots[i]), "%" PRIu32, slot);
    samples->up[i] = samples->looping[i] = sample;
    samples->up[i].value = is_up ? 1 : 0;
    samples->looping[i].value = shm_process_is_looping(process) ? 1 : 0;
}

static int expose_processes(const struct shm *shm, struct buf *out)
{
    struct process_samples samples = {.count = 0};

    for (uint32_t slot = 0; slot < shm_slot_count(shm) && slot < SHM_SLOT_MAX; slot++) {
        struct shm_process process;

        /* Nobody is missed in a slot that nobody is to be in. */
        if (shm_process_read(shm, slot, &process) == 0 && process.state != SHM_PROCESS_DOWN) {
            add_process(&samples, slot, &process);
        }
    }
    const int err = exposition_gauge(out, SCRAPED_process_up, samples.up, samples.count);
    return err < 0 ? err
                   : exposition_gauge(out, SCRAPED_process_crash_looping, samples.looping,
                                      samples.count);
}

int metrics_expose(const struct shm *shm, const struct exposition_names *names, struct buf *out)
{
    const struct exposition_sample build = {.labels = {OUTBOXD_VERSION}, .value = 1};
    AUTO_FREE struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));

    if (!snapshot) {
        return -ENOMEM;
    }
    metrics_snapshot_all(shm, snapshot);
    int err = metrics_expose_snapshot(snapshot, names, out);
    err = err < 0 ? err : expose_processes(shm, out);
    return err < 0 ? err : exposition_gauge(out, SCRAPED_build_info, &build, 1);
}
