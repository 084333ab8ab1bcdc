/* One entry under its lock: from a claim to an outcome that the store has acknowledged. Contract
 * §3, §4, §8. */
#ifndef WORKER_DELIVERY_H
#define WORKER_DELIVERY_H

#include <stdint.h>
#include <uv.h>

#include "common/core/keys.h"
#include "common/core/lifecycle.h"
#include "common/store/store.h"
#include "worker/http_request.h"
#include "worker/lookup.h"

struct worker;
struct executor;
struct target_place;
struct transfer_result;

/* Of a kind with a limit (kind_places.h). */
enum delivery_place { DELIVERY_HAS_NO_PLACE, DELIVERY_WAITS_FOR_PLACE, DELIVERY_HAS_PLACE };

/* What an attempt or look-up came to, on its way to the store. */
struct verdict {
    enum outcome outcome;
    enum sent_via via;      /* for OUTCOME_CONFIRMED */
    bool is_unsent;         /* no request was started: the claim's `sends` is taken back */
    int64_t retry_after_ms; /* <0: none */
    int64_t settle_left_ms; /* for OUTCOME_TOO_EARLY */
    char code[72];          /* of lastError; "" : the lifecycle's own */
    char message[256];
    char *conflict_current; /* owned; NULL if none */
    char *result;           /* of a confirmation: payload_result's line; owned; NULL if none */
};

/* The steps of a delivery; exactly one holds. */
enum delivery_step {
    STEP_WAITING,    /* for a place of its kind */
    STEP_CHECKING,   /* asks the store whether the lock is still ours */
    STEP_REQUESTING, /* the request runs */
    STEP_LOOKING_UP, /* the look-up runs */
    STEP_GUARDING,   /* the target is asked once more before the entry becomes `error` */
    STEP_BEGINNING,  /* begin_send is at the store */
    STEP_RECORDING,  /* the outcome is at the store, repeated until it is acknowledged */
    STEP_RELEASING,  /* given back unsent */
};

struct delivery {
    struct worker *worker;
    enum delivery_step step;
    char workspace[WORKSPACE_ENC_MAX + 1]; /* names that the table of held sessions points into */
    char session[SESSION_ENC_MAX + 1];
    size_t workspace_len, session_len;
    struct entry *entry; /* owned copy */
    char id[64];         /* its ID as a C string, for the log */
    struct buf payload;  /* what the entry's payload points to, if results have filled it */
    const struct kind *kind;
    struct target target; /* the workspace's own, or the configured one */
    struct json_t *target_owner;
    bool is_target_readable;
    const struct executor *executor;
    enum claim_mode mode;
    enum entry_status status; /* as the store has it */
    uint32_t sends;
    struct lock_token token;
    int64_t lock_boot_ms; /* the lock lives lock_ttl from here on at least */
    int64_t
        asked_boot_ms; /* when the last outcome was sent: the next entry's lock counts from there */
    int64_t claim_store_ms, claim_mono_ms; /* the store's clock at the claim, and ours */
    int64_t send_mono_ms;                  /* when the executor began to send */
    int64_t owner_asked_boot_ms; /* when the store was last asked whether the lock is ours … */
    int64_t owned_boot_ms;   /* … and when it was for the last time that it said yes; 0: never */
    int64_t request_mono_ns; /* start of the request; 0: none yet */
    int shown;               /* index in the shared lock table, or negative */
    enum delivery_place place;
    struct delivery *next_waiting, *previous_waiting; /* while it waits for one */
    struct target_place *target_place; /* in flight at its target (target_gate.h); NULL: not */
    bool is_chained;                   /* the session went on to this entry without being let go */
    bool must_ask_owner;               /* it has waited: much may have happened to the entry */
    bool is_detached; /* its session is another delivery's now: only its answer is waited for */
    bool is_guarded;  /* the guard has been asked about this outcome */
    struct lookup_subject subject; /* of the look-up that runs */
    struct http_request_text text; /* of the request that runs */
    void *work;                    /* the executor's own, freed with the attempt */
    struct verdict verdict;
    int64_t release_delay_ms;
    bool rests;              /* given back for the session to rest … */
    struct span rest_reason; /* … for this; static */
    int64_t repeat_ms;
    uv_timer_t repeat;
};

/* Takes over a claim whose locks were asked for at `sent_boot_ms`. A session that is held already
 * under the same token is the same answer told twice: ignored. While draining it is given back. */
void delivery_take(struct worker *worker, const struct claim *claim, int64_t sent_boot_ms);

/* ---- between delivery.c, attempt.c, record.c and the executors ---- */

struct claim_ref delivery_ref(const struct delivery *delivery);
/* What a look-up asks about; its spans point into the delivery. */
struct lookup_subject delivery_subject(const struct delivery *delivery);
/* What to do with the entry that the delivery holds now. */
void delivery_begin(struct delivery *delivery);
/* Its kind has a place for it now, or has had none for too long. */
void delivery_begin_in_place(struct delivery *delivery);
void delivery_find_no_place(struct delivery *delivery);
/* Loads the next entry of the same session under the same lock, and begins. */
void delivery_go_on(struct delivery *delivery, const struct claim *next, int64_t sent_boot_ms);
/* The session is let go of: frees everything. */
void delivery_end(struct delivery *delivery);

void attempt_request(struct delivery *delivery); /* guards, builds and sends the request */
void attempt_look_up(struct delivery *delivery);
void attempt_begin_send(struct delivery *delivery); /* store_begin_send, then the request */
/* For executors: the guards once more, for the moment in which the connection is there: a machine
 * may have slept meanwhile (fits transfer_request.may_start). */
bool attempt_may_start(void *delivery);
/* What follows if they said no: no attempt was made. True: recorded. */
bool attempt_was_too_late(struct delivery *delivery, const struct transfer_result *result);
/* The request is about to be written (fits transfer_start), and its answer came: what the metrics
 * show. */
void attempt_started(void *delivery);
void attempt_answered(struct delivery *delivery);

/* Hands the verdict to the store; repeats until it is acknowledged. Before it makes the entry
 * `error`, the executor's guard is asked. */
void record_outcome(struct delivery *delivery);
/* Gives the claim back unsent. */
void record_release(struct delivery *delivery, int64_t delay_ms);
/* The same, and its session rests (store_hold). `reason`: static. */
void record_rest(struct delivery *delivery, int64_t delay_ms, struct span reason);
/* A verdict without a request: FAILED with a code of ours. */
void record_failed(struct delivery *delivery, enum error_code code, const char *message);
/* Repeats a store call after a growing delay; false: it will never succeed (an error that is no
 * outage), given up. */
bool record_repeat_later(struct delivery *delivery, enum store_result result, uv_timer_cb again);

#endif
