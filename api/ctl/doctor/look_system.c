/* Reads the kernel's files, and what it says of the clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "api/ctl/doctor/look.h"
#include "common/base/clock.h"

#define LINE_ROOM 256

static bool read_line(const char *path, char line[LINE_ROOM])
{
    FILE *file = fopen(path, "re");

    if (!file) {
        return false;
    }
    const bool is_read = fgets(line, LINE_ROOM, file) != NULL;

    (void)fclose(file);
    return is_read;
}

/* -1: unknown. */
static int64_t read_number(const char *path)
{
    char line[LINE_ROOM], *end;

    if (!read_line(path, line)) {
        return -1;
    }
    const long long number = strtoll(line, &end, 10);

    return end != line ? number : -1;
}

/* "always [madvise] never": the word in brackets. */
static void read_chosen(const char *path, char *out, size_t cap)
{
    char line[LINE_ROOM];

    out[0] = '\0';
    if (read_line(path, line)) {
        const char *start = strchr(line, '[');

        snprintf(out, cap, "%.*s", start ? (int)strcspn(start + 1, "]\n") : 0,
                 start ? start + 1 : "");
    }
}

void look_at_system(struct facts *facts)
{
    struct rlimit limit;
    struct statvfs fs;

    facts->file_limit = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (int64_t)limit.rlim_max : -1;
    if (facts->file_limit < -1) {
        facts->file_limit = INT64_MAX; /* no limit */
    }
    facts->somaxconn = read_number("/proc/sys/net/core/somaxconn");
    facts->overcommit = read_number("/proc/sys/vm/overcommit_memory");
    read_chosen("/sys/kernel/mm/transparent_hugepage/enabled", facts->hugepages,
                sizeof(facts->hugepages));
    facts->shm_space_bytes =
        statvfs("/dev/shm", &fs) == 0 ? (int64_t)((uint64_t)fs.f_bavail * fs.f_frsize) : -1;
}

void look_at_clock(struct facts *facts)
{
    struct timex timex = {0};
    const int state = adjtimex(&timex);

    facts->is_clock_known = state >= 0;
    facts->is_clock_synced = state >= 0 && state != TIME_ERROR && !(timex.status & STA_UNSYNC);
    facts->clock_error_us = timex.esterror;
}
