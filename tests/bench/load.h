/* The load generator's parts: what to send, sending it, telling what came of it. Loopback only.
 *
 *   load_options.c  command line          load_run.c     connections and pace
 *   load_request.c  templates to bytes    load_report.c  figures and log */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include <stddef.h>
#include <stdint.h>

#define LOAD_STATUS_MAX  1000
#define LOAD_REQUEST_MAX (64U * 1024)

struct load_options {
    unsigned port, connections, sessions, workspaces;
    unsigned batch;      /* messages in one POST /v1/batch; 0: each has a POST of its own */
    unsigned body_bytes; /* {pad} fills the body up to this */
    unsigned retry_ms;   /* 429 and 503 are sent again with the same ID after so long */
    double seconds;      /* unless count > 0 */
    double rate; /* messages a second; 0: each connection sends as soon as it was answered */
    uint64_t count;
    const char *path, *body; /* templates: {id} {workspace} {session} {seq} {pad} */
    const char *log_path;    /* NULL: none */
    char tag[16];            /* tells runs apart within the IDs */
};

/* One message. Times on CLOCK_MONOTONIC. */
struct load_item {
    uint32_t session, seq, attempts;
    int status; /* of the last answer; 0: none */
    uint64_t due_ns, send_ns, answer_ns;
};

struct load_result {
    struct load_item *items; /* owned */
    size_t count, cap;
    uint64_t start_ns, retries, broken_connections;
    uint64_t statuses[LOAD_STATUS_MAX];
};

/* Fills the defaults, then the command line. 0, or -EINVAL after the usage was printed. */
int load_options_parse(int argc, char **argv, struct load_options *ret);

/* "lg1-TAG-SESSION-SEQ", as the target's log has it. */
void load_item_id(const struct load_options *options, const struct load_item *item, char *out,
                  size_t cap);
/* What load_request needs. */
size_t load_request_max(const struct load_options *options);
/* The whole request of an item, or of a batch of them, into `out`. Returns its length; ends the
 * program if it does not fit. */
size_t load_request(const struct load_options *options, const struct load_item *items, size_t count,
                    char *out);

/* Returns when every message was answered or given up. */
void load_run(const struct load_options *options, struct load_result *ret);

/* One line of key=value on standard output. */
void load_report_print(const struct load_options *options, const struct load_result *result);
/* Lines "id session seq status attempts due_ns send_ns answer_ns". 0 or -errno. */
int load_report_write(const struct load_options *options, const struct load_result *result);

#endif
