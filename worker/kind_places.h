/* Places of kinds that have a limit (`max_in_flight` of a kind): at most so many of their entries
 * are in flight in this worker. One that finds no place waits here for its turn, its session
 * locked, a moment at most and in the order of arrival; beyond that, and when too many wait, its
 * claim is given back for a while. Who waits counts neither against the worker's room nor against
 * its workspace's share, so that a kind at its limit holds up nothing but itself. Loop thread only.
 */
#ifndef WORKER_KIND_PLACES_H
#define WORKER_KIND_PLACES_H

#include "common/base/settings.h"

struct kind_places;
struct delivery;
struct worker;

enum kind_place {
    KIND_PLACE_TAKEN,   /* or none is needed: go on */
    KIND_PLACE_WAITING, /* delivery_begin_in_place or delivery_find_no_place follows */
    KIND_PLACE_NONE,    /* give the claim back */
};

int kind_places_create(const struct settings *settings, struct kind_places **ret);
/* Nobody may be in it any more. */
void kind_places_destroy(struct kind_places **places);

enum kind_place kind_place_enter(struct delivery *delivery);
/* The delivery's entry is done with, or waits no longer. Who waited longest has its place. Nothing
 * happens to one that has none. */
void kind_place_leave(struct delivery *delivery);
/* Those who wait give up now: the worker drains. */
void kind_places_stop(struct kind_places *places);

#endif
