/* Calls of the sweeps (contract §3 Sweeps, §5): `error` entries that the target is asked about once
 * more. Loop thread only; the rules of store.h hold. */
#ifndef COMMON_STORE_STORE_SWEEP_H
#define COMMON_STORE_STORE_SWEEP_H

#include "common/store/store.h"

/* An entry to look up. Nobody holds its session: it is only read until store_sweep_settle. */
struct swept_entry {
    struct span workspace;
    struct entry entry;
    struct span target_conf; /* the workspace's own target, JSON; empty if it has none */
};
struct sweep_take_answer {
    const struct swept_entry *entries; /* alive during the callback */
    size_t count;
    bool has_more; /* more of them may be due */
};
typedef void store_sweep_take_cb(enum store_result result, const struct sweep_take_answer *answer,
                                 void *arg);
/* At most `max` entries of the partition that are due for a look. None of them is due again before
 * `hold_ms` have passed, whoever asks. */
void store_sweep_take(struct store *store, uint32_t partition, uint32_t max, int64_t hold_ms,
                      store_sweep_take_cb *cb, void *arg);

struct sweep_settle_request {
    struct span workspace, id;
    /* As they were when it was taken: an entry that has changed since is left alone. */
    uint32_t attempts, sends;
    struct span error_code;
    /* STATUS_ENDED: the target has it. PENDING, VERIFYING: due now. ERROR: it stays. */
    enum entry_status to;
    uint32_t new_attempts;
    enum sent_via via; /* of STATUS_ENDED */
};
/* yes: it was applied. */
void store_sweep_settle(struct store *store, const struct sweep_settle_request *request,
                        store_flag_cb *cb, void *arg);

#endif
