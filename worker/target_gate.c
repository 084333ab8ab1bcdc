/* A hash table of the targets that have something in flight or somebody waiting, and the turns of
 * those who wait: each is given a time of its own, one after the other, so that a target that comes
 * back, or is slow, is not stormed, and the store not kept busy by those who ask in vain. */
#include "worker/target_gate.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/shm/target_table.h"
#include "worker/delivery.h"
#include "worker/target_health.h"
#include "worker/transfer.h"
#include "worker/worker.h"

#define BUCKETS    1024 /* a power of two */
#define PURGE_FROM 1024U
#define MS_NS      INT64_C(1000000)
#define SECOND_NS  INT64_C(1000000000)

#define REST_MAX_NS      (60 * SECOND_NS) /* an audit takes a longer rest for a mistake (audit.lua) */
#define PROBE_REST_NS    (250 * MS_NS)    /* while one finds out whether the target is back … */
#define CIRCUIT_EACH_NS  (2 * MS_NS)      /* … and between those that come then */
#define FULL_REST_NS     (5 * MS_NS)
#define FULL_LATE_NS     (250 * MS_NS) /* how late a session may come to its turn */
#define FULL_EACH_MIN_NS (MS_NS / 4)
#define FULL_EACH_MAX_NS (20 * MS_NS)
#define APART_MAX_NS     (100 * MS_NS) /* a longer pause says nothing of how often one ends */

struct target_place {
    struct target_place *next;
    uint64_t key;
    uint32_t in_flight;
    uint32_t without_place;       /* sessions that were held because of that and did not come yet */
    int64_t awaited_ns;           /* until when they are waited for */
    int64_t turn_ns[LABELS_HOLD]; /* the last one that was given, by reason */
    int64_t left_ns, each_ns;     /* when the last delivery ended; about how often one does */
};

struct target_gate {
    struct worker *worker;
    struct target_limits limits;
    struct target_place *buckets[BUCKETS];
    uint32_t count, purge_at;
};

/* ---- places ---- */

static struct target_place **find(struct target_gate *gate, uint64_t key)
{
    struct target_place **at = &gate->buckets[(key ^ key >> 32) % BUCKETS];

    while (*at && (*at)->key != key) {
        at = &(*at)->next;
    }
    return at;
}

static bool is_idle(const struct target_place *place, int64_t now_ns)
{
    bool is_waited_for = false;

    for (size_t i = 0; i < LABELS_HOLD; i++) {
        is_waited_for |= place->turn_ns[i] > now_ns;
    }
    return place->in_flight == 0 && !is_waited_for && place->awaited_ns <= now_ns;
}

static void purge(struct target_gate *gate, int64_t now_ns)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        struct target_place **at = &gate->buckets[i];

        while (*at) {
            struct target_place *place = *at;

            if (is_idle(place, now_ns)) {
                *at = place->next;
                free(place);
                gate->count--;
            } else {
                at = &place->next;
            }
        }
    }
    gate->purge_at = gate->count * 2 > PURGE_FROM ? gate->count * 2 : PURGE_FROM;
}

/* NULL if out of memory. */
static struct target_place *find_or_make(struct target_gate *gate, uint64_t key, int64_t now_ns)
{
    if (*find(gate, key)) {
        return *find(gate, key);
    }
    if (gate->count >= gate->purge_at) {
        purge(gate, now_ns);
    }
    struct target_place *place = calloc(1, sizeof(*place));

    if (place) {
        place->key = key;
        place->each_ns = MS_NS;
        *find(gate, key) = place;
        gate->count++;
    }
    return place;
}

/* ---- what is told ---- */

static void note_change(struct worker *worker, const char *target, enum circuit_state before,
                        enum circuit_state after)
{
    if (before == after) {
        return;
    }
    metrics_add(worker->metrics, METRIC_target_circuit_transitions_total, after, 1);
    if (after == CIRCUIT_OPEN && before == CIRCUIT_CLOSED) {
        log_warn("a target does not answer: it is asked again later", "target", target);
    } else if (after == CIRCUIT_CLOSED) {
        log_info("a target answers again", "target", target);
    } else {
        log_debug("circuit", "target", target, "state", circuit_state_name(after));
    }
}

/* Of every request that ended, whoever made it. */
static void on_transfer_ended(const struct transfer_report *report, void *arg)
{
    struct target_gate *gate = arg;
    struct worker *worker = gate->worker;
    const enum target_health health = target_health_of(report->result, report->is_lookup);

    if (health == TARGET_SAYS_NOTHING) {
        return;
    }
    const struct circuit_input input = {
        .what = health == TARGET_IS_THERE ? CIRCUIT_HAS_ANSWERED : CIRCUIT_HAS_FAILED,
        .now_ms = clock_mono_ms(),
        .began_ms = report->began_mono_ms,
        .mark = circuit_mark(report->subject.ptr, report->subject.len),
        .may_be_own_fault = health == TARGET_IS_SILENT,
    };
    const struct target_change change = target_table_tell(
        worker->shm, target_table_key(worker->shm, report->target), &gate->limits, &input);

    note_change(worker, report->target, change.before, change.after);
}

/* ---- turns ---- */

/* The next turn of those who wait for this reason, no earlier than after `wait_ns`. */
static int64_t give_turn(struct target_place *place, enum label_hold reason, int64_t now_ns,
                         int64_t wait_ns, int64_t each_ns)
{
    int64_t *turn_ns = &place->turn_ns[reason];

    *turn_ns += each_ns;
    if (*turn_ns < now_ns + wait_ns) {
        *turn_ns = now_ns + wait_ns;
    }
    if (*turn_ns > now_ns + REST_MAX_NS) {
        *turn_ns = now_ns + REST_MAX_NS;
    }
    return *turn_ns - now_ns;
}

static int64_t hold(struct target_gate *gate, uint64_t key, enum label_hold reason, int64_t now_ns,
                    int64_t wait_ns, int64_t each_ns)
{
    struct target_place *place = find_or_make(gate, key, now_ns);
    const int64_t rest_ns =
        place ? give_turn(place, reason, now_ns, wait_ns, each_ns) : wait_ns + each_ns;

    metrics_add(gate->worker->metrics, METRIC_target_holds_total, reason, 1);
    return (rest_ns + MS_NS - 1) / MS_NS;
}

/* Twice as often as a delivery ends there, so that no place stays empty for long. */
static int64_t each_when_full_ns(const struct target_place *place)
{
    const int64_t each_ns = place->each_ns / 2;

    return each_ns < FULL_EACH_MIN_NS   ? FULL_EACH_MIN_NS
           : each_ns > FULL_EACH_MAX_NS ? FULL_EACH_MAX_NS
                                        : each_ns;
}

/* A session that goes on to its next entry lets those go first who have no place at all; they may
 * be on their way through the store still. */
static bool is_full(const struct target_gate *gate, const struct target_place *place,
                    const struct delivery *delivery, int64_t now_ns)
{
    const uint32_t limit = gate->worker->settings->targets_max_in_flight;

    return place &&
           (place->in_flight >= limit || (delivery->is_chained && place->in_flight + 1 >= limit &&
                                          place->without_place > 0 && place->awaited_ns > now_ns));
}

static int64_t hold_without_place(struct target_gate *gate, struct target_place *place,
                                  const struct delivery *delivery, int64_t now_ns)
{
    const int64_t rest_ms = hold(gate, place->key, LABEL_HOLD_IN_FLIGHT, now_ns, FULL_REST_NS,
                                 each_when_full_ns(place));

    /* One that lets others go first is not one of them: else it would wait for itself. */
    if (!delivery->is_chained) {
        place->without_place++;
        place->awaited_ns = now_ns + rest_ms * MS_NS + FULL_LATE_NS;
    }
    return rest_ms;
}

static void note_arrival(struct target_place *place, const struct delivery *delivery)
{
    if (place && !delivery->is_chained && place->without_place > 0) {
        place->without_place--;
    }
}

/* ---- deliveries ---- */

/* Whom the delivery asks first; NULL: it can't be told, and the request will not be made. */
static const char *target_of(struct delivery *delivery)
{
    const struct kind *kind = delivery->kind;
    const struct span workspace = {delivery->workspace, delivery->workspace_len};
    const char *template = "/";

    if (target_executor(&delivery->target, kind) == EXECUTOR_HTTP) {
        template = delivery->mode == CLAIM_VERIFY && kind->verify.url ? kind->verify.url
                   : kind->url                                        ? kind->url
                                                                      : "/";
    }
    return http_request_place(template, &delivery->target, workspace, delivery->entry,
                              &delivery->text);
}

int64_t target_gate_enter(struct delivery *delivery, struct span *ret_reason)
{
    struct worker *worker = delivery->worker;
    struct target_gate *gate = worker->target_gate;
    const char *target = target_of(delivery);
    const int64_t now_ns = clock_mono_ns();

    *ret_reason = (struct span){0};
    if (!target) {
        return 0;
    }
    const uint64_t key = target_table_key(worker->shm, target);
    struct target_place *place = *find(gate, key);

    note_arrival(place, delivery);
    if (is_full(gate, place, delivery, now_ns)) {
        return hold_without_place(gate, place, delivery, now_ns);
    }
    const struct target_permit permit = target_table_ask(worker->shm, key, &gate->limits, now_ns);

    note_change(worker, target, permit.before, permit.after);
    switch (permit.answer) {
    case TARGET_CIRCUIT_WAITS:
        *ret_reason = span_of("circuit_open");
        return hold(gate, key, LABEL_HOLD_CIRCUIT, now_ns,
                    permit.after == CIRCUIT_HALF_OPEN && permit.wait_ns > PROBE_REST_NS
                        ? PROBE_REST_NS
                        : permit.wait_ns,
                    CIRCUIT_EACH_NS);
    case TARGET_RATE_WAITS:
        return hold(gate, key, LABEL_HOLD_RATE, now_ns, permit.wait_ns,
                    SECOND_NS / gate->limits.per_second);
    case TARGET_MAY_BE_ASKED:
        break;
    }
    place = find_or_make(gate, key, now_ns);
    if (place) {
        place->in_flight++;
        delivery->target_place = place;
    }
    return 0;
}

void target_gate_leave(struct delivery *delivery)
{
    struct target_place *place = delivery->target_place;
    const int64_t now_ns = clock_mono_ns();

    if (!place) {
        return;
    }
    delivery->target_place = NULL;
    place->in_flight--;
    const int64_t apart_ns = now_ns - place->left_ns;

    place->each_ns += ((apart_ns < APART_MAX_NS ? apart_ns : APART_MAX_NS) - place->each_ns) / 8;
    place->left_ns = now_ns;
}

int target_gate_create(struct worker *worker, struct target_gate **ret)
{
    const struct settings *settings = worker->settings;
    struct target_gate *gate = calloc(1, sizeof(*gate));

    if (!gate) {
        return -ENOMEM;
    }
    gate->worker = worker;
    gate->purge_at = PURGE_FROM;
    gate->limits = (struct target_limits){
        .circuit = {.failures = settings->targets_circuit_failures,
                    .delay_ms = settings->targets_circuit_delay,
                    .max_ms = settings->targets_max_circuit_delay},
        .per_second = settings->targets_rate,
    };
    transfers_observe(worker->transfers, on_transfer_ended, gate);
    *ret = gate;
    return 0;
}

void target_gate_destroy(struct target_gate **gate_ptr)
{
    struct target_gate *gate = *gate_ptr;

    for (size_t i = 0; gate && i < BUCKETS; i++) {
        while (gate->buckets[i]) {
            struct target_place *place = gate->buckets[i];

            gate->buckets[i] = place->next;
            free(place);
        }
    }
    free(gate);
    *gate_ptr = NULL;
}
