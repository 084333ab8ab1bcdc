/* JSON to and from a memfd. Every number is checked as if a stranger had written it: a slip of
 * another version shall end in a refusal. */
#include "supervisor/upgrade_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "supervisor/fd.h"

#define VERSION 1

void upgrade_state_init(struct upgrade_state *state)
{
    *state = (struct upgrade_state){
        .supervisor_lock = -1, .slot_lock = -1, .shm = -1, .lifeline = {-1, -1}};
    for (size_t i = 0; i < SHM_SLOT_MAX; i++) {
        state->wakes[i] = -1;
    }
}

static void forget(char *secret)
{
    if (secret) {
        explicit_bzero(secret, strlen(secret));
        free(secret);
    }
}

void upgrade_state_done(struct upgrade_state *state)
{
    forget(state->configured);
    forget(state->running);
    forget(state->credentials);
    json_decref(state->totals);
    upgrade_state_init(state);
}

int upgrade_state_each_fd(const struct upgrade_state *state, upgrade_fd_cb *cb, void *arg)
{
    const int single[] = {state->supervisor_lock, state->slot_lock, state->shm, state->lifeline[0],
                          state->lifeline[1]};
    int err = 0;

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]) && err == 0; i++) {
        err = cb(single[i], arg);
    }
    for (size_t i = 0; i < state->listener_count && err == 0; i++) {
        err = cb(state->listeners[i], arg);
    }
    for (size_t i = 0; i < SHM_SLOT_MAX && err == 0; i++) {
        err = state->wakes[i] >= 0 ? cb(state->wakes[i], arg) : 0;
    }
    return err;
}

/* ---- writing ---- */

/* Numbers of 64 bits as text: JSON's have a sign. */
static json_t *hex(uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIx64, value); /* fits */
    return json_string(text);
}

static json_t *numbers(const int *values, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_integer(values[i])); /* found in the end */
    }
    return list;
}

static json_t *children(const struct upgrade_state *state)
{
    json_t *list = json_array();

    for (size_t i = 0; i < state->child_count; i++) {
        const struct child_record *child = &state->children[i];
        json_t *item =
            json_pack("{s:i, s:i, s:i, s:b, s:I, s:o, s:o, s:I, s:I}", "slot", (int)child->slot,
                      "role", (int)child->role, "state", (int)child->state, "wanted",
                      (int)child->is_wanted, "pid", (json_int_t)child->pid, "generation",
                      hex(child->generation), "incarnation", hex(child->incarnation), "started_ms",
                      (json_int_t)child->started_ms, "left_ms", (json_int_t)child->left_ms);

        if (!item || json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *document(const struct upgrade_state *state)
{
    json_t *json = json_pack(
        "{s:i, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:s, s:s, s:s, s:o}", "version", VERSION,
        "generation", hex(state->generation), "supervisor_lock", state->supervisor_lock,
        "slot_lock", state->slot_lock, "shm", state->shm, "store", (int)state->store, "lifeline",
        numbers(state->lifeline, 2), "listeners", numbers(state->listeners, state->listener_count),
        "wakes", numbers(state->wakes, SHM_SLOT_MAX), "kinds", state->kinds, "configured",
        state->configured, "running", state->running, "children", children(state));

    if (json && state->credentials) {
        if (json_object_set_new(json, "credentials", json_string(state->credentials)) < 0) {
            json_decref(json);
            return NULL;
        }
    }
    if (json && state->totals) {
        (void)json_object_set(json, "totals", state->totals); /* counters begin anew else */
    }
    return json;
}

int upgrade_state_write(const struct upgrade_state *state)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    json_t *json = document(state);
    AUTO_CLOSE int fd = memfd_create("outboxd-upgrade", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err = fd < 0 ? -errno : json ? 0 : -ENOMEM;

    if (err == 0 && json_dumpfd(json, fd, JSON_COMPACT) < 0) {
        err = -ENOSPC;
    }
    json_decref(json);
    if (err == 0 && fcntl(fd, F_ADD_SEALS, seals) < 0) {
        err = -errno;
    }
    return err < 0 ? err : fd_take(&fd);
}

/* ---- reading ---- */

static bool take_hex(const json_t *json, const char *name, uint64_t *ret)
{
    const char *text = json_string_value(json_object_get(json, name));
    char *end = NULL;

    if (!text || !*text) {
        return false;
    }
    *ret = strtoull(text, &end, 16);
    return *end == '\0';
}

static bool take_number(const json_t *json, const char *name, int64_t min, int64_t max,
                        int64_t *ret)
{
    const json_t *value = json_object_get(json, name);

    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max) {
        return false;
    }
    *ret = json_integer_value(value);
    return true;
}

/* A descriptor that is open here. */
static bool take_fd_value(const json_t *value, int *ret)
{
    const json_int_t fd = json_is_integer(value) ? json_integer_value(value) : -1;

    if (fd < 3 || fd > INT32_MAX) {
        return false;
    }
    *ret = (int)fd;
    return true;
}

static bool take_fd_member(const json_t *json, const char *name, int *ret)
{
    return take_fd_value(json_object_get(json, name), ret);
}

static bool take_child(const json_t *json, struct child_record *ret)
{
    int64_t slot, role, state, pid;
    struct child_record child = {0};

    if (!take_number(json, "slot", 0, SHM_SLOT_MAX - 1, &slot) ||
        !take_number(json, "role", SHM_ROLE_API, SHM_ROLE_WORKER, &role) ||
        !take_number(json, "state", 0, CHILD_STATE_COUNT - 1, &state) ||
        !take_number(json, "pid", 0, INT32_MAX, &pid) ||
        !take_number(json, "started_ms", INT64_MIN, INT64_MAX, &child.started_ms) ||
        !take_number(json, "left_ms", -1, INT64_MAX, &child.left_ms) ||
        !take_hex(json, "generation", &child.generation) ||
        !take_hex(json, "incarnation", &child.incarnation)) {
        return false;
    }
    child.slot = (uint32_t)slot;
    child.role = (enum shm_role)role;
    child.state = (enum child_state)state;
    child.pid = (pid_t)pid;
    child.is_wanted = json_is_true(json_object_get(json, "wanted"));
    *ret = child;
    return true;
}

static bool take_children(const json_t *list, struct upgrade_state *state)
{
    const size_t count = json_array_size(list);

    if (!json_is_array(list) || count > UPGRADE_CHILDREN_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!take_child(json_array_get(list, i), &state->children[i])) {
            return false;
        }
    }
    state->child_count = count;
    return true;
}

static bool take_lists(const json_t *json, struct upgrade_state *state)
{
    const json_t *listeners = json_object_get(json, "listeners");
    const json_t *wakes = json_object_get(json, "wakes");
    const json_t *lifeline = json_object_get(json, "lifeline");

    state->listener_count = json_array_size(listeners);
    if (!json_is_array(listeners) || state->listener_count > INHERIT_LISTEN_MAX ||
        json_array_size(lifeline) != 2) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        if (!take_fd_value(json_array_get(lifeline, i), &state->lifeline[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < state->listener_count; i++) {
        if (!take_fd_value(json_array_get(listeners, i), &state->listeners[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < json_array_size(wakes) && i < SHM_SLOT_MAX; i++) {
        (void)take_fd_value(json_array_get(wakes, i), &state->wakes[i]); /* -1: none */
    }
    return true;
}

bool upgrade_state_read(const json_t *json, struct upgrade_state *state)
{
    const char *kinds = json_string_value(json_object_get(json, "kinds"));
    const char *configured = json_string_value(json_object_get(json, "configured"));
    const char *running = json_string_value(json_object_get(json, "running"));
    const char *credentials = json_string_value(json_object_get(json, "credentials"));
    int64_t version, store;

    if (!take_number(json, "version", VERSION, VERSION, &version) ||
        !take_number(json, "store", 0, INT32_MAX, &store) || !kinds || !configured || !running ||
        strlen(kinds) >= sizeof(state->kinds)) {
        return false;
    }
    state->store = (pid_t)store;
    memcpy(state->kinds, kinds, strlen(kinds) + 1);
    state->totals = json_incref(json_object_get(json, "totals"));
    state->configured = strdup(configured);
    state->running = strdup(running);
    state->credentials = credentials ? strdup(credentials) : NULL;
    return state->configured && state->running && (state->credentials || !credentials) &&
           take_hex(json, "generation", &state->generation) &&
           take_fd_member(json, "supervisor_lock", &state->supervisor_lock) &&
           take_fd_member(json, "slot_lock", &state->slot_lock) &&
           take_fd_member(json, "shm", &state->shm) && take_lists(json, state) &&
           take_children(json_object_get(json, "children"), state);
}

int upgrade_state_take(struct upgrade_state *ret)
{
    const char *text = getenv(UPGRADE_STATE_VARIABLE);
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : -1;

    if (!text) {
        return 0;
    }
    upgrade_state_init(ret);
    const bool is_number = *text && *end == '\0' && number >= 3 && number <= INT32_MAX;
    unsetenv(UPGRADE_STATE_VARIABLE); /* before a child could get it */
    AUTO_CLOSE int fd = is_number ? (int)number : -1;
    json_t *json = fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? json_loadfd(fd, 0, NULL) : NULL;
    const bool is_good = json && upgrade_state_read(json, ret);

    json_decref(json);
    if (!is_good) {
        upgrade_state_done(ret);
        log_error("the state that the running outboxd handed over can't be read: it is of another "
                  "version",
                  "mend", "stop the old outboxd and start the new one");
        return -EPROTO;
    }
    return 1;
}
