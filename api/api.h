/* What the parts of the API process share: one struct, handed to every handler. Loop thread only.
 */
#ifndef API_API_H
#define API_API_H

#include <stdbool.h>
#include <stdint.h>

#include "api/entropy.h"
#include "api/hints.h"
#include "common/base/kind_labels.h"

struct uv_loop_s;
struct settings;
struct store;
struct shm;
struct metrics;
struct health;
struct event_hub;
struct token_table;
struct credentials;
struct server;
struct request;

struct api {
    struct uv_loop_s *loop;
    const struct settings *settings;
    struct store *store;
    struct shm *shm;
    struct metrics *metrics;
    struct health *health;
    struct event_hub *events;
    struct server *server;
    const struct token_table *tokens;      /* NULL: none is asked for */
    const struct credentials *credentials; /* of the listeners, until they are there */
    struct hints hints;
    struct entropy entropy;
    const char *durability; /* value of Outbox-Durability */
    const char *node;
    struct kind_labels kinds; /* of the metrics */
    uint64_t generation;
    bool is_draining;
    bool is_ending;     /* the store is being closed: it takes no call any more */
    bool has_successor; /* draining, but another API serves: nobody need go away */
};

/* The API that a request came to. */
struct api *api_of(const struct request *request);

/* The handlers of routes.def. Each answers the request now or later, exactly once (request.h). */
#define ROUTE(id, method, pattern, body, access, handler, label)                                   \
    void handler(struct api *api, struct request *request);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls" /* a handler may serve two routes */
#include "api/routes.def"
#pragma GCC diagnostic pop

#endif
