/* Asks the running outboxd: its processes by shared memory, the rest by its API. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ctl/asking.h"
#include "api/ctl/doctor/look.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/metrics_text.h"
#include "api/ctl/status_read.h"
#include "api/ctl/top_sample.h"

#define CALL_MS 5000

/* ---- processes ---- */

/* "Max open files  SOFT  HARD  files": the soft one; -1 where we may not read it. */
static int64_t read_file_limit(int32_t pid)
{
    char path[64], line[256];
    int64_t limit = -1;

    snprintf(path, sizeof(path), "/proc/%" PRId32 "/limits", pid);
    FILE *file = fopen(path, "re");

    while (file && fgets(line, sizeof(line), file)) {
        static const char name[] = "Max open files";

        if (strncmp(line, name, sizeof(name) - 1) == 0) {
            char *end;
            const long long number = strtoll(line + sizeof(name) - 1, &end, 10);

            limit = end != line + sizeof(name) - 1 ? number : INT64_MAX; /* unlimited */
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return limit;
}

static bool is_replaced(int32_t pid)
{
    static const char ending[] = " (deleted)";
    char path[64], program[4096];

    snprintf(path, sizeof(path), "/proc/%" PRId32 "/exe", pid);
    const ssize_t len = readlink(path, program, sizeof(program));

    return len >= (ssize_t)sizeof(ending) &&
           memcmp(program + len - (sizeof(ending) - 1), ending, sizeof(ending) - 1) == 0;
}

void look_at_processes(struct facts *facts)
{
    struct top_sample *sample = NULL;

    if (!facts->settings || top_sample_take(&sample, facts->settings->state_dir) < 0) {
        return;
    }
    for (size_t i = 0; i < sample->process_count && facts->process_count < PROCESSES_MAX; i++) {
        const struct top_process *process = &sample->processes[i];

        if (process->pid > 0) {
            facts->processes[facts->process_count++] = (struct process_fact){
                .role = shm_role_name(process->role),
                .state = shm_process_state_name(process->state),
                .pid = process->pid,
                .heartbeat_age_ms = process->heartbeat_age_ms,
                .file_limit = read_file_limit(process->pid),
                .is_program_replaced = is_replaced(process->pid),
            };
        }
    }
    top_sample_destroy(&sample);
}

/* ---- API ---- */

static void take_degraded(const json_t *sentences, struct facts *facts)
{
    const json_t *sentence;
    size_t i, len = 0;

    json_array_foreach(sentences, i, sentence)
    {
        const char *text = json_string_value(sentence);
        const size_t room = sizeof(facts->degraded) - len;
        const int more =
            snprintf(facts->degraded + len, room, "%s%s", i > 0 ? "; " : "", text ? text : "?");

        len += more > 0 && (size_t)more < room ? (size_t)more : 0;
    }
}

static void take_state(const json_t *state, struct facts *facts)
{
    const json_t *errors = json_object_get(json_object_get(state, "entries"), "error");
    const json_t *restarts = json_object_get(state, "restarts");

    facts->is_server_there = true;
    facts->is_server_ready = json_is_true(json_object_get(state, "ready"));
    snprintf(facts->why_not_ready, sizeof(facts->why_not_ready), "%s", answer_text(state, "why"));
    take_degraded(json_object_get(state, "degraded"), facts);
    snprintf(facts->server_version, sizeof(facts->server_version), "%s",
             answer_text(state, "version"));
    facts->restarts = restarts ? json_number_value(restarts) : -1;
    facts->failed_entries = errors ? json_number_value(errors) : -1;
    facts->oldest_open_age_s = json_number_value(json_object_get(state, "oldestOpenAge"));
}

void look_at_server(const struct options *options, struct facts *facts)
{
    struct asking asking;

    facts->restarts = -1;
    facts->failed_entries = -1;
    if (asking_open(&asking, options) != EXIT_CODE_OK) {
        return;
    }
    struct http_answer answer;
    json_t *state = NULL;

    asking.limit_ms = CALL_MS;
    facts->is_server_asked = true;
    switch (status_read(&asking, &state, &answer)) {
    case 0:
        take_state(state, facts);
        json_decref(state);
        break;
    case -EPROTO:
        http_answer_done(&answer);
        break;
    default:
        break;
    }
    asking_close(&asking);
}
