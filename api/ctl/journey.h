/* What happened to an entry, as far as the server's events still tell. */
#ifndef API_CTL_JOURNEY_H
#define API_CTL_JOURNEY_H

#include <jansson.h>

struct asking;

struct journey {
    json_t *events;   /* an array of their data, oldest first; owned */
    const char *note; /* why there may be more than these; static, empty: these are all */
};

/* Reads the events of the entry's session from its acceptance on, in a few seconds at most.
 * `entry`: the API's answer. Always fills *ret. */
void journey_read(struct asking *asking, const char *workspace, const json_t *entry,
                  struct journey *ret);
void journey_done(struct journey *journey);

#endif
