/* Signals as a table (signals.def). The handler only tells which action a signal stands for; what
 * that means now is decided in one place, supervisor.c. */
#ifndef SUPERVISOR_SIGNALS_H
#define SUPERVISOR_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <uv.h>

enum signal_action {
    SIGNAL_DRAIN,
    SIGNAL_NOW,
    SIGNAL_RELOAD,
    SIGNAL_REOPEN_LOG,
    SIGNAL_UPGRADE,
    SIGNAL_MORE_WORKERS,
    SIGNAL_LESS_WORKERS,
    SIGNAL_REAP,
};

enum signal_index {
#define SIGNAL_ROW(name, action, help) SIGNAL_INDEX_##name,
#include "supervisor/signals.def"
    SIGNAL_INDEX_COUNT,
};

typedef void signal_cb(enum signal_action action, const char *name, void *arg);
struct signals {
    uv_signal_t handles[SIGNAL_INDEX_COUNT];
    size_t count; /* handles in use */
    signal_cb *cb;
    void *arg;
};

/* 0 or -errno; signals_close() in either case. SIGPIPE is ignored from then on. */
int signals_open(struct signals *signals, struct uv_loop_s *loop, signal_cb *cb, void *arg);
/* Holds back the signals of the table, or lets them come (signals_open does that too). They are
 * held back before the loop can take them: at a start, and while one program makes way for another.
 */
void signals_block(bool is_blocked);
void signals_close(struct signals *signals);
void signals_print_help(FILE *out);

#endif
