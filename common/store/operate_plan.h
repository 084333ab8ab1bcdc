/* One round of an operation: from the rows of related.lua through the resolver to what
 * carry_out.lua reads. No I/O. */
#ifndef COMMON_STORE_OPERATE_PLAN_H
#define COMMON_STORE_OPERATE_PLAN_H

#include "common/core/buf.h"
#include "common/store/store_operate.h"

struct redisReply;

struct operate_plan {
    bool was_done; /* an earlier run of this very operation did it: nothing is to be carried out */
    enum resolver_result result; /* anything but DONE: nothing is to be carried out */
    enum resolver_what what;
    struct span subject; /* the entry that the answer names; in the rows, or the request's new ID */
    struct buf bytes;    /* msgpack for carry_out.lua */
};

/* 0; -EINVAL: the patch can't be applied to what the entry holds; -EBADMSG: the rows are none;
 * -ENOMEM. operate_plan_done() in any case. */
int operate_plan_make(const struct operate_request *request, const struct redisReply *rows,
                      int64_t now_ms, struct operate_plan *ret);
void operate_plan_done(struct operate_plan *plan);

/* What stands in an entry's payload once results have filled it. *ret is the stored text, or text
 * in `out`. 0 or -ENOMEM. */
int entry_payload(const struct entry *entry, struct buf *out, struct span *ret);

#endif
