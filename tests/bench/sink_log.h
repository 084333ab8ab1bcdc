/* What the target was sent: one record per request that carries an ID of the load generator, with
 * its times on CLOCK_MONOTONIC. Lines of the file: "begin_ns reply_ns status id". */
#ifndef TESTS_BENCH_SINK_LOG_H
#define TESTS_BENCH_SINK_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"

#define MESSAGE_ID_MAX    48
#define MESSAGE_ID_PREFIX "lg1-"

struct sink_log {
    struct sink_record *records; /* owned */
    size_t count, cap;
    uint64_t without_id;
};

/* Finds the ID in the body, or else in the path. Returns the record's number, or SIZE_MAX without
 * an ID. */
size_t sink_log_add(struct sink_log *log, struct span path, struct span body, uint64_t begin_ns);
void sink_log_answered(struct sink_log *log, size_t record, uint64_t reply_ns, int status);
void sink_log_reset(struct sink_log *log);
/* 0 or -errno. */
int sink_log_write(const struct sink_log *log, const char *path);

#endif
