/* One table of escape sequences, one of what a status looks like. */
#include "api/ctl/style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ctl/options.h"
#include "api/ctl/print.h"
#include "common/core/buf.h"

static const char *const sequences[STYLE_COUNT] = {
    [STYLE_PLAIN] = "",        [STYLE_TITLE] = "\033[1m",    [STYLE_FAINT] = "\033[2m",
    [STYLE_GOOD] = "\033[32m", [STYLE_CAREFUL] = "\033[33m", [STYLE_BAD] = "\033[31m",
};

bool style_decide(const char *mode, bool is_terminal, const char *no_color, const char *term)
{
    if (mode && strcmp(mode, "auto") != 0) {
        return strcmp(mode, "always") == 0;
    }
    return is_terminal && term && term[0] && strcmp(term, "dumb") != 0 &&
           !(no_color && no_color[0]);
}

bool style_is_wanted(const struct options *options)
{
    return style_decide(option_text(options, OPTION_COLOR), isatty(STDOUT_FILENO) == 1,
                        getenv("NO_COLOR"), getenv("TERM"));
}

const char *style_begin(enum style style, bool is_coloured)
{
    return is_coloured ? sequences[style] : "";
}

const char *style_end(enum style style, bool is_coloured)
{
    return is_coloured && style != STYLE_PLAIN ? "\033[0m" : "";
}

void style_add(struct buf *out, enum style style, bool is_coloured, struct span text)
{
    (void)buf_append_str(out, style_begin(style, is_coloured));
    print_safe(out, text);
    (void)buf_append_str(out, style_end(style, is_coloured));
}

enum style style_of_status(struct span status)
{
    static const struct {
        const char *status;
        enum style style;
    } rows[] = {
        {"error", STYLE_BAD},        {"discarded", STYLE_BAD},  {"verifying", STYLE_CAREFUL},
        {"retrying", STYLE_CAREFUL}, {"parked", STYLE_CAREFUL}, {"delayed", STYLE_CAREFUL},
        {"paused", STYLE_CAREFUL},   {"sent", STYLE_GOOD},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_equal(status, span_of(rows[i].status))) {
            return rows[i].style;
        }
    }
    return STYLE_PLAIN;
}
