/* Looks through the open entries for those that no claim would find, a few of each partition at a
 * time: what it costs does not depend on how many there are. Nothing that scripts write gets lost
 * like that, but a store may have been restored from pieces: quickly through all of them once, then
 * slowly, as a net. */
#include "common/base/log.h"
#include "supervisor/recovery_private.h"

#define ENTRIES_PER_LOOK 16 /* about 1 ms of the store's time */
#define CYCLES_PER_LOOK  8  /* once all were seen */

static void on_audited(enum store_result result, const struct audit_answer *answer, void *arg)
{
    struct audit *audit = arg;
    struct recovery *recovery = audit->recovery;
    const uint32_t partition = (uint32_t)(audit - recovery->audits);

    audit->is_running = false;
    if (result != STORE_OK || recovery->is_stopped) {
        return; /* the same place again */
    }
    audit->next = answer->next;
    audit->has_seen_all = audit->has_seen_all || audit->next == 0;
    if (answer->mended > 0) {
        log_warn("put back what no claim would have found", "partition", LOG_I64(partition),
                 "places", LOG_I64(answer->mended));
        recovery->options.recovered(partition, recovery->options.arg);
    }
}

void recovery_audit(struct recovery *recovery, uint32_t first_partition, uint32_t count)
{
    for (uint32_t p = first_partition; p < first_partition + count; p++) {
        struct audit *audit = &recovery->audits[p];

        if (audit->has_seen_all && audit->cycle++ % CYCLES_PER_LOOK != 0) {
            continue;
        }
        if (!audit->is_running) {
            audit->is_running = true;
            audit->recovery = recovery;
            store_audit(recovery->options.store, p, audit->next, ENTRIES_PER_LOOK, on_audited,
                        audit);
        }
    }
}
