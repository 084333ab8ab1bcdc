/* What follows from a look-up's verdict, by what the entry was looked up for. Pure, a table.
 * Contract §3 Verify, §4. */
#ifndef WORKER_LOOKUP_STEP_H
#define WORKER_LOOKUP_STEP_H

#include "worker/lookup.h"

/* Why it was asked. */
enum lookup_reason {
    LOOKUP_FOR_CLAIMED_SEND, /* `sends` is raised already: what went before has to be known first */
    LOOKUP_FOR_RESEND,       /* pending: every earlier attempt is known to have failed */
    LOOKUP_FOR_VERIFYING,    /* the last attempt's outcome is unknown */
    LOOKUP_FOR_POLL,         /* the target owned the last attempt when it was asked before */
    LOOKUP_REASON_COUNT,
};

enum lookup_then {
    LOOKUP_THEN_RECORD,     /* `outcome` goes to the store */
    LOOKUP_THEN_BEGIN_SEND, /* store_begin_send, then the request */
    LOOKUP_THEN_REQUEST,    /* the request */
};
struct lookup_step {
    enum lookup_then then;
    enum outcome outcome;
    bool must_settle; /* counts only if asked verify_settle after the last attempt's end */
};

struct lookup_step lookup_step(enum lookup_reason reason, enum lookup_verdict verdict,
                               bool is_reached);

#endif
