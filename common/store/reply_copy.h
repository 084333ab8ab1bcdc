/* A reply that outlives its callback. Private to common/store. */
#ifndef COMMON_STORE_REPLY_COPY_H
#define COMMON_STORE_REPLY_COPY_H

struct redisReply;

/* A deep copy, or NULL when out of memory. Free with reply_copy_destroy, not with hiredis. */
struct redisReply *reply_copy_create(const struct redisReply *reply);
void reply_copy_destroy(struct redisReply **reply);

#endif
