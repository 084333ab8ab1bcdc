/* Copies a reply: hiredis frees the original once its callback returns, and an answer that waits
 * for its replicas is told only after the next one. Depth is bounded: hiredis refuses replies
 * nested deeper than 7. */
#include "common/store/reply_copy.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

static int copy_into(const struct redisReply *reply, struct redisReply *copy)
{
    copy->type = reply->type;
    copy->integer = reply->integer;
    if (reply->str) {
        copy->str = malloc(reply->len + 1);
        if (!copy->str) {
            return -1;
        }
        memcpy(copy->str, reply->str, reply->len);
        copy->str[reply->len] = '\0';
        copy->len = reply->len;
    }
    if (reply->elements == 0) {
        return 0;
    }
    copy->element = calloc(reply->elements, sizeof(struct redisReply *));
    if (!copy->element) {
        return -1;
    }
    copy->elements = reply->elements;
    for (size_t i = 0; i < reply->elements; i++) {
        copy->element[i] = reply_copy_create(reply->element[i]);
        if (!copy->element[i]) {
            return -1;
        }
    }
    return 0;
}

struct redisReply *reply_copy_create(const struct redisReply *reply)
{
    struct redisReply *copy = calloc(1, sizeof(*copy));

    if (copy && copy_into(reply, copy) < 0) {
        reply_copy_destroy(&copy);
    }
    return copy;
}

void reply_copy_destroy(struct redisReply **reply)
{
    struct redisReply *copy = *reply;

    *reply = NULL;
    if (!copy) {
        return;
    }
    for (size_t i = 0; i < copy->elements; i++) {
        reply_copy_destroy(&copy->element[i]);
    }
    free(copy->element);
    free(copy->str);
    free(copy);
}
