/* /healthz and /readyz. Ready means what a load balancer has to know: a POST sent here is accepted,
 * and a 202 is worth what is configured. Processes that die again and again make the answer
 * `degraded`, which is still 200: what is accepted meanwhile waits durably for their return, and to
 * refuse it would turn a failing delivery into a failing client. */
#include <stdio.h>

#include "api/api.h"
#include "api/health.h"
#include "api/json_out.h"
#include "api/request.h"
#include "common/base/clock.h"
#include "common/shm/shm.h"
#include "common/store/store.h"

void handle_healthz(struct api *api, struct request *request)
{
    (void)api;
    request_answer(request, 200, "application/json", span_of("{\"status\":\"alive\"}"));
}

/* ---- processes ---- */

static int64_t until_ms(const struct shm_process *process)
{
    const int64_t left_ms = process->restart.next_start_mono_ms - clock_mono_ms();

    return left_ms > 0 ? left_ms : 0;
}

static void write_process(uint32_t slot, const struct shm_process *process, struct buf *out)
{
    json_open(out, '{');
    json_member_text(out, "role", span_of(shm_role_name(process->role)));
    json_member_i64(out, "slot", slot);
    json_member_text(out, "state", span_of(shm_process_state_name(process->state)));
    if (process->state != SHM_PROCESS_DOWN && process->restart.deaths > 0) {
        json_member_i64(out, "deathsInARow", process->restart.deaths);
        json_member_text(out, "lastDeath", span_of(shm_death_name(process->restart.last_death)));
    }
    if (process->state == SHM_PROCESS_WAITING) {
        json_member_seconds(out, "nextStartIn", until_ms(process));
    }
    json_close(out, '}');
    json_comma(out);
}

/* One sentence about a process that keeps dying. */
static void write_looping(uint32_t slot, const struct shm_process *process, struct buf *out)
{
    const int64_t left_ms = until_ms(process);
    char now[64] = "it runs again since a moment ago";
    char text[256];

    if (process->state == SHM_PROCESS_FAILED) {
        snprintf(text, sizeof(text),
                 "%s in slot %u refuses its configuration: it is not started again, see the log",
                 shm_role_name(process->role), slot);
    } else {
        if (process->state == SHM_PROCESS_WAITING) {
            snprintf(now, sizeof(now), "next start in %lld.%03d s", (long long)left_ms / 1000,
                     (int)(left_ms % 1000));
        }
        snprintf(text, sizeof(text), "%s in slot %u died %u times in a row (%s); %s",
                 shm_role_name(process->role), slot, process->restart.deaths,
                 shm_death_name(process->restart.last_death), now);
    }
    json_put_string(out, span_of(text));
    json_comma(out);
}

struct processes {
    uint32_t count;
    uint32_t slots[SHM_SLOT_MAX];
    struct shm_process read[SHM_SLOT_MAX]; /* one look, so that all parts of an answer agree */
    bool is_degraded, has_worker;
};

static void read_processes(const struct shm *shm, struct processes *ret)
{
    *ret = (struct processes){0};
    for (uint32_t slot = 0; slot < shm_slot_count(shm) && slot < SHM_SLOT_MAX; slot++) {
        struct shm_process *process = &ret->read[ret->count];

        if (shm_process_read(shm, slot, process) < 0) {
            continue;
        }
        ret->slots[ret->count++] = slot;
        ret->has_worker |=
            shm_slot_role(slot) == SHM_ROLE_WORKER && process->state == SHM_PROCESS_READY;
        ret->is_degraded |= shm_process_is_looping(process);
    }
    ret->is_degraded |= !ret->has_worker;
}

static void write_processes(const struct processes *processes, struct buf *out)
{
    if (processes->is_degraded) {
        json_open_member(out, "degraded", '[');
        for (uint32_t i = 0; i < processes->count; i++) {
            if (shm_process_is_looping(&processes->read[i])) {
                write_looping(processes->slots[i], &processes->read[i], out);
            }
        }
        if (!processes->has_worker) {
            json_put_string(out, span_of("no worker serves: what is accepted waits for one"));
        }
        json_close(out, ']');
        json_comma(out);
    }
    json_open_member(out, "processes", '[');
    for (uint32_t i = 0; i < processes->count; i++) {
        write_process(processes->slots[i], &processes->read[i], out);
    }
    json_close(out, ']');
    json_comma(out);
}

/* ---- the answer ---- */

void handle_readyz(struct api *api, struct request *request)
{
    const bool is_stopping = api->is_draining && !api->has_successor;
    const char *why_not = is_stopping ? "it is stopping" : health_store_refusal(api->health);
    struct buf *out = &request->out;
    struct processes processes;

    read_processes(api->shm, &processes);
    if (why_not) {
        problem_open(PROBLEM_NOT_READY, span_of(why_not), out);
    } else {
        json_open(out, '{');
        json_member_text(out, "status", span_of(processes.is_degraded ? "degraded" : "ready"));
    }
    json_member_text(out, "durability", span_of(api->durability));
    json_member_bool(out, "store", store_is_up(api->store));
    if (request_is_trusted(request)) { /* anybody may ask whether; what runs here is for callers */
        write_processes(&processes, out);
    }
    json_close(out, '}');
    request_answer_out(request, why_not ? 503 : 200,
                       why_not ? PROBLEM_CONTENT_TYPE : "application/json");
    if (why_not) {
        request_answer_header(request, "Retry-After", "1");
    }
}
