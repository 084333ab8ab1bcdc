/* The store's own limit: how many accepts a second the real accept script does when a pipelining
 * client drives it directly, with no HTTP in front. Prints one line of key=value. Benchmark only:
 * exits on the first trouble. */
#include <getopt.h>
#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "common/core/keys.h"
#include "common/store/scripts.h"

#define BODY_BYTES 1100 /* a 1 KB text and its msgpack frame */
#define ARG_COUNT  16

struct bench {
    const char *socket_path;
    unsigned connections, depth, workspaces, sessions;
    double seconds;
    uint64_t end_ns, run, sequence, accepted, refused, live, latency_sum_ns;
    char body[BODY_BYTES];
};

static struct bench bench = {
    .connections = 16, .depth = 16, .workspaces = 8, .sessions = 1000, .seconds = 5};

struct slot {
    redisAsyncContext *context;
    uint64_t sent_ns;
};

static void issue(struct slot *slot);

static void on_reply(redisAsyncContext *context, void *raw, void *arg)
{
    const redisReply *reply = raw;
    struct slot *slot = arg;
    uint64_t now = uv_hrtime();

    (void)context;
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->str && strcmp(reply->element[0]->str, "accepted") == 0) {
        bench.accepted++;
    } else {
        if (bench.refused++ == 0) {
            fprintf(stderr, "first refusal: %s\n", reply && reply->str ? reply->str : "?");
        }
    }
    bench.latency_sum_ns += now - slot->sent_ns;
    if (now < bench.end_ns && reply) {
        issue(slot);
    } else if (--bench.live == 0) {
        uv_stop(uv_default_loop());
    }
}

static void issue(struct slot *slot)
{
    uint64_t n = bench.sequence++;
    char workspace[32], session[32], id[40], cmid[40], key[128], partition[8];

    snprintf(workspace, sizeof(workspace), "bench-%u", (unsigned)(n % bench.workspaces));
    snprintf(session, sizeof(session), "session-%u", (unsigned)(n % bench.sessions));
    snprintf(id, sizeof(id), "ob_%013llx%013llu", (unsigned long long)bench.run,
             (unsigned long long)n);
    snprintf(cmid, sizeof(cmid), "message-%013llx-%llu", (unsigned long long)bench.run,
             (unsigned long long)n);
    unsigned p = partition_of(workspace, strlen(workspace));

    snprintf(partition, sizeof(partition), "%u", p);
    snprintf(key, sizeof(key), "outboxq:{%u}:%s:%s", p, workspace, session);
    const char *argv[ARG_COUNT] = {"EVALSHA",
                                   store_scripts[SCRIPT_ACCEPT].sha1,
                                   "1",
                                   key,
                                   partition,
                                   "100000",
                                   workspace,
                                   session,
                                   id,
                                   cmid,
                                   "0123456789abcdef0123456789abcdef",
                                   "prompt",
                                   "s",
                                   "user-1",
                                   bench.body,
                                   "1000000"};
    size_t lens[ARG_COUNT];

    for (int i = 0; i < ARG_COUNT; i++) {
        lens[i] = argv[i] == bench.body ? sizeof(bench.body) : strlen(argv[i]);
    }
    slot->sent_ns = uv_hrtime();
    redisAsyncCommandArgv(slot->context, on_reply, slot, ARG_COUNT, argv, lens);
}

static void load_script(void)
{
    redisContext *context = redisConnectUnix(bench.socket_path);
    const struct store_script *script = &store_scripts[SCRIPT_ACCEPT];

    if (!context || context->err) {
        fprintf(stderr, "cannot connect to %s\n", bench.socket_path);
        exit(1);
    }
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %b", script->text, script->text_len);

    if (!reply || reply->type != REDIS_REPLY_STATUS) {
        if (!reply || reply->type != REDIS_REPLY_STRING) {
            fprintf(stderr, "cannot load the script: %s\n", reply && reply->str ? reply->str : "?");
            exit(1);
        }
    }
    freeReplyObject(reply);
    redisFree(context);
}

static void parse(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "s:c:d:t:m:w:")) != -1) {
        switch (option) {
        case 's':
            bench.socket_path = optarg;
            break;
        case 'c':
            bench.connections = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'd':
            bench.depth = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 't':
            bench.seconds = strtod(optarg, NULL);
            break;
        case 'm':
            bench.sessions = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'w':
            bench.workspaces = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            exit(2);
        }
    }
    if (!bench.socket_path) {
        fprintf(stderr, "usage: script_limit -s SOCKET [-c connections] [-d depth] [-t seconds] "
                        "[-m sessions]\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    memset(bench.body, 'x', sizeof(bench.body));
    load_script();
    uint64_t start = uv_hrtime();

    bench.run =
        start & 0xfffffffffffff; /* every run has names of its own: nothing is a duplicate */
    bench.end_ns = start + (uint64_t)(bench.seconds * 1e9);
    for (unsigned i = 0; i < bench.connections; i++) {
        redisAsyncContext *context = redisAsyncConnectUnix(bench.socket_path);

        redisLibuvAttach(context, uv_default_loop());
        for (unsigned k = 0; k < bench.depth; k++) {
            struct slot *slot = calloc(1, sizeof(*slot));

            slot->context = context;
            bench.live++;
            issue(slot);
        }
    }
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    double elapsed = (double)(uv_hrtime() - start) / 1e9;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("accepts_per_s=%.0f refused=%llu mean_ms=%.2f cpu.client=%.0f\n",
           (double)bench.accepted / elapsed, (unsigned long long)bench.refused,
           (double)bench.latency_sum_ns / 1e6 / (double)(bench.accepted + bench.refused + 1),
           100 * cpu / elapsed);
    return 0;
}
