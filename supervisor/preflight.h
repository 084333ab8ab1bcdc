/* Before anything is started: is the store there, of a version that works, and as durable as
 * configured? Contract §2. Loop thread only. */
#ifndef SUPERVISOR_PREFLIGHT_H
#define SUPERVISOR_PREFLIGHT_H

#include <stdbool.h>
#include <uv.h>

#include "common/store/store.h"

enum preflight_verdict {
    PREFLIGHT_PASSED,
    PREFLIGHT_UNREACHABLE, /* nobody answered in time */
    PREFLIGHT_REFUSED,  /* by what the server is: a configuration of the store that must be changed
                         */
    PREFLIGHT_NOT_OURS, /* layout or partition count of another version */
};

struct preflight_options {
    struct uv_loop_s *loop;
    struct store *store;
    struct durability durability;
    const char *advice; /* what to do when nobody answers */
    const char *url;    /* without its password, for messages */
    int64_t timeout_ms; /* without any answer; a server that loads its data may take as long as it
                           needs */
    /* What is refused may be in the caller's power (a server of ours with older options). True: it
     * is being mended, ask again. May be NULL. */
    bool (*mend)(void *arg);
    /* Runs once, never before preflight_start returned. Has been logged, with the command that
     * mends it. */
    void (*done)(enum preflight_verdict verdict, void *arg);
    void *arg;
};

/* In the caller's memory; stays there until done, or until preflight_stop and the store is closed.
 */
struct preflight {
    struct preflight_options options;
    uv_timer_t timer;
    int64_t deadline_ms, told_ms;
    enum store_result why; /* why the store is away, last told */
    bool is_asking, is_over;
};

void preflight_start(struct preflight *preflight, const struct preflight_options *options);
/* The store's state changed (from struct store's on_state). */
void preflight_store_state(struct preflight *preflight, bool is_up, enum store_result why);
/* No verdict any more. */
void preflight_stop(struct preflight *preflight);

#endif
