/* Whether a delivery's target may be asked now: not while its circuit is open, beyond its rate, or
 * with too many deliveries in flight there. Circuits and rates are the node's (target_table.h),
 * deliveries in flight this worker's. Nobody waits here: who may not go is given back, and its
 * session rests until its turn, so that it holds up nothing but itself. Loop thread only. Contract
 * §3, Claim. */
#ifndef WORKER_TARGET_GATE_H
#define WORKER_TARGET_GATE_H

#include <stdint.h>

#include "common/core/span.h"

struct delivery;
struct worker;
struct target_gate;
struct target_place;

int target_gate_create(struct worker *worker, struct target_gate **ret);
/* Nobody may be in it any more. */
void target_gate_destroy(struct target_gate **gate);

/* 0: it may go, and is in flight until target_gate_leave. Else: how long its session is to rest, in
 * ms, and in *ret_reason what to tell of it ("": nothing). */
int64_t target_gate_enter(struct delivery *delivery, struct span *ret_reason);
/* Nothing happens to one that is not in. */
void target_gate_leave(struct delivery *delivery);

#endif
