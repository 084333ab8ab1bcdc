/* Limits that are answered by a problem document; connection.c counts those that end a connection.
 */
#include "api/limits.h"

#include "common/shm/metrics.h"

void limits_count_problem(struct metrics *metrics, enum problem_id problem)
{
    static const struct {
        enum problem_id problem;
        enum label_http_limit limit;
    } rows[] = {
        {PROBLEM_HEADERS_TOO_LARGE, LABEL_HTTP_LIMIT_HEADER_BYTES},
        {PROBLEM_TOO_LARGE, LABEL_HTTP_LIMIT_BODY_BYTES},
        {PROBLEM_TOO_MANY_BODIES, LABEL_HTTP_LIMIT_BODY_MEMORY},
        {PROBLEM_JSON_TOO_DEEP, LABEL_HTTP_LIMIT_JSON_DEPTH},
        {PROBLEM_OVERLOADED, LABEL_HTTP_LIMIT_STORE_REQUESTS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].problem == problem) {
            metrics_add(metrics, METRIC_http_limited_total, rows[i].limit, 1);
        }
    }
}
