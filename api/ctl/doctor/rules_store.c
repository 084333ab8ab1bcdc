/* Judges the store: is it there, will it do, does it keep what a 202 promises. */
#include <stdio.h>
#include <stdlib.h>

#include "api/ctl/doctor/facts.h"
#include "api/ctl/doctor/findings.h"
#include "common/store/store.h"

#define MIB             (UINT64_C(1) << 20)
#define MEMORY_FEW      80 /* percent used */
#define MEMORY_LOST     95
#define CLOCKS_APART_MS 1000

static bool has_store(const struct facts *facts)
{
    return facts->settings && facts->store_result == STORE_OK;
}

void rule_store_reachable(const struct facts *facts, struct findings *findings)
{
    if (!facts->settings) {
        return;
    }
    if (facts->store_result == STORE_OK) {
        findings_add(findings, facts->store.is_loading ? FINDING_WARNING : FINDING_OK,
                     facts->store.is_loading ? "Wait: it reads its data." : NULL, "%s %s at %s%s",
                     facts->store.name, facts->store.version, facts->store_url,
                     facts->store.is_loading ? " is loading its data" : "");
    } else if (facts->store_result == STORE_NOAUTH) {
        findings_add(findings, FINDING_FAILURE,
                     "Set store.password_file, or user and password in store.url; the user needs "
                     "INFO and CONFIG GET (ACL SETUSER ... +info +config|get).",
                     "%s refuses our user or password, or forbids what we ask", facts->store_url);
    } else if (facts->is_embedded && !facts->is_server_there && facts->process_count == 0) {
        findings_add(findings, FINDING_NOTE, NULL,
                     "the embedded store does not run, as outboxd does not");
    } else {
        findings_add(findings, FINDING_FAILURE,
                     facts->is_embedded
                         ? "Its log is store/valkey.log in the state directory; run the doctor as "
                           "outboxd's user or root: others may not open its socket."
                         : "Start it, or correct store.url; `valkey-cli -u URL ping` tells more.",
                     "%s does not answer: %s", facts->store_url,
                     store_result_help(facts->store_result));
    }
}

void rule_store_version(const struct facts *facts, struct findings *findings)
{
    const char *why = has_store(facts) ? store_version_refusal(facts->store.version) : NULL;

    if (has_store(facts)) {
        findings_add(findings, why ? FINDING_FAILURE : FINDING_OK, why, "%s %s", facts->store.name,
                     facts->store.version);
    }
}

static const char *name_of(enum durability_level level)
{
    switch (level) {
    case DURABILITY_FSYNC:
        return "fsync";
    case DURABILITY_EVERYSEC:
        return "everysec";
    case DURABILITY_REPLICAS:
        return "replicas";
    case DURABILITY_MEMORY:
        return "memory";
    }
    return "?";
}

void rule_store_durability(const struct facts *facts, struct findings *findings)
{
    if (!has_store(facts)) {
        return;
    }
    const struct durability wanted = facts->settings->durability;
    const char *why = store_facts_refusal(&facts->store, wanted);

    if (why) {
        findings_add(findings, FINDING_FAILURE, why,
                     "the store does not give what is configured (durability: %s)",
                     name_of(wanted.level));
    } else if (wanted.level == DURABILITY_MEMORY) {
        findings_add(findings, FINDING_WARNING,
                     "Right only where messages may be lost; else set durability: fsync.",
                     "durability: memory: a 202 does not survive the store's process");
    } else if (wanted.level == DURABILITY_REPLICAS &&
               facts->store.connected_replicas < wanted.replicas) {
        findings_add(findings, FINDING_FAILURE,
                     "Start the replicas: until then nothing is accepted (503).",
                     "%u of the %u replicas that a 202 waits for are connected",
                     facts->store.connected_replicas, wanted.replicas);
    } else {
        findings_add(findings, FINDING_OK, NULL,
                     "durability: %s (appendonly %s, appendfsync %s, maxmemory-policy %s)",
                     name_of(wanted.level), facts->store.aof_enabled ? "yes" : "no",
                     facts->store.appendfsync, facts->store.maxmemory_policy);
    }
}

void rule_store_writes(const struct facts *facts, struct findings *findings)
{
    if (!has_store(facts) || facts->settings->durability.level == DURABILITY_MEMORY) {
        return;
    }
    if (!facts->store.aof_last_write_ok) {
        findings_add(findings, FINDING_FAILURE,
                     "Look at its log; mostly its disk is full. Until then nothing is accepted.",
                     "the store's last write to disk failed");
    } else if (!facts->store.aof_last_rewrite_ok) {
        findings_add(findings, FINDING_WARNING,
                     "Look at its log: without a rewrite its file grows for ever. Mostly memory is "
                     "short (vm.overcommit_memory) or the disk is full.",
                     "the store's last rewrite of its append-only file failed");
    } else {
        findings_add(findings, FINDING_OK, NULL, "its last writes to disk went well");
    }
}

void rule_store_memory(const struct facts *facts, struct findings *findings)
{
    if (!has_store(facts)) {
        return;
    }
    const uint64_t used = facts->store.used_memory_bytes, max = facts->store.max_memory_bytes;
    const uint64_t percent = max > 0 ? used / (max / 100 + 1) : 0;
    const enum finding_level level = percent >= MEMORY_LOST  ? FINDING_FAILURE
                                     : percent >= MEMORY_FEW ? FINDING_WARNING
                                                             : FINDING_OK;

    if (max == 0) {
        findings_add(findings, FINDING_OK, NULL, "%llu MiB used, no limit",
                     (unsigned long long)(used / MIB));
        return;
    }
    findings_add(
        findings, level,
        level == FINDING_OK
            ? NULL
            : "Raise maxmemory, or let messages drain: a full store accepts nothing (503).",
        "%llu of %llu MiB used", (unsigned long long)(used / MIB), (unsigned long long)(max / MIB));
}

void rule_clock_store(const struct facts *facts, struct findings *findings)
{
    if (!has_store(facts) || !facts->has_store_clock) {
        return;
    }
    const bool is_apart = llabs(facts->store_ahead_ms) >= CLOCKS_APART_MS;

    findings_add(findings, is_apart ? FINDING_WARNING : FINDING_OK,
                 is_apart ? "Set the clocks of both machines by NTP; outboxd goes by the store's, "
                            "but logs and events will not fit together."
                          : NULL,
                 "the store's clock is %lld ms %s ours", llabs(facts->store_ahead_ms),
                 facts->store_ahead_ms < 0 ? "behind" : "ahead of");
}
