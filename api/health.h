/* What the API knows of the store's health and of the counts, asked for every so often and never
 * per request: /readyz and /metrics answer from here. */
#ifndef API_HEALTH_H
#define API_HEALTH_H

#include <stdbool.h>

struct api;
struct counts_answer;
struct health;

/* Starts asking: facts every 2 s, counts of all partitions every 2 s, the generation's counter
 * every 2 s. 0 or -errno. */
int health_create(struct api *api, struct health **ret);
/* Asks at once: the store came back. */
void health_refresh(struct health *health);
/* Why an entry can't be accepted as durably as configured now; NULL: it can. */
const char *health_store_refusal(const struct health *health);
/* What stood in the store some seconds ago; NULL: not known. Valid until the loop goes on. */
const struct counts_answer *health_counts(const struct health *health);
/* Closes the timer. NULL is fine. */
void health_close(struct health *health);
/* After the loop has ended. */
void health_destroy(struct health **health);

/* Whether the store has told its state and its counts since this process started. */
bool health_is_known(const struct health *health);

#endif
