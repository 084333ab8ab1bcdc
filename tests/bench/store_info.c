/* What a store did so far, as it counts itself: calls of scripts, bytes of its append-only file,
 * memory. Prints one line of key=value; differences are the caller's. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisReply *info(redisContext *context, const char *section)
{
    redisReply *reply = redisCommand(context, "INFO %s", section);

    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "store-info: INFO %s: %s\n", section, reply ? reply->str : context->errstr);
        exit(1);
    }
    return reply;
}

/* The number behind `name` in a section; 0 if it is not there. */
static unsigned long long number_of(redisContext *context, const char *section, const char *name)
{
    redisReply *reply = info(context, section);
    const char *at = strstr(reply->str, name);
    const unsigned long long number = at ? strtoull(at + strlen(name), NULL, 10) : 0;

    freeReplyObject(reply);
    return number;
}

static unsigned long long script_calls(redisContext *context)
{
    return number_of(context, "commandstats", "cmdstat_evalsha:calls=") +
           number_of(context, "commandstats", "cmdstat_eval:calls=") +
           number_of(context, "commandstats", "cmdstat_fcall:calls=");
}

int main(int argc, char **argv)
{
    redisContext *context = argc == 2 ? redisConnectUnix(argv[1]) : NULL;

    if (!context || context->err) {
        fprintf(stderr, "usage: store-info SOCKET%s%s\n", context ? ": " : "",
                context ? context->errstr : "");
        return 2;
    }
    printf("script_calls=%llu aof_bytes=%llu used_memory=%llu\n", script_calls(context),
           number_of(context, "persistence", "aof_current_size:"),
           number_of(context, "memory", "\nused_memory:"));
    redisFree(context);
    return 0;
}
