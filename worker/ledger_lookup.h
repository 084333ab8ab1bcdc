/* Asks a ledger for the two rows that decide about an entry, both at once. Read-only. Contract §4
 * `ledger`, §5. */
#ifndef WORKER_LEDGER_LOOKUP_H
#define WORKER_LEDGER_LOOKUP_H

#include "worker/lookup.h"

/* As executor.h's look_up, and as its guard: the rows follow from `subject->attempts`. A look-up
 * that failed says `is_reached` false, whatever failed: it drives nothing. */
int ledger_look_up(struct worker *worker, const struct lookup_subject *subject,
                   lookup_done_cb *done, void *arg);

#endif
