/* Reading claims out of replies. Private to common/store. */
#ifndef COMMON_STORE_STORE_CLAIM_REPLY_H
#define COMMON_STORE_STORE_CLAIM_REPLY_H

#include "common/store/store_internal.h"

/* A claim and the memory that its names point into. */
struct claim_room {
    struct claim claim;
    struct entry_text text;
    char workspace[WORKSPACE_ENC_MAX + 1];
    char session[SESSION_ENC_MAX + 1];
};

/* {ws, ses, id, mode, token, entry's fields, conf's fields}. 0 or -EBADMSG. */
int claim_reply_read(const struct redisReply *reply, int64_t now_ms, struct claim_room *room);
/* Decodes a percent-encoded name into `room`; empty if it is none. */
struct span read_name(struct span encoded, char *room, size_t cap);

#endif
