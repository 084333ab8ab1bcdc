/* The session that a kind names for a message that names none. Pure. Contract §6. */
#ifndef API_ACCEPT_LANE_H
#define API_ACCEPT_LANE_H

#include "api/accept_form.h"
#include "common/base/settings.h"

/* The kind's lane (NULL or none: `global`), filled with what the message holds; *ret lies in
 * `room`, or is constant. False: *form holds the detail of PROBLEM_LANE_NOT_FILLED. */
bool accept_lane_find(const struct kind *kind, struct span workspace, struct accept_form *form,
                      char room[SESSION_MAX], struct span *ret);

#endif
