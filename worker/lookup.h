/* The question whether a target has an entry: read-only, asked under the entry's lock before a
 * re-send, after an unknown outcome, and by sweeps. Contract §3 Verify, §4. */
#ifndef WORKER_LOOKUP_H
#define WORKER_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/store.h"
#include "worker/target.h"

struct worker;

/* What is asked about. All of it must live until `done` ran. */
struct lookup_subject {
    struct span workspace;
    const struct entry *entry;
    const struct kind *kind;
    struct target target;
    /* The entry's as they are now (a delivery may have moved on since `entry` was read). */
    enum entry_status status;
    uint32_t attempts;
};

enum lookup_verdict {
    LOOKUP_DELIVERED,     /* the target has it */
    LOOKUP_ABSENT,        /* it proved that it has not (counts only after verify_settle) */
    LOOKUP_REFUSED,       /* the attempt is known to have failed: definite, nothing need settle */
    LOOKUP_PRIOR_PENDING, /* the target still owns that attempt */
    LOOKUP_INCONCLUSIVE,  /* no proof either way */
    LOOKUP_BROKEN,        /* it can't be asked: a template can't be filled; final */
};

struct lookup_result {
    enum lookup_verdict verdict;
    enum sent_via via;     /* of LOOKUP_DELIVERED */
    bool is_reached;       /* false: the target could not be asked, nothing left this machine */
    int64_t asked_mono_ms; /* when the question was sent that decides: absence counts from there */
    char code[72];         /* for lastError; "" : none */
    char message[256];     /* for people */
};
/* Runs once, in a later turn of the loop or within the call. */
typedef void lookup_done_cb(const struct lookup_result *result, void *arg);

/* A result to fill in: verdict and, as printf, the message. */
struct lookup_result lookup_result_make(enum lookup_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
