/* What a ledger says of one row: (HTTP status, body) -> state. Pure; the answer is untrusted.
 * Contract §4 `ledger`. */
#ifndef WORKER_LEDGER_ANSWER_H
#define WORKER_LEDGER_ANSWER_H

#include "common/core/span.h"

/* A row stands for one attempt of one entry. */
enum ledger_row {
    LEDGER_ROW_COMPLETE, /* admitted, promoted, turn ended or stalled: the target has it */
    LEDGER_ROW_LEDGERED, /* noted, nothing decided yet: the target owns the attempt */
    LEDGER_ROW_FAILED,   /* the attempt has failed for good */
    LEDGER_ROW_ABSENT,   /* there is no such row */
    LEDGER_ROW_UNKNOWN,  /* it is in a state that this version does not know */
    LEDGER_ROW_UNREAD,   /* it could not be looked up, or the answer can't be read */
    LEDGER_ROW_COUNT,
};

/* `status` 0: no answer came. No row is what says so: a 2xx whose object has no state (or the
 * unspecified one), or Connect's error `not_found`. A 404 without that code is anybody's. */
enum ledger_row ledger_answer_read(int status, struct span body);

#endif
