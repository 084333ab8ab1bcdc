/* Passes over the store that take sessions back, and the two jobs that need one: at start, and
 * after a child's death. A job repeats its pass, with a growing delay, until the store has answered
 * all of it. */
#include "supervisor/recovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "common/base/log.h"
#include "supervisor/recovery_private.h"

#define RETRY_MIN_MS    50
#define RETRY_MAX_MS    1000
#define PART_SESSIONS   64
#define TOKEN_BYTES_MAX 4096
#define PART_BYTES      (256U << 10) /* of encoded names and tokens; a part is full at half of it */

struct job {
    struct sweep sweep; /* first: a sweep's callback gets its job */
    uv_timer_t timer;
    int64_t delay_ms, started_ms;
    uint32_t total;
    const char *what;
    void (*done)(void *arg); /* may be NULL */
    void *done_arg;
};

/* ---- one pass ---- */

static void sweep_answered(struct sweep *sweep)
{
    if (--sweep->outstanding > 0) {
        return;
    }
    const struct recovery_options *options = &sweep->recovery->options;

    for (uint32_t p = 0; p < PARTITION_COUNT && !sweep->recovery->is_stopped; p++) {
        if (sweep->dirty >> p & 1) {
            options->recovered(p, options->arg);
        }
    }
    sweep->done(sweep);
}

/* What is taken back in one partition: in calls of a bounded size, one after the other, so that the
 * store serves others between them and its connections' queues never fill. */
struct part {
    struct part *next;
    struct buf list;
    uint32_t count;
    int8_t reasons[PART_SESSIONS];
};

struct taking {
    struct sweep *sweep;
    uint32_t partition;
    struct part *first, *last;
};

static void free_parts(struct taking *taking)
{
    while (taking->first) {
        struct part *part = taking->first;

        taking->first = part->next;
        buf_done(&part->list);
        free(part);
    }
}

static void take_next(struct taking *taking);

static void count_taken(struct taking *taking, const struct part *part, struct span flags)
{
    struct sweep *sweep = taking->sweep;

    for (size_t i = 0; i < part->count && i < flags.len; i++) {
        if (flags.ptr[i] == '1') {
            sweep->recovered++;
            sweep->dirty |= UINT64_C(1) << taking->partition;
            metrics_add(sweep->recovery->options.metrics, METRIC_locks_recovered_total,
                        (size_t)part->reasons[i], 1);
        }
    }
}

static void on_taken(enum store_result result, struct span flags, void *arg)
{
    struct taking *taking = arg;
    struct part *part = taking->first;

    if (result != STORE_OK || flags.len != part->count) {
        taking->sweep->failures++;
    }
    count_taken(taking, part, flags);
    taking->first = part->next;
    buf_done(&part->list);
    free(part);
    take_next(taking);
}

static void take_next(struct taking *taking)
{
    struct sweep *sweep = taking->sweep;

    if (sweep->recovery->is_stopped) {
        free_parts(taking);
    }
    if (!taking->first) {
        free(taking);
        sweep_answered(sweep);
        return;
    }
    store_recover(sweep->recovery->options.store, taking->partition,
                  (struct span){taking->first->list.bytes, taking->first->list.len}, on_taken,
                  taking);
}

/* The part that has room. NULL: out of memory. */
static struct part *open_part(struct taking *taking)
{
    struct part *part = taking->last;

    if (part && part->count < PART_SESSIONS && part->list.len < PART_BYTES / 2) {
        return part;
    }
    part = calloc(1, sizeof(*part));
    if (!part) {
        return NULL;
    }
    buf_init(&part->list, PART_BYTES);
    if (taking->last) {
        taking->last->next = part;
    } else {
        taking->first = part;
    }
    taking->last = part;
    return part;
}

/* Without memory the pass is repeated. */
static void add(struct taking *taking, const struct held_session *held, int reason)
{
    struct part *part = open_part(taking);

    if (part && store_recover_list(&part->list, held->workspace, held->session, held->token) == 0) {
        part->reasons[part->count++] = (int8_t)reason;
        return;
    }
    taking->sweep->failures++;
    if (part) {
        part->count = 0; /* the list is lost as a whole */
        buf_reset(&part->list);
    }
}

static void on_held(enum store_result result, const struct held_session *held, size_t count,
                    void *arg)
{
    struct looking *looking = arg;
    struct sweep *sweep = looking->sweep;
    struct taking *taking = calloc(1, sizeof(*taking));

    if (result != STORE_OK || sweep->recovery->is_stopped || !taking) {
        sweep->failures++;
        count = 0;
    }
    if (!taking) {
        sweep_answered(sweep);
        return;
    }
    taking->sweep = sweep;
    taking->partition = looking->partition;
    for (size_t i = 0; i < count; i++) {
        const int reason = sweep->judge(sweep, &held[i]);

        /* One longer than any of ours was written by others, and goes with its time to live. */
        if (reason >= 0 && held[i].token.len <= TOKEN_BYTES_MAX) {
            add(taking, &held[i], reason);
        }
    }
    take_next(taking);
}

void sweep_start(struct sweep *sweep, uint32_t first_partition, uint32_t count)
{
    sweep->dirty = 0;
    sweep->failures = 0;
    sweep->recovered = 0;
    sweep->outstanding = count;
    for (uint32_t i = 0; i < count; i++) {
        struct looking *looking = &sweep->looking[first_partition + i];

        *looking = (struct looking){sweep, first_partition + i};
        store_held(sweep->recovery->options.store, first_partition + i, span_of(sweep->prefix.text),
                   on_held, looking);
    }
}

int recovery_is_dead_here(const struct recovery *recovery, const struct token_parts *token)
{
    const struct generation *own = recovery->options.generation;

    if (strcmp(token->node, own->node) != 0) {
        return -ENOENT;
    }
    return inherit_slot_is_free(own->state_dir, token->generation, token->slot);
}

/* ---- jobs ---- */

static void on_job_closed(uv_handle_t *handle)
{
    struct job *job = handle->data;

    job->sweep.recovery->handles--;
    free(job);
}

static void job_end(struct job *job)
{
    if (job->done && !job->sweep.recovery->is_stopped) {
        job->done(job->done_arg);
    }
    uv_close((uv_handle_t *)&job->timer, on_job_closed);
}

static void job_run(uv_timer_t *timer)
{
    struct job *job = timer->data;

    if (job->sweep.recovery->is_stopped) {
        job_end(job);
        return;
    }
    sweep_start(&job->sweep, 0, PARTITION_COUNT);
}

static void job_pass_done(struct sweep *sweep)
{
    struct job *job = (struct job *)sweep;

    job->total += sweep->recovered;
    if (sweep->failures > 0 && !sweep->recovery->is_stopped) {
        uv_timer_start(&job->timer, job_run, (uint64_t)job->delay_ms,
                       0); /* can't fail: has a callback, isn't closing */
        job->delay_ms = job->delay_ms * 2 < RETRY_MAX_MS ? job->delay_ms * 2 : RETRY_MAX_MS;
        return;
    }
    if (!sweep->recovery->is_stopped) {
        log_write(job->total > 0 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, job->what, "sessions",
                  LOG_I64(job->total), "took_ms", LOG_I64(clock_mono_ms() - job->started_ms),
                  (const char *)NULL);
    }
    job_end(job);
}

static int judge_prefix(struct sweep *sweep, const struct held_session *held)
{
    const size_t len = strlen(sweep->prefix.text);

    /* The store also names locks that expired; those are the periodic pass's. */
    if (held->token.len < len || memcmp(held->token.ptr, sweep->prefix.text, len) != 0) {
        return -1;
    }
    return LABEL_RECOVERY_REASON_WORKER_DIED;
}

static int judge_at_start(struct sweep *sweep, const struct held_session *held)
{
    struct token_parts token;

    if (held->token.len == 0) {
        return LABEL_RECOVERY_REASON_UNLOCKED;
    }
    if (held->deadline_ms <= held->now_ms) {
        return LABEL_RECOVERY_REASON_EXPIRED;
    }
    if (lock_token_parse(held->token.ptr, held->token.len, &token) < 0 ||
        recovery_is_dead_here(sweep->recovery, &token) != 1) {
        return -1;
    }
    return LABEL_RECOVERY_REASON_SUPERVISOR_START;
}

static struct job *job_create(struct recovery *recovery, sweep_judge *judge, const char *what)
{
    struct job *job = calloc(1, sizeof(*job));

    if (!job) {
        abort(); /* a small fixed object (style, Errors): restart and recovery are the tested path
                  */
    }
    job->sweep.recovery = recovery;
    job->sweep.judge = judge;
    job->sweep.done = job_pass_done;
    job->delay_ms = RETRY_MIN_MS;
    job->started_ms = clock_mono_ms();
    job->what = what;
    (void)uv_timer_init(recovery->options.loop, &job->timer); /* never fails */
    job->timer.data = job;
    recovery->handles++;
    return job;
}

void recovery_at_start(struct recovery *recovery, void (*done)(void *arg), void *arg)
{
    const struct generation *own = recovery->options.generation;
    struct job *job = job_create(recovery, judge_at_start, "recovered what dead processes held");

    job->done = done;
    job->done_arg = arg;
    /* "node.": tokens of this node, of whatever generation. At most 64 bytes and a dot. */
    memcpy(job->sweep.prefix.text, own->node, strlen(own->node));
    job->sweep.prefix.text[strlen(own->node)] = '.';
    job_run(&job->timer);
}

void recovery_of_process(struct recovery *recovery, uint64_t generation, uint32_t slot,
                         uint64_t incarnation)
{
    const struct generation *own = recovery->options.generation;
    struct token_parts parts = {.generation = generation, .slot = slot, .incarnation = incarnation};

    if (recovery->is_stopped) {
        return;
    }
    struct job *job = job_create(recovery, judge_prefix, "recovered what a dead worker held");

    memcpy(parts.node, own->node, sizeof(parts.node));
    job->sweep.prefix = lock_token_process_prefix(&parts);
    job_run(&job->timer);
}

int recovery_create(struct recovery **ret, const struct recovery_options *options)
{
    struct recovery *recovery = calloc(1, sizeof(*recovery));

    if (!recovery) {
        return -ENOMEM;
    }
    recovery->options = *options;
    node_watch_init(&recovery->nodes);
    *ret = recovery;
    return 0;
}

void recovery_destroy(struct recovery **recovery)
{
    free(*recovery);
    *recovery = NULL;
}
