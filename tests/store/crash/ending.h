/* All processes are gone: what a restart, a plain worker and people make of what is left. */
#ifndef TESTS_STORE_CRASH_ENDING_H
#define TESTS_STORE_CRASH_ENDING_H

#include "tests/store/crash/gate.h"
#include "tests/store/crash/hand.h"

/* Recovers as a supervisor does at its start, drives every entry to its end, and writes into the
 * journal what does not hold. `late`: a dead process's command that arrives only now; or NULL. */
void ending_run(struct hand *hand, struct gate *gate, const struct gate_command *late);

#endif
