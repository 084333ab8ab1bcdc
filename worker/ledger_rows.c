/* The table. One row that completes decides, then one that is still ledgered; then nothing is known
 * unless both were read; a failed next row is that attempt's end; else the next attempt is free. */
#include "worker/ledger_rows.h"

#include <stddef.h>

#define HAS  LOOKUP_DELIVERED
#define OWNS LOOKUP_PRIOR_PENDING
#define LOST LOOKUP_REFUSED
#define FREE LOOKUP_ABSENT
#define NONE LOOKUP_INCONCLUSIVE

// clang-format off
static const enum lookup_verdict verdicts[LEDGER_ROW_COUNT][LEDGER_ROW_COUNT] = {
    [LEDGER_ROW_COMPLETE] = {[LEDGER_ROW_COMPLETE] = HAS, [LEDGER_ROW_LEDGERED] = HAS,  [LEDGER_ROW_FAILED] = HAS,  [LEDGER_ROW_ABSENT] = HAS,  [LEDGER_ROW_UNKNOWN] = HAS,  [LEDGER_ROW_UNREAD] = HAS},
    [LEDGER_ROW_LEDGERED] = {[LEDGER_ROW_COMPLETE] = HAS, [LEDGER_ROW_LEDGERED] = OWNS, [LEDGER_ROW_FAILED] = OWNS, [LEDGER_ROW_ABSENT] = OWNS, [LEDGER_ROW_UNKNOWN] = OWNS, [LEDGER_ROW_UNREAD] = OWNS},
    [LEDGER_ROW_FAILED]   = {[LEDGER_ROW_COMPLETE] = HAS, [LEDGER_ROW_LEDGERED] = OWNS, [LEDGER_ROW_FAILED] = LOST, [LEDGER_ROW_ABSENT] = FREE, [LEDGER_ROW_UNKNOWN] = NONE, [LEDGER_ROW_UNREAD] = NONE},
    [LEDGER_ROW_ABSENT]   = {[LEDGER_ROW_COMPLETE] = HAS, [LEDGER_ROW_LEDGERED] = OWNS, [LEDGER_ROW_FAILED] = LOST, [LEDGER_ROW_ABSENT] = FREE, [LEDGER_ROW_UNKNOWN] = NONE, [LEDGER_ROW_UNREAD] = NONE},
    [LEDGER_ROW_UNKNOWN]  = {[LEDGER_ROW_COMPLETE] = HAS, [LEDGER_ROW_LEDGERED] = OWNS, [LEDGER_ROW_FAILED] = NONE, [LEDGER_ROW_ABSENT] = NONE, [LEDGER_ROW_UNKNOWN] = NONE, [LEDGER_ROW_UNREAD] = NONE},
    [LEDGER_ROW_UNREAD]   = {[LEDGER_ROW_COMPLETE] = HAS, [LEDGER_ROW_LEDGERED] = OWNS, [LEDGER_ROW_FAILED] = NONE, [LEDGER_ROW_ABSENT] = NONE, [LEDGER_ROW_UNKNOWN] = NONE, [LEDGER_ROW_UNREAD] = NONE},
};
// clang-format on

enum lookup_verdict ledger_rows_verdict(enum ledger_row last, enum ledger_row next)
{
    return verdicts[last][next];
}

enum lookup_verdict ledger_rows_with_beyond(enum lookup_verdict verdict, enum ledger_row beyond)
{
    static const enum lookup_verdict strongest_first[] = {HAS, OWNS, NONE};
    const enum lookup_verdict alone = verdicts[beyond][LEDGER_ROW_ABSENT];

    for (size_t i = 0; i < sizeof(strongest_first) / sizeof(strongest_first[0]); i++) {
        if (verdict == strongest_first[i] || alone == strongest_first[i]) {
            return strongest_first[i];
        }
    }
    return verdict;
}
