/* What the two rows that decide about an entry come to. Pure, a table. Contract §4 `ledger`, §5.
 *
 * The rows are those of the last counted attempt (attempt_base + attempts: the one before the next)
 * and of the next one, which an attempt of unknown outcome may have written already. One table
 * serves all who ask: before a re-send, verification, poll, park guard, parked sweep. What each
 * makes of the verdict stands in lookup_step.h and sweep_step.h. */
#ifndef WORKER_LEDGER_ROWS_H
#define WORKER_LEDGER_ROWS_H

#include "worker/ledger_answer.h"
#include "worker/lookup.h"

enum lookup_verdict ledger_rows_verdict(enum ledger_row last, enum ledger_row next);
/* Where the next attempt is the last one that the budget allows: its failure lets the park guard
 * look one row further, and what it found there still holds when the entry is looked at again.
 * `verdict` is that of the two rows. */
enum lookup_verdict ledger_rows_with_beyond(enum lookup_verdict verdict, enum ledger_row beyond);

#endif
