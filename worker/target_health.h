/* What an answer, or none, says about its target: is it there? Pure. What counts as a failure is
 * only what no message can bring about by itself, or what it can, marked as such (circuit.def). */
#ifndef WORKER_TARGET_HEALTH_H
#define WORKER_TARGET_HEALTH_H

#include <stdbool.h>

struct transfer_result;

enum target_health {
    TARGET_SAYS_NOTHING, /* nobody was asked, or it can't be told whose fault it was */
    TARGET_IS_THERE,
    TARGET_IS_AWAY,   /* not reached, or somebody in front of it says that it is away */
    TARGET_IS_SILENT, /* no answer: it is away, or the message is what it can't stand */
};

/* `is_lookup`: of a look-up, of which a bad answer says nothing of deliveries. */
enum target_health target_health_of(const struct transfer_result *result, bool is_lookup);

#endif
