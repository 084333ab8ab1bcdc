/* The target's records, see the header. Benchmark only: aborts when out of memory. */
#include "tests/bench/sink_log.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sink_record {
    uint64_t begin_ns, reply_ns;
    int status;
    char id[MESSAGE_ID_MAX];
};

static size_t find_id(struct span where, char *out)
{
    const char *at =
        where.len ? memmem(where.ptr, where.len, MESSAGE_ID_PREFIX, sizeof(MESSAGE_ID_PREFIX) - 1)
                  : NULL;
    size_t n = 0;

    if (!at) {
        return 0;
    }
    size_t room = where.len - (size_t)(at - where.ptr);

    while (n < room && n < MESSAGE_ID_MAX - 1 &&
           (isalnum((unsigned char)at[n]) != 0 || at[n] == '-')) {
        out[n] = at[n];
        n++;
    }
    out[n] = '\0';
    return n;
}

size_t sink_log_add(struct sink_log *log, struct span path, struct span body, uint64_t begin_ns)
{
    if (log->count == log->cap) {
        log->cap = log->cap ? log->cap * 2 : (size_t)1 << 18;
        log->records = realloc(log->records, log->cap * sizeof(*log->records));
        if (!log->records) {
            abort();
        }
    }
    struct sink_record *record = &log->records[log->count];

    if (!find_id(body, record->id) && !find_id(path, record->id)) {
        log->without_id++;
        return SIZE_MAX;
    }
    record->begin_ns = begin_ns;
    record->reply_ns = 0;
    record->status = 0;
    return log->count++;
}

void sink_log_answered(struct sink_log *log, size_t record, uint64_t reply_ns, int status)
{
    if (record < log->count) {
        log->records[record].reply_ns = reply_ns;
        log->records[record].status = status;
    }
}

void sink_log_reset(struct sink_log *log)
{
    log->count = 0;
    log->without_id = 0;
}

int sink_log_write(const struct sink_log *log, const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file) {
        return -errno;
    }
    for (size_t i = 0; i < log->count; i++) {
        const struct sink_record *record = &log->records[i];

        fprintf(file, "%" PRIu64 " %" PRIu64 " %d %s\n", record->begin_ns, record->reply_ns,
                record->status, record->id);
    }
    return fclose(file) == 0 ? 0 : -errno;
}
