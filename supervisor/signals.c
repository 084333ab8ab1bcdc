/* One libuv handle per row of the table. */
#include "supervisor/signals.h"

#include <signal.h>

struct row {
    int number;
    enum signal_action action;
    const char *name, *help;
};

static const struct row rows[SIGNAL_INDEX_COUNT] = {
#define SIGNAL_ROW(id, does, text)                                                                 \
    [SIGNAL_INDEX_##                                                                               \
        id] = {.number = SIG##id, .action = SIGNAL_##does, .name = "SIG" #id, .help = text},
#include "supervisor/signals.def"
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;
    const struct row *row = &rows[handle - signals->handles];

    (void)number; /* one handle per number */
    signals->cb(row->action, row->name, signals->arg);
}

void signals_block(bool is_blocked)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_INDEX_COUNT; i++) {
        sigaddset(&set, rows[i].number);
    }
    (void)sigprocmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL); /* can't fail */
}

int signals_open(struct signals *signals, struct uv_loop_s *loop, signal_cb *cb, void *arg)
{
    *signals = (struct signals){.cb = cb, .arg = arg};
    (void)signal(SIGPIPE, SIG_IGN); /* can't fail: a valid signal */
    for (size_t i = 0; i < SIGNAL_INDEX_COUNT; i++) {
        int err = uv_signal_init(loop, &signals->handles[i]);
        if (err < 0) {
            return err;
        }
        signals->handles[i].data = signals;
        signals->count = i + 1;
        err = uv_signal_start(&signals->handles[i], on_signal, rows[i].number);
        if (err < 0) {
            return err;
        }
    }
    signals_block(false);
    return 0;
}

void signals_close(struct signals *signals)
{
    for (size_t i = 0; i < signals->count; i++) {
        uv_close((uv_handle_t *)&signals->handles[i], NULL);
    }
    signals->count = 0;
}

void signals_print_help(FILE *out)
{
    for (size_t i = 0; i < SIGNAL_INDEX_COUNT; i++) {
        if (rows[i].action != SIGNAL_REAP) {
            (void)fprintf(out, "  %-8s %s\n", rows[i].name, rows[i].help);
        }
    }
}
