/* What a supervisor hands to the program that it executes in its own place: descriptors by their
 * numbers, children, the configuration that runs. A JSON document in a memfd, whose number stands
 * in an environment variable. Contract §10 (USR2).
 *
 * Both ends may be of different versions: members that are unknown are ignored, and a document
 * whose `version` is another one is refused, so that the check fails and nothing changes. */
#ifndef SUPERVISOR_UPGRADE_STATE_H
#define SUPERVISOR_UPGRADE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/inherit.h"
#include "common/base/kind_labels.h"
#include "common/shm/shm.h"
#include "supervisor/children.h"

#define UPGRADE_STATE_VARIABLE "OUTBOXD_UPGRADE_STATE"
#define UPGRADE_CHILDREN_MAX   128

struct json_t; /* of jansson */

struct upgrade_state {
    uint64_t generation;
    int supervisor_lock, slot_lock, shm, lifeline[2];
    int listeners[INHERIT_LISTEN_MAX];
    size_t listener_count;
    int wakes[SHM_SLOT_MAX]; /* -1: none */
    pid_t store;             /* the embedded server's process; 0: none, or not known */
    char kinds[KIND_LABELS_TEXT_MAX];
    /* Owned: YAML with secrets, as the daemon was first started, and as its children run. */
    char *configured, *running;
    char *credentials; /* owned: what the API has beside it, as JSON (credentials.h) */
    struct child_record children[UPGRADE_CHILDREN_MAX];
    size_t child_count;
    struct json_t *totals; /* owned: metric_totals.h; NULL: none */
};

void upgrade_state_init(struct upgrade_state *state);
void upgrade_state_done(struct upgrade_state *state); /* closes no descriptor */

/* Every descriptor in it, for the exec. */
typedef int upgrade_fd_cb(int fd, void *arg); /* 0 or -errno, which ends the walk */
int upgrade_state_each_fd(const struct upgrade_state *state, upgrade_fd_cb *cb, void *arg);

/* A sealed memfd (CLOEXEC), or -errno. */
int upgrade_state_write(const struct upgrade_state *state);
/* What such a document says, into an initialized state; pure. False: it is none, or of another
 * version; the state then holds a part of it. */
bool upgrade_state_read(const struct json_t *json, struct upgrade_state *ret);
/* From the descriptor that the environment names; both are gone afterwards. 1, 0: there is none,
 * -EPROTO: of another version or damaged (logged). */
int upgrade_state_take(struct upgrade_state *ret);

#endif
