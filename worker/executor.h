/* How entries reach their target: what delivery.c and sweeps need of each executor. To add one: a
 * row in executor.c. Contract §4. */
#ifndef WORKER_EXECUTOR_H
#define WORKER_EXECUTOR_H

#include "worker/lookup.h"

struct delivery;
struct worker;

struct executor {
    const char *name;
    /* Starts an attempt: the guards were passed, the store knows of it (`sends`). All of it, what
     * is asked before and after the request included, takes no longer than the kind's timeout.
     * Ends, in this turn or later, in exactly one call of record_outcome, record_failed or
     * record_release. */
    void (*send)(struct delivery *delivery);
    /* Asks about the last attempt. 0, and `done` runs once; or -ENOMEM, and it never does. */
    int (*look_up)(struct worker *worker, const struct lookup_subject *subject,
                   lookup_done_cb *done, void *arg);
    /* Asks once more before an entry becomes `error` (the park guard, contract §5): DELIVERED and
     * PRIOR_PENDING keep it from that, any other verdict does not. NULL: there is nobody to ask.
     * `subject->attempts` is the count that the entry would be left with. */
    int (*guard)(struct worker *worker, const struct lookup_subject *subject, lookup_done_cb *done,
                 void *arg);
    bool owns_attempts; /* its targets may own an attempt (prior-pending): claims poll them */
};

/* Never NULL. */
const struct executor *executor_of(const struct target *target, const struct kind *kind);

extern const struct executor executor_http;
extern const struct executor executor_opencode;
extern const struct executor executor_ledger;

#endif
