/* One format for each kind of line. */
#include "supervisor/status_line.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void write_load(const struct status_facts *facts, const char *what, char *out)
{
    char failed[40] = "";

    if (!facts->has_counts) {
        (void)snprintf(out, STATUS_LINE_MAX, "%s: %" PRIu64 " worker%s, %" PRIu64 " in flight",
                       what, facts->workers, plural(facts->workers), facts->in_flight);
        return;
    }
    if (facts->failed > 0) {
        (void)snprintf(failed, sizeof(failed), ", %" PRIu64 " failed", facts->failed);
    }
    (void)snprintf(out, STATUS_LINE_MAX,
                   "%s: %" PRIu64 " worker%s, %" PRIu64 " in flight, %" PRIu64 " waiting%s", what,
                   facts->workers, plural(facts->workers), facts->in_flight, facts->waiting,
                   failed);
}

void status_line(const struct status_facts *facts, char ret[STATUS_LINE_MAX])
{
    char when[32];
    const char *line = "";

    switch (facts->kind) {
    case STATUS_LINE_SERVING:
        write_load(facts, "serving", ret);
        return;
    case STATUS_LINE_NO_API:
        write_load(facts, "the API is being started again", ret);
        return;
    case STATUS_LINE_STORE_AWAY:
        clock_format_rfc3339(facts->away_since_wall_ms, when);
        (void)snprintf(ret, STATUS_LINE_MAX, "the store is away since %s: nothing is accepted",
                       when);
        return;
    case STATUS_LINE_DRAINING:
        (void)snprintf(ret, STATUS_LINE_MAX, "draining: %" PRIu64 " deliver%s left",
                       facts->in_flight, facts->in_flight == 1 ? "y" : "ies");
        return;
    case STATUS_LINE_STARTING:
        (void)snprintf(ret, STATUS_LINE_MAX, "starting: %" PRIu64 " worker%s so far",
                       facts->workers, plural(facts->workers));
        return;
    case STATUS_LINE_WAITING_FOR_STORE:
        line = "waiting for the store";
        break;
    case STATUS_LINE_RECOVERING:
        line = "recovering what dead processes held";
        break;
    case STATUS_LINE_UPGRADING:
        line = "upgrading: taking over from the program before";
        break;
    case STATUS_LINE_BINDING:
        line = "waiting for an address to listen on";
        break;
    case STATUS_LINE_WAITING_FOR_OTHERS:
        line = "drained; the store stays for workers of an earlier supervisor";
        break;
    case STATUS_LINE_ENDING:
        line = "drained: ending";
        break;
    }
    (void)snprintf(ret, STATUS_LINE_MAX, "%s", line);
}
