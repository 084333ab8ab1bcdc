/* Limits that are answered by a problem document; connection.c counts those that end a connection.
 */
#include "api/limits.h"

#include "common/shm/metrics.h"

#define STATUS_URI_TOO_LONG 414 /* the head's first line */

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

void limits_count_status(struct metrics *metrics, unsigned status)
{
    static const enum problem_id problems[] = {PROBLEM_HEADERS_TOO_LARGE, PROBLEM_TOO_LARGE};

    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        if (problem_get(problems[i])->status == status) {
            limits_count_problem(metrics, problems[i]);
        }
    }
    if (status == STATUS_URI_TOO_LONG) {
        limits_count_problem(metrics, PROBLEM_HEADERS_TOO_LARGE);
    }
}
