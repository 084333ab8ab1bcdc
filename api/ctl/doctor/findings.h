/* What the doctor found, and how it is told. Pure. */
#ifndef API_CTL_DOCTOR_FINDINGS_H
#define API_CTL_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum check_id {
#define CHECK(id, rule, name) CHECK_##id,
#include "api/ctl/doctor/checks.def"
    CHECK_COUNT,
};
const char *check_name(enum check_id id);

enum finding_level {
    FINDING_OK,
    FINDING_NOTE,    /* could not be looked at, or good to know */
    FINDING_WARNING, /* works, and may not one day */
    FINDING_FAILURE, /* does not work, or is not safe */
    FINDING_LEVEL_COUNT,
};
const char *finding_level_name(enum finding_level level);

struct finding {
    enum check_id check;
    enum finding_level level;
    char *found;      /* owned */
    const char *todo; /* static; NULL: nothing */
};
struct findings {
    struct finding *all; /* owned, in the order in which they were added */
    size_t count, capacity;
    enum check_id check; /* whose rule runs now */
};

void findings_init(struct findings *findings);
void findings_done(struct findings *findings);
/* `todo`: what to do, a static sentence, or NULL. */
void findings_add(struct findings *findings, enum finding_level level, const char *todo,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
size_t findings_count(const struct findings *findings, enum finding_level level);

/* `columns` of the terminal; 0: no limit. */
void findings_print(const struct findings *findings, size_t columns, bool is_coloured,
                    struct buf *out);
/* {"result":"ok"|"warnings"|"failures","checks":[{"check","level","found","do"?}]} and a line feed.
 */
void findings_print_json(const struct findings *findings, struct buf *out);

#endif
