/* The message and part ID that an entry's prompt carries, in opencode's own format, and which
 * versions of opencode take them. Pure.
 *
 * The IDs are a function of the entry's ID (its time and its 80 random bits), so that every attempt
 * carries the same ones and there is nothing to store or to lose. Contract §4 `opencode`. */
#ifndef WORKER_OPENCODE_IDS_H
#define WORKER_OPENCODE_IDS_H

#include <stdbool.h>

#include "common/core/span.h"

#define OPENCODE_ID_LEN 30 /* prefix of 4, 12 hex digits of time, 14 of 0-9A-Za-z */
struct opencode_ids {
    char message[OPENCODE_ID_LEN + 1]; /* msg_… */
    char part[OPENCODE_ID_LEN + 1];    /* prt_… */
};
/* 0, or -EINVAL: this is no entry ID. */
int opencode_ids_of(struct span entry_id, struct opencode_ids *ret);

/* Whether a server of that version ("1.18.33") may be given message IDs. Up to 1.18.14 an ID that
 * does not sort where the server's own would stops turns, or starts them without end; fixed in
 * 1.18.16. A version that can't be read takes none. */
bool opencode_takes_ids(const char *version);

#endif
