/* Judges the machine: its clock, its limits, its memory. */
#include <stdlib.h>
#include <string.h>

#include "api/ctl/doctor/facts.h"
#include "api/ctl/doctor/findings.h"
#include "common/base/listen_address.h"

#define MIB            (INT64_C(1) << 20)
#define STEP_MS        100
#define FILES_BESIDES  100 /* that a process has open besides its connections */
#define SHM_FEW_BYTES  (32 * MIB)
#define SHM_LOST_BYTES (8 * MIB)

/* ---- clock ---- */

void rule_clock_sync(const struct facts *facts, struct findings *findings)
{
    if (!facts->is_clock_known) {
        findings_add(findings, FINDING_NOTE, NULL,
                     "the system does not tell whether it is set by "
                     "NTP");
    } else if (!facts->is_clock_synced) {
        findings_add(findings, FINDING_WARNING,
                     "timedatectl set-ntp true, or install chrony; in a container its host has to.",
                     "the clock is not set by NTP");
    } else {
        findings_add(findings, FINDING_OK, NULL, "set by NTP, to about %lld ms",
                     (long long)((facts->clock_error_us + 999) / 1000));
    }
}

void rule_clock_steps(const struct facts *facts, struct findings *findings)
{
    const bool is_stepped = llabs(facts->clock_step_ms) >= STEP_MS;

    findings_add(findings, is_stepped ? FINDING_WARNING : FINDING_OK,
                 is_stepped ? "Something sets it in steps: find it and let NTP slew the clock "
                              "instead. Waits are not harmed, times in logs and events are."
                            : NULL,
                 is_stepped ? "the clock jumped by %lld ms while the doctor looked"
                            : "no step while the doctor looked (%lld ms)",
                 (long long)facts->clock_step_ms);
}

/* ---- limits ---- */

static int64_t files_needed(const struct settings *settings, const char *role)
{
    return strcmp(role, "worker") == 0 ? (int64_t)settings->max_in_flight + FILES_BESIDES
                                       : (int64_t)settings->http_max_connections +
                                             settings->api_connections + FILES_BESIDES;
}

void rule_limit_files(const struct facts *facts, struct findings *findings)
{
    static const char *const todo =
        "Raise it (LimitNOFILE= of the unit, or `ulimit -Hn`), or lower http.max_connections and "
        "max_in_flight.";
    bool is_any = false, is_short = false;

    if (!facts->settings) {
        return;
    }
    for (size_t i = 0; i < facts->process_count; i++) {
        const struct process_fact *process = &facts->processes[i];
        const int64_t needed = files_needed(facts->settings, process->role);

        if (process->file_limit < 0 || strcmp(process->role, "supervisor") == 0) {
            continue;
        }
        is_any = true;
        if (process->file_limit < needed) {
            is_short = true;
            findings_add(findings, FINDING_WARNING, todo,
                         "%s (process %d) may open %lld files, its settings need %lld",
                         process->role, process->pid, (long long)process->file_limit,
                         (long long)needed);
        }
    }
    const int64_t api = files_needed(facts->settings, "api");
    const int64_t worker = files_needed(facts->settings, "worker");
    const int64_t needed = api > worker ? api : worker;

    if (is_any && !is_short) {
        findings_add(findings, FINDING_OK, NULL,
                     "every process may open as many files as it needs "
                     "(%lld at most)",
                     (long long)needed);
    } else if (!is_any && facts->file_limit >= 0) {
        const bool is_few = facts->file_limit < needed;

        findings_add(findings, is_few ? FINDING_WARNING : FINDING_OK, is_few ? todo : NULL,
                     "a process started from here may open %lld files, outboxd's need %lld",
                     (long long)facts->file_limit, (long long)needed);
    }
}

void rule_limit_backlog(const struct facts *facts, struct findings *findings)
{
    const bool is_few = facts->somaxconn < LISTEN_BACKLOG;

    if (facts->somaxconn >= 0) {
        findings_add(findings, is_few ? FINDING_WARNING : FINDING_OK,
                     is_few ? "sysctl -w net.core.somaxconn=4096, and the same in /etc/sysctl.d: a "
                              "burst of connections is refused else."
                            : NULL,
                     "net.core.somaxconn is %lld, outboxd asks for %d", (long long)facts->somaxconn,
                     LISTEN_BACKLOG);
    }
}

/* ---- memory ---- */

void rule_memory_shm(const struct facts *facts, struct findings *findings)
{
    const bool is_running = facts->process_count > 0;
    const enum finding_level level = facts->shm_space_bytes >= SHM_FEW_BYTES ? FINDING_OK
                                     : facts->shm_space_bytes < SHM_LOST_BYTES && !is_running
                                         ? FINDING_FAILURE
                                         : FINDING_WARNING;

    if (facts->shm_space_bytes >= 0) {
        findings_add(findings, level,
                     level == FINDING_OK
                         ? NULL
                         : "Make room: every start and every reload needs some megabytes there "
                           "(--shm-size in a container).",
                     "%lld MiB are free in /dev/shm", (long long)(facts->shm_space_bytes / MIB));
    }
}

void rule_memory_overcommit(const struct facts *facts, struct findings *findings)
{
    const bool is_fine = facts->overcommit == 1;

    if (facts->is_store_local && facts->overcommit >= 0) {
        findings_add(findings, is_fine ? FINDING_OK : FINDING_WARNING,
                     is_fine ? NULL
                             : "sysctl -w vm.overcommit_memory=1, and the same in /etc/sysctl.d: "
                               "else the store may not get the memory to rewrite its file.",
                     "vm.overcommit_memory is %lld", (long long)facts->overcommit);
    }
}

void rule_memory_hugepages(const struct facts *facts, struct findings *findings)
{
    const bool is_bad = strcmp(facts->hugepages, "always") == 0;

    if (facts->is_store_local && facts->hugepages[0]) {
        findings_add(findings, is_bad ? FINDING_WARNING : FINDING_OK,
                     is_bad
                         ? "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, at every "
                           "boot: the store is slow and takes more memory else while it rewrites "
                           "its file."
                         : NULL,
                     "transparent huge pages: %s", facts->hugepages);
    }
}
