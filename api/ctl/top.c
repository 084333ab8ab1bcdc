/* The loop of `top`: take a sample, make a frame, show it, wait. It attaches anew for every sample,
 * so that it follows a restarted outboxd, and never writes to shared memory. */
#include "api/ctl/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/options.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "api/ctl/terminal.h"
#include "api/ctl/top_figures.h"
#include "api/ctl/top_frame.h"
#include "api/ctl/top_sample.h"
#include "common/core/buf.h"
#include "common/core/span.h"

#define FRAME_MAX           ((size_t)128 * 1024 * 1024)
#define INTERVAL_DEFAULT_MS 1000
#define INTERVAL_MIN_MS     50
#define INTERVAL_MAX_MS     3600000

static const char *reason(int err)
{
    return err == -ENOENT   ? "no outboxd runs on this state directory"
           : err == -EPROTO ? "outboxd is of another version than this outboxctl"
                            : strerror(-err);
}

static int make_frame(const struct options *options, const struct top_sample *sample,
                      const struct top_sample *earlier, const struct top_view *view,
                      struct buf *out)
{
    struct top_figures figures;

    top_figures_compute(sample, earlier, &figures);
    return option_is_set(options, OPTION_JSON) ? top_frame_json(sample, &figures, out)
                                               : top_frame_text(sample, &figures, view, out);
}

static int complain(const struct options *options, int err)
{
    fprintf(stderr, "outboxctl: %s: %s\n", options->state_dir, reason(err));
    output_problem(options, err == -ENOENT ? "unreachable" : "failed", "There is nothing to show",
                   reason(err));
    return err == -ENOENT ? EXIT_CODE_UNREACHABLE : EXIT_CODE_FAILED;
}

static int run_once(const struct options *options)
{
    struct top_view view = {.is_coloured = style_is_wanted(options),
                            .state_dir = options->state_dir};
    struct top_sample *sample = NULL;
    struct buf frame;
    size_t rows;
    int err = top_sample_take(&sample, options->state_dir);

    if (err < 0) {
        return complain(options, err);
    }
    terminal_size(&rows, &view.columns); /* all rows: a terminal scrolls */
    buf_init(&frame, FRAME_MAX);
    err = make_frame(options, sample, NULL, &view, &frame);
    top_sample_destroy(&sample);
    if (err == 0 && (fwrite(frame.bytes, 1, frame.len, stdout) != frame.len || fflush(stdout))) {
        err = -EIO;
    }
    buf_done(&frame);
    return err < 0 ? complain(options, err) : EXIT_CODE_OK;
}

struct live {
    const struct options *options;
    struct top_sample *now, *earlier; /* NULL: none */
    int err;                          /* why there is no new one */
};

/* The time has come for a new sample. */
static void advance(struct live *live)
{
    struct top_sample *fresh = NULL;

    live->err = top_sample_take(&fresh, live->options->state_dir);
    top_sample_destroy(&live->earlier);
    live->earlier = live->now;
    live->now = fresh;
}

/* False: it cannot be shown to anybody any more. */
static bool draw(const struct live *live)
{
    struct top_view view = {.is_coloured = style_is_wanted(live->options),
                            .state_dir = live->options->state_dir};
    struct buf frame;
    int err = live->err;

    buf_init(&frame, FRAME_MAX);
    if (terminal_is_capable()) {
        terminal_size(&view.rows, &view.columns);
    }
    if (live->now) {
        err = make_frame(live->options, live->now, live->earlier, &view, &frame);
    }
    if (err < 0) {
        buf_reset(&frame);
        if (option_is_set(live->options, OPTION_JSON)) {
            buf_append_str(&frame, "{\"processes\":[],\"in_flight\":[]}\n");
        } else {
            print_safe(&frame, span_of(live->options->state_dir));
            buf_appendf(&frame, ": %s\n", reason(err));
        }
    }
    const bool is_shown = terminal_show(&frame);

    buf_done(&frame);
    return is_shown;
}

static int run_live(const struct options *options)
{
    const int64_t interval_ms = option_ms(options, OPTION_INTERVAL, INTERVAL_DEFAULT_MS);
    struct live live = {.options = options};
    enum terminal_event event = TERMINAL_TICK;
    bool is_shown = true;

    advance(&live);
    if (!live.now) {
        return complain(options, live.err); /* to begin with there must be one */
    }
    terminal_start();
    while (event != TERMINAL_END && is_shown) {
        is_shown = draw(&live);
        event = terminal_wait((long)interval_ms);
        if (event == TERMINAL_TICK) {
            advance(&live);
        }
    }
    top_sample_destroy(&live.now);
    top_sample_destroy(&live.earlier);
    terminal_stop();
    return is_shown ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

int command_top(const struct options *options)
{
    const int64_t interval_ms = option_ms(options, OPTION_INTERVAL, INTERVAL_DEFAULT_MS);

    if (interval_ms < INTERVAL_MIN_MS || interval_ms > INTERVAL_MAX_MS) {
        options_complain(options, "--interval must be 0.05 to 3600 seconds");
        return EXIT_CODE_USAGE;
    }
    return option_is_set(options, OPTION_ONCE) ? run_once(options) : run_live(options);
}
