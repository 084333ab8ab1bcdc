/* Judges the running outboxd. */
#include <string.h>

#include "api/ctl/doctor/facts.h"
#include "api/ctl/doctor/findings.h"
#include "api/ctl/print.h"
#include "build_config.h"

#define OLD_AS_STUCK                                                                               \
    10 /* an entry that is so many times older than stuck_after is worth a look                    \
        */

void rule_server_ready(const struct facts *facts, struct findings *findings)
{
    if (!facts->is_server_asked) {
        findings_add(findings, FINDING_NOTE, NULL, "%s was not asked", facts->server);
    } else if (!facts->is_server_there) {
        findings_add(findings, FINDING_WARNING,
                     "Start it (systemctl start outboxd), or say where it is: --server URL.",
                     "nobody answers at %s", facts->server);
    } else if (!facts->is_server_ready) {
        findings_add(findings, FINDING_FAILURE,
                     "The reason says what to do; the log of outboxd says more.",
                     "%s is not ready: %s", facts->server, facts->why_not_ready);
    } else if (facts->degraded[0]) {
        findings_add(findings, FINDING_FAILURE,
                     "Messages are accepted and wait; the log of outboxd says why they must.",
                     "%s is degraded: %s", facts->server, facts->degraded);
    } else {
        findings_add(findings, FINDING_OK, NULL, "%s is ready", facts->server);
    }
}

void rule_server_version(const struct facts *facts, struct findings *findings)
{
    static const char *const todo = "Restart it, or have it upgraded in place: send the supervisor "
                                    "USR2 (systemctl kill -s USR2 --kill-whom=main outboxd).";
    bool is_replaced = false;

    for (size_t i = 0; i < facts->process_count; i++) {
        is_replaced = is_replaced || facts->processes[i].is_program_replaced;
    }
    if (facts->server_version[0] && strcmp(facts->server_version, OUTBOXD_VERSION) != 0) {
        findings_add(findings, FINDING_WARNING, todo, "%s runs, %s is installed",
                     facts->server_version, OUTBOXD_VERSION);
    } else if (is_replaced) {
        findings_add(findings, FINDING_WARNING, todo,
                     "the programs that run were replaced on disk since they were started");
    } else if (facts->server_version[0]) {
        findings_add(findings, FINDING_OK, NULL, "%s, as installed", facts->server_version);
    }
}

static void judge_process(const struct process_fact *process, int64_t watchdog_ms,
                          struct findings *findings)
{
    char age[PRINT_MAX];

    if (process->heartbeat_age_ms > watchdog_ms) {
        print_age(process->heartbeat_age_ms, age);
        findings_add(findings, FINDING_FAILURE,
                     "It hangs, or was stopped (kill -CONT): the supervisor kills what stands for "
                     "longer than `watchdog`.",
                     "%s (process %d) has shown no life for %s", process->role, process->pid, age);
    }
}

void rule_server_processes(const struct facts *facts, struct findings *findings)
{
    const size_t before = findings->count;

    if (!facts->settings) {
        return;
    }
    for (size_t i = 0; i < facts->process_count; i++) {
        judge_process(&facts->processes[i], facts->settings->watchdog, findings);
    }
    if (facts->restarts > 0) {
        findings_add(findings, FINDING_WARNING,
                     "The log says which and why; none should be needed.",
                     "processes were restarted %.0f times since the start", facts->restarts);
    }
    if (facts->process_count > 0 && findings->count == before) {
        findings_add(findings, FINDING_OK, NULL, "%zu processes, all alive", facts->process_count);
    } else if (facts->process_count == 0 && facts->is_server_there) {
        findings_add(findings, FINDING_NOTE,
                     "Run the doctor on outboxd's machine, with its --config, as root or as its "
                     "user.",
                     "its processes cannot be seen (shared memory of %s)",
                     facts->settings->state_dir);
    }
}

void rule_server_entries(const struct facts *facts, struct findings *findings)
{
    const double old_s =
        facts->settings ? (double)facts->settings->stuck_after / 1000 * OLD_AS_STUCK : 0;
    const size_t before = findings->count;
    char age[PRINT_MAX];

    if (!facts->is_server_there || facts->failed_entries < 0) {
        return;
    }
    if (facts->failed_entries > 0) {
        findings_add(findings, FINDING_WARNING,
                     "`outboxctl workspaces` tells where, `outboxctl list WORKSPACE --status "
                     "error` which; then retry or dismiss them.",
                     "%.0f failed entries wait for somebody", facts->failed_entries);
    }
    if (old_s > 0 && facts->oldest_open_age_s > old_s) {
        print_age((int64_t)(facts->oldest_open_age_s * 1000), age);
        findings_add(findings, FINDING_WARNING,
                     "Its target may be away: `outboxctl workspaces` tells where it waits.",
                     "the oldest entry has been waiting for %s", age);
    }
    if (findings->count == before) {
        findings_add(findings, FINDING_OK, NULL, "none failed, none waits for long");
    }
}
