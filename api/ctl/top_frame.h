/* One frame of `top` as text or as JSON. Pure. */
#ifndef API_CTL_TOP_FRAME_H
#define API_CTL_TOP_FRAME_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct top_figures;
struct top_sample;

struct top_view {
    size_t rows, columns; /* of the terminal; 0: no limit */
    bool is_coloured;
    const char *state_dir;
};

/* Appends at most view->rows lines, each with a line feed and no wider than view->columns. 0 or
 * -ENOMEM, -ENOBUFS. */
int top_frame_text(const struct top_sample *sample, const struct top_figures *figures,
                   const struct top_view *view, struct buf *out);
/* One line of JSON. The same. */
int top_frame_json(const struct top_sample *sample, const struct top_figures *figures,
                   struct buf *out);

#endif
