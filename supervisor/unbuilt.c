/* A table of (condition, setting, what to do instead). A row goes when its feature comes. */
#include "supervisor/unbuilt.h"

#include <stdbool.h>

#include "common/base/settings.h"
#include "common/core/buf.h"

static size_t complain(const char *config, const char *setting, const char *advice,
                       struct buf *lines)
{
    (void)buf_appendf(lines, "%s: %s: is not carried out by this version: %s\n",
                      config ? config : "defaults", setting, advice);
    return 1;
}

size_t unbuilt_settings(const char *config, const struct settings *s, struct buf *lines)
{
    const struct {
        bool is_used;
        const char *setting, *advice;
    } rows[] = {
    };
    size_t count = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_used) {
            count += complain(config, rows[i].setting, rows[i].advice, lines);
        }
    }
    return count;
}
