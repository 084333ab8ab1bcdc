/* Colours: when they are wanted, what they mean, how they are written. */
#ifndef API_CTL_STYLE_H
#define API_CTL_STYLE_H

#include <stdbool.h>

#include "common/core/span.h"

struct buf;
struct options;

enum style {
    STYLE_PLAIN,
    STYLE_TITLE,
    STYLE_FAINT,
    STYLE_GOOD,
    STYLE_CAREFUL, /* waits, is in doubt, was set aside */
    STYLE_BAD,
    STYLE_COUNT,
};

/* `mode`: auto, always, never, or NULL for auto. With auto a terminal that can, unless NO_COLOR is
 * set and not empty. Pure. */
bool style_decide(const char *mode, bool is_terminal, const char *no_color, const char *term);
/* The same from the command line, the environment and standard output. */
bool style_is_wanted(const struct options *options);

/* What begins and ends a style; empty unless `is_coloured`. */
const char *style_begin(enum style style, bool is_coloured);
const char *style_end(enum style style, bool is_coloured);
/* Appends a text, made safe for a terminal, in that style. */
void style_add(struct buf *out, enum style style, bool is_coloured, struct span text);

/* Of an entry's status, how it ended, or the type of an event. */
enum style style_of_status(struct span status);

#endif
