/* The terminal as `top` uses it: the alternate screen, keys, size, signals; given back as it was.
 */
#ifndef API_CTL_TERMINAL_H
#define API_CTL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum terminal_event {
    TERMINAL_TICK,   /* the time is over */
    TERMINAL_REDRAW, /* another size, or back from being suspended */
    TERMINAL_END,    /* a key or a signal */
};

/* Whether stdout is a terminal that can do it. */
bool terminal_is_capable(void);
/* Takes signals; and the screen, if it is capable. */
void terminal_start(void);
/* Gives everything back; ends the process by the signal that ended the view if it was one that a
 * caller should see (not ^C). */
void terminal_stop(void);
/* 0 where nobody knows. */
void terminal_size(size_t *ret_rows, size_t *ret_columns);
/* A whole frame, over the last one. False: the other end is gone. */
bool terminal_show(const struct buf *frame);
enum terminal_event terminal_wait(long ms);

#endif
