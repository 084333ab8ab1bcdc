/* The block of counters that each slot has in shared memory, expanded from metrics.def. Label sets
 * are declared here: each closed, its size known when the segment is made. metrics.h is what
 * programs include. Contract §10. */
#ifndef COMMON_SHM_METRICS_LAYOUT_H
#define COMMON_SHM_METRICS_LAYOUT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/core/lifecycle.h"

/* Label sets: ROW(set, ID, "text in the exposition") yields LABEL_<set>_<ID>, and LABELS_<set> is
 * their number. To add a value: a row, and nothing else. */
#define LABEL_ROWS_ACCEPT_RESULT(ROW)                                                              \
    ROW(ACCEPT_RESULT, ACCEPTED, "accepted")                                                       \
    ROW(ACCEPT_RESULT, DUPLICATE, "duplicate")                                                     \
    ROW(ACCEPT_RESULT, SESSION_FULL, "session_full")                                               \
    ROW(ACCEPT_RESULT, KEY_REUSE, "key_reuse")                                                     \
    ROW(ACCEPT_RESULT, INVALID, "invalid")                                                         \
    ROW(ACCEPT_RESULT, TOO_LARGE, "too_large")                                                     \
    ROW(ACCEPT_RESULT, STORE_UNAVAILABLE, "store_unavailable")                                     \
    ROW(ACCEPT_RESULT, OTHER, "other")
#define LABEL_ROWS_VERDICT(ROW)                                                                    \
    ROW(VERDICT, DELIVERED, "delivered")                                                           \
    ROW(VERDICT, ABSENT, "absent")                                                                 \
    ROW(VERDICT, INCONCLUSIVE, "inconclusive")                                                     \
    ROW(VERDICT, TOO_EARLY, "too_early")
#define LABEL_ROWS_SWEEP_OUTCOME(ROW)                                                              \
    ROW(SWEEP_OUTCOME, VERIFIED, "verified")                                                       \
    ROW(SWEEP_OUTCOME, COMPLETED, "completed")                                                     \
    ROW(SWEEP_OUTCOME, REARMED, "rearmed")                                                         \
    ROW(SWEEP_OUTCOME, STAYED, "stayed")                                                           \
    ROW(SWEEP_OUTCOME, INDETERMINATE, "indeterminate")
/* As circuit.def has them. */
#define LABEL_ROWS_CIRCUIT(ROW)                                                                    \
    ROW(CIRCUIT, CLOSED, "closed")                                                                 \
    ROW(CIRCUIT, OPEN, "open")                                                                     \
    ROW(CIRCUIT, HALF_OPEN, "half_open")
#define LABEL_ROWS_HOLD(ROW)                                                                       \
    ROW(HOLD, CIRCUIT, "circuit")                                                                  \
    ROW(HOLD, RATE, "rate")                                                                        \
    ROW(HOLD, IN_FLIGHT, "in_flight")
#define LABEL_ROWS_LOOP(ROW)                                                                       \
    ROW(LOOP, CLAIM, "claim")                                                                      \
    ROW(LOOP, RECONCILE, "reconcile")                                                              \
    ROW(LOOP, SWEEP, "sweep")                                                                      \
    ROW(LOOP, BEAT, "beat")                                                                        \
    ROW(LOOP, API, "api")                                                                          \
    ROW(LOOP, EVENTS, "events")                                                                    \
    ROW(LOOP, DELAYED, "delayed")                                                                  \
    ROW(LOOP, SUPERVISOR, "supervisor")
#define LABEL_ROWS_RECOVERY_REASON(ROW)                                                            \
    ROW(RECOVERY_REASON, WORKER_DIED, "worker_died")                                               \
    ROW(RECOVERY_REASON, SUPERVISOR_START, "supervisor_start")                                     \
    ROW(RECOVERY_REASON, NODE_DIED, "node_died")                                                   \
    ROW(RECOVERY_REASON, EXPIRED, "expired")                                                       \
    ROW(RECOVERY_REASON, UNLOCKED, "unlocked")
#define LABEL_ROWS_RING(ROW)                                                                       \
    ROW(RING, API_WORKER, "api_worker")                                                            \
    ROW(RING, SUPERVISOR_WORKER, "supervisor_worker")                                              \
    ROW(RING, WORKER_API, "worker_api")
#define LABEL_ROWS_STORE_RESULT(ROW)                                                               \
    ROW(STORE_RESULT, OK, "ok")                                                                    \
    ROW(STORE_RESULT, REFUSED, "refused")                                                          \
    ROW(STORE_RESULT, UNAVAILABLE, "unavailable")                                                  \
    ROW(STORE_RESULT, TIMEOUT, "timeout")                                                          \
    ROW(STORE_RESULT, ERROR, "error")
#define LABEL_ROWS_HTTP_STATUS(ROW)                                                                \
    ROW(HTTP_STATUS, 200, "200")                                                                   \
    ROW(HTTP_STATUS, 202, "202")                                                                   \
    ROW(HTTP_STATUS, 400, "400")                                                                   \
    ROW(HTTP_STATUS, 401, "401")                                                                   \
    ROW(HTTP_STATUS, 403, "403")                                                                   \
    ROW(HTTP_STATUS, 404, "404")                                                                   \
    ROW(HTTP_STATUS, 405, "405")                                                                   \
    ROW(HTTP_STATUS, 409, "409")                                                                   \
    ROW(HTTP_STATUS, 413, "413")                                                                   \
    ROW(HTTP_STATUS, 415, "415")                                                                   \
    ROW(HTTP_STATUS, 422, "422")                                                                   \
    ROW(HTTP_STATUS, 429, "429")                                                                   \
    ROW(HTTP_STATUS, 500, "500")                                                                   \
    ROW(HTTP_STATUS, 503, "503")                                                                   \
    ROW(HTTP_STATUS, OTHER, "other")
#define LABEL_ROWS_HTTP_LIMIT(ROW)                                                                 \
    ROW(HTTP_LIMIT, CONNECTIONS, "connections")                                                    \
    ROW(HTTP_LIMIT, CONNECTIONS_PER_ADDRESS, "connections_per_address")                            \
    ROW(HTTP_LIMIT, HEADER_BYTES, "header_bytes")                                                  \
    ROW(HTTP_LIMIT, HEADER_TIMEOUT, "header_timeout")                                              \
    ROW(HTTP_LIMIT, BODY_BYTES, "body_bytes")                                                      \
    ROW(HTTP_LIMIT, BODY_TIMEOUT, "body_timeout")                                                  \
    ROW(HTTP_LIMIT, BODY_MEMORY, "body_memory")                                                    \
    ROW(HTTP_LIMIT, JSON_DEPTH, "json_depth")                                                      \
    ROW(HTTP_LIMIT, ANSWER_TIMEOUT, "answer_timeout")                                              \
    ROW(HTTP_LIMIT, EVENT_READER, "event_reader")                                                  \
    ROW(HTTP_LIMIT, STORE_REQUESTS, "store_requests")
#define LABEL_ROWS_ROLE(ROW)                                                                       \
    ROW(ROLE, API, "api")                                                                          \
    ROW(ROLE, WORKER, "worker")                                                                    \
    ROW(ROLE, STORE, "store")
#define LABEL_ROWS_DEATH_REASON(ROW)                                                               \
    ROW(DEATH_REASON, EXIT, "exit")                                                                \
    ROW(DEATH_REASON, SIGNAL, "signal")                                                            \
    ROW(DEATH_REASON, WATCHDOG, "watchdog")                                                        \
    ROW(DEATH_REASON, BAD_CONFIG, "bad_config")                                                    \
    ROW(DEATH_REASON, SPAWN, "spawn")

#define LABEL_ENUM_ROW(set, id, text) LABEL_##set##_##id,
enum label_accept_result { LABEL_ROWS_ACCEPT_RESULT(LABEL_ENUM_ROW) LABELS_ACCEPT_RESULT };
enum label_verdict { LABEL_ROWS_VERDICT(LABEL_ENUM_ROW) LABELS_VERDICT };
enum label_sweep_outcome { LABEL_ROWS_SWEEP_OUTCOME(LABEL_ENUM_ROW) LABELS_SWEEP_OUTCOME };
enum label_circuit { LABEL_ROWS_CIRCUIT(LABEL_ENUM_ROW) LABELS_CIRCUIT };
enum label_hold { LABEL_ROWS_HOLD(LABEL_ENUM_ROW) LABELS_HOLD };
enum label_loop { LABEL_ROWS_LOOP(LABEL_ENUM_ROW) LABELS_LOOP };
enum label_recovery_reason { LABEL_ROWS_RECOVERY_REASON(LABEL_ENUM_ROW) LABELS_RECOVERY_REASON };
enum label_ring { LABEL_ROWS_RING(LABEL_ENUM_ROW) LABELS_RING };
enum label_store_result { LABEL_ROWS_STORE_RESULT(LABEL_ENUM_ROW) LABELS_STORE_RESULT };
enum label_http_status { LABEL_ROWS_HTTP_STATUS(LABEL_ENUM_ROW) LABELS_HTTP_STATUS };
enum label_http_limit { LABEL_ROWS_HTTP_LIMIT(LABEL_ENUM_ROW) LABELS_HTTP_LIMIT };
enum label_role { LABEL_ROWS_ROLE(LABEL_ENUM_ROW) LABELS_ROLE };
enum label_death_reason { LABEL_ROWS_DEATH_REASON(LABEL_ENUM_ROW) LABELS_DEATH_REASON };
#undef LABEL_ENUM_ROW

/* Sets whose names belong to somebody else: so many places, and one for whatever has none. Their
 * owners assert that they fit. */
#define LABEL_KIND_MAX   32
#define LABEL_SCRIPT_MAX 64
#define LABEL_ROUTE_MAX  64
#define LABEL_KIND_OTHER LABEL_KIND_MAX /* the last place of each */

#define LABELS_NONE          1
#define LABELS_KIND          (LABEL_KIND_MAX + 1)
#define LABELS_SCRIPT        (LABEL_SCRIPT_MAX + 1)
#define LABELS_ROUTE         (LABEL_ROUTE_MAX + 1)
#define LABELS_OUTCOME       OUTCOME_COUNT
#define LABELS_KIND_OUTCOME  (LABELS_KIND * LABELS_OUTCOME)
#define LABELS_SCRIPT_RESULT (LABELS_SCRIPT * LABELS_STORE_RESULT)
#define LABELS_ROUTE_STATUS  (LABELS_ROUTE * LABELS_HTTP_STATUS)
#define LABELS_ROLE_REASON   (LABELS_ROLE * LABELS_DEATH_REASON)

/* Upper bounds of histogram buckets, in microseconds and as text; +Inf follows by itself. Three
 * sets: a call to the store next door, bounded by its time limit of seconds; an attempt at a
 * target, by its time limit of minutes (what timed out stands in +Inf alone); a wait, which a
 * backlog may make as long as an hour. */
#define BUCKET_ROWS_CALL(ROW)                                                                      \
    ROW(100, "0.0001")                                                                             \
    ROW(250, "0.00025")                                                                            \
    ROW(500, "0.0005")                                                                             \
    ROW(1000, "0.001")                                                                             \
    ROW(2500, "0.0025")                                                                            \
    ROW(5000, "0.005")                                                                             \
    ROW(10000, "0.01")                                                                             \
    ROW(25000, "0.025")                                                                            \
    ROW(50000, "0.05")                                                                             \
    ROW(100000, "0.1")                                                                             \
    ROW(250000, "0.25")                                                                            \
    ROW(500000, "0.5")                                                                             \
    ROW(1000000, "1")                                                                              \
    ROW(2500000, "2.5")                                                                            \
    ROW(5000000, "5")                                                                              \
    ROW(10000000, "10")
#define BUCKET_ROWS_ATTEMPT(ROW)                                                                   \
    ROW(1000, "0.001")                                                                             \
    ROW(2500, "0.0025")                                                                            \
    ROW(5000, "0.005")                                                                             \
    ROW(10000, "0.01")                                                                             \
    ROW(25000, "0.025")                                                                            \
    ROW(50000, "0.05")                                                                             \
    ROW(100000, "0.1")                                                                             \
    ROW(250000, "0.25")                                                                            \
    ROW(500000, "0.5")                                                                             \
    ROW(1000000, "1")                                                                              \
    ROW(2500000, "2.5")                                                                            \
    ROW(5000000, "5")                                                                              \
    ROW(10000000, "10")                                                                            \
    ROW(30000000, "30")                                                                            \
    ROW(60000000, "60")                                                                            \
    ROW(120000000, "120")                                                                          \
    ROW(300000000, "300")                                                                          \
    ROW(600000000, "600")
#define BUCKET_ROWS_WAIT(ROW)                                                                      \
    ROW(500, "0.0005")                                                                             \
    ROW(1000, "0.001")                                                                             \
    ROW(2500, "0.0025")                                                                            \
    ROW(5000, "0.005")                                                                             \
    ROW(10000, "0.01")                                                                             \
    ROW(25000, "0.025")                                                                            \
    ROW(50000, "0.05")                                                                             \
    ROW(100000, "0.1")                                                                             \
    ROW(250000, "0.25")                                                                            \
    ROW(500000, "0.5")                                                                             \
    ROW(1000000, "1")                                                                              \
    ROW(2500000, "2.5")                                                                            \
    ROW(5000000, "5")                                                                              \
    ROW(10000000, "10")                                                                            \
    ROW(30000000, "30")                                                                            \
    ROW(60000000, "60")                                                                            \
    ROW(300000000, "300")                                                                          \
    ROW(900000000, "900")                                                                          \
    ROW(3600000000, "3600")
#define BUCKET_COUNT_ROW(us, text) +1
#define BUCKETS_CALL               ((0 BUCKET_ROWS_CALL(BUCKET_COUNT_ROW)) + 1) /* with +Inf */
#define BUCKETS_ATTEMPT            ((0 BUCKET_ROWS_ATTEMPT(BUCKET_COUNT_ROW)) + 1)
#define BUCKETS_WAIT               ((0 BUCKET_ROWS_WAIT(BUCKET_COUNT_ROW)) + 1)
#define BUCKETS_MAX                BUCKETS_WAIT /* of the three */

/* Cells of one series. A histogram: its buckets (each counts its own range only), then the sum in
 * nanoseconds. */
#define CELLS_COUNTER           1
#define CELLS_GAUGE_SUM         1
#define CELLS_GAUGE_MAX         1
#define CELLS_HISTOGRAM_CALL    (BUCKETS_CALL + 1)
#define CELLS_HISTOGRAM_ATTEMPT (BUCKETS_ATTEMPT + 1)
#define CELLS_HISTOGRAM_WAIT    (BUCKETS_WAIT + 1)

struct metrics_block {
    alignas(64) _Atomic uint64_t
        layout_anchor; /* never written: gives the block a line to start on */
#define METRIC(type, name, labels, help) _Atomic uint64_t name[LABELS_##labels * CELLS_##type];
#include "common/shm/metrics.def"
};

#define METRICS_CELLS (sizeof(struct metrics_block) / sizeof(uint64_t))

#endif
