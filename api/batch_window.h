/* The next lines of a batch: read, put together into one call to the store for each partition, and
 * answered in their order. Knows no connection and no loop.
 *
 * What is to be sent again must not be overtaken: once a line is refused for a reason that passes
 * (429, 500, 503), no later line of its session is accepted in this batch; they are refused alike.
 * If the store is the reason (its answer may have been lost), nothing more is sent to it at all.
 * Whoever repeats the refused lines in their order, with their clientMessageIDs, then finds each
 * message in its place. */
#ifndef API_BATCH_WINDOW_H
#define API_BATCH_WINDOW_H

#include "api/accept_form.h"
#include "api/batch_lines.h"
#include "common/core/ids.h"
#include "common/store/store_accept_many.h"

#define BATCH_WINDOW_LINES 256
#define BATCH_WINDOW_BYTES (512U << 10) /* or one line that is longer */

struct api;
struct request;

struct batch_line {
    enum problem_id problem; /* PROBLEM_NONE: accepted, now or before */
    enum label_accept_result label;
    bool is_waiting; /* with the store, or on its way */
    bool is_duplicate;
    struct entry_id id;     /* its own, or the original's */
    char entry_status[16];  /* of a duplicate */
    int64_t accepted_at_ms; /* 0: unknown */
    uint32_t cmid_len, session_len, workspace_len;
    char workspace[WORKSPACE_MAX], session[SESSION_MAX], cmid[CMID_MAX];
    char detail[JSON_DETAIL_SIZE];
};

/* The lines of one partition. */
struct batch_call {
    struct accept_many *many; /* owned until it is sent */
    uint32_t partition, count;
    uint16_t lines[ACCEPT_MANY_MAX];
};

/* Sessions that nothing more is accepted into, and why; by a hash: to take one for another costs a
 * repetition. */
struct batch_blocked {
    struct batch_blocked_session {
        uint64_t hash;
        enum problem_id problem;
    } * all; /* owned */
    size_t count, cap;
};

struct batch_window {
    struct api *api;
    const struct request *request;
    struct batch_lines lines; /* what no window has read yet */
    struct span traceparent;
    struct batch_blocked blocked;
    enum problem_id stopped; /* what every further line is answered with; PROBLEM_NONE: go on */
    char stopped_detail[JSON_DETAIL_SIZE];
    uint32_t line_count, call_count;
    struct batch_line all[BATCH_WINDOW_LINES];
    struct batch_call calls[PARTITION_COUNT];
    uint8_t call_of[PARTITION_COUNT]; /* 1 + index in `calls`; 0: none */
};

void batch_window_init(struct batch_window *window, struct api *api, const struct request *request);
void batch_window_done(struct batch_window *window);
/* Forgets the lines before and reads the next ones. False: there are none. */
bool batch_window_read(struct batch_window *window);
/* What came of a call. Calls that were not sent yet must not be sent after window->stopped. */
void batch_window_answered(struct batch_window *window, const struct batch_call *call,
                           enum store_result result, const struct accept_many_item *items,
                           size_t count);
/* Ends the window: counts its lines, and appends one answer line for each. */
void batch_window_write(struct batch_window *window, struct buf *out);

#endif
