/* A worker: claims, asks or sends, writes down what came of it, goes on with the session's next
 * entry. Decides by the tables of the real one; its target is the journal's. */
#ifndef TESTS_STORE_CRASH_WORK_H
#define TESTS_STORE_CRASH_WORK_H

#include "tests/store/crash/hand.h"

/* How the target answers the first request; all others are stored and confirmed. */
enum target_answer {
    TARGET_CONFIRMS,
    TARGET_ANSWER_LOST,  /* it stored it */
    TARGET_REQUEST_LOST, /* it did not */
    TARGET_REFUSES,
    TARGET_UNREACHED,
    TARGET_FAILS_IT, /* for good */
    TARGET_CONFLICTS,
    TARGET_OWNS_IT, /* and will carry it out */
};

struct work_plan {
    enum target_answer first;
    bool is_blind;       /* the first look-up tells nothing */
    bool is_single;      /* gives the lock back behind each entry */
    bool gives_back;     /* its first claim, unsent */
    bool notes_baseline; /* before each request */
    bool is_ledger;      /* its failures are settled by sweeps */
    unsigned claims;     /* at most; it stops when there is nothing */
};

/* False: the hand died. *ret_claimed, if not NULL: entries of all claims. */
bool work(struct hand *hand, const struct work_plan *plan, unsigned *ret_claimed);
/* One pass of a worker over failed entries. */
bool work_sweep(struct hand *hand);

#endif
