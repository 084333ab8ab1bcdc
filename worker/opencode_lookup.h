/* Whether opencode has an entry's prompt: an exact look-up of its message ID, or, for entries that
 * were sent without one, a scan of the transcript. Contract §3 Verify, §4 `opencode`. */
#ifndef WORKER_OPENCODE_LOOKUP_H
#define WORKER_OPENCODE_LOOKUP_H

#include "worker/lookup.h"

/* As executor->look_up. All of it takes verify_timeout at most. */
int opencode_look_up(struct worker *worker, const struct lookup_subject *subject,
                     lookup_done_cb *done, void *arg);

#endif
