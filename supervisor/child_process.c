/* Starting one API or worker process. Which descriptors it gets, and why: common/base/inherit.h;
 * here they are listed once more only as code. */
#include "supervisor/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/inherit.h"
#include "common/base/kind_labels.h"
#include "supervisor/child_config.h"
#include "supervisor/children_private.h"
#include "supervisor/spawn.h"

#define READY_LINE "READY\n"

/* The read end of a process's ready pipe. On the heap: its close is asynchronous, the child may
 * have a new one then. */
struct ready_pipe {
    uv_poll_t poll;
    int fd;
    struct child *child; /* NULL: a late event is harmless */
    void (*ready)(struct child *child);
    char text[sizeof(READY_LINE)];
    size_t len;
};

static void on_pipe_closed(uv_handle_t *handle)
{
    struct ready_pipe *pipe = handle->data;

    close(pipe->fd);
    free(pipe);
}

void child_process_done(struct child *child)
{
    struct ready_pipe *pipe = child->ready;

    child->ready = NULL;
    if (pipe) {
        pipe->child = NULL;
        uv_close((uv_handle_t *)&pipe->poll, on_pipe_closed);
    }
}

static void on_pipe(uv_poll_t *poll, int status, int events)
{
    struct ready_pipe *pipe = poll->data;
    struct child *child = pipe->child;

    (void)events;
    if (!child) {
        return;
    }
    const ssize_t n =
        status < 0 ? 0 : read(pipe->fd, pipe->text + pipe->len, sizeof(pipe->text) - 1 - pipe->len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    pipe->len += n > 0 ? (size_t)n : 0;
    if (pipe->len == strlen(READY_LINE) && memcmp(pipe->text, READY_LINE, pipe->len) == 0) {
        void (*ready)(struct child *) = pipe->ready;

        child_process_done(child);
        ready(child);
        return;
    }
    if (n <= 0 || pipe->len == strlen(READY_LINE)) {
        child_process_done(
            child); /* closed without the word: its end or the start's time limit decides */
    }
}

static int watch_ready(struct child *child, int fd, void (*ready)(struct child *child))
{
    struct ready_pipe *pipe = calloc(1, sizeof(*pipe));

    if (!pipe) {
        return -ENOMEM;
    }
    *pipe = (struct ready_pipe){.fd = fd, .child = child, .ready = ready};
    const int err = uv_poll_init(child->owner->options.loop, &pipe->poll, fd);
    if (err < 0) {
        free(pipe);
        return err;
    }
    pipe->poll.data = pipe;
    uv_poll_start(&pipe->poll, UV_READABLE,
                  on_pipe); /* can't fail on a descriptor that init took */
    child->ready = pipe;
    return 0;
}

const char *child_process_program(const struct child *child)
{
    const struct children_options *options = &child->owner->options;

    return child->role == SHM_ROLE_API ? options->api.text : options->worker.text;
}

static int fill_table(const struct child *child, const struct child_config *config, int ready_fd,
                      struct spawn_table *table)
{
    const struct children_options *options = &child->owner->options;
    const uint32_t slots = shm_slot_count(options->shm);
    const struct spawn_fd fixed[] = {
        {config->settings, INHERIT_CONFIG},
        {shm_fd(options->shm), INHERIT_SHM},
        {options->lifeline_fd, INHERIT_LIFELINE},
        {ready_fd, INHERIT_READY},
    };
    int err = 0;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && err == 0; i++) {
        err = spawn_table_add(table, fixed[i].source, fixed[i].target);
    }
    if (child->role == SHM_ROLE_API && err == 0) {
        err = spawn_table_add(table, config->credentials, INHERIT_CREDENTIALS);
    }
    for (size_t i = 0; child->role == SHM_ROLE_API && i < options->listeners->count && err == 0;
         i++) {
        err = spawn_table_add(table, options->listeners->fds[i], INHERIT_LISTEN_FIRST + (int)i);
    }
    /* Own: to be woken. Of the other role: to wake. Nobody wakes the supervisor, nor its own like.
     */
    for (uint32_t slot = SHM_SLOT_API_FIRST; slot < slots && err == 0; slot++) {
        if (slot == child->slot || shm_slot_role(slot) != child->role) {
            err = spawn_table_add(table, options->wakes->fds[slot],
                                  INHERIT_EVENTFD_FIRST + (int)slot);
        }
    }
    return err;
}

static int start_program(struct child *child, const struct child_config *config, int ready_fd,
                         uint64_t incarnation, pid_t *ret_pid)
{
    const struct children_options *options = &child->owner->options;
    char slot[16], generation[24], own[24], listeners[16], node[65], kinds[KIND_LABELS_TEXT_MAX];
    struct spawn_table table = {0};
    struct program_path program = child->role == SHM_ROLE_API ? options->api : options->worker;
    char slot_name[] = "--slot", generation_name[] = "--generation", own_name[] = "--incarnation",
         node_name[] = "--node", kinds_name[] = "--kinds", listeners_name[] = "--listeners";
    char *const argv[] = {
        program.text, slot_name,  slot,  generation_name,
        generation,   own_name,   own,   node_name,
        node,         kinds_name, kinds, child->role == SHM_ROLE_API ? listeners_name : NULL,
        listeners,    NULL,
    };

    kind_labels_print(options->kinds, kinds);
    /* All fit: numbers, and a node name that was checked. */
    (void)snprintf(slot, sizeof(slot), "%" PRIu32, child->slot);
    (void)snprintf(generation, sizeof(generation), "%" PRIx64, options->generation->number);
    (void)snprintf(own, sizeof(own), "%" PRIx64, incarnation);
    (void)snprintf(node, sizeof(node), "%s", options->generation->node);
    (void)snprintf(listeners, sizeof(listeners), "%zu", options->listeners->count);
    const int err = fill_table(child, config, ready_fd, &table);
    return err < 0 ? err : spawn_process(program.text, argv, &table, options->privileges, ret_pid);
}

int child_process_spawn(struct child *child, void (*ready)(struct child *child))
{
    const uint64_t incarnation = generation_random();
    int ends[2];
    pid_t pid;
    const struct children *children = child->owner;
    const struct child_config *shared =
        child->is_successor ? &children->next_config : &children->config;
    AUTO_CLOSE int settings_fd = child_config_reopen(shared->settings);
    AUTO_CLOSE int credentials_fd = child_config_reopen(shared->credentials);

    if (settings_fd < 0 || credentials_fd < 0) {
        return settings_fd < 0 ? settings_fd : credentials_fd;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        return -errno;
    }
    int err = watch_ready(child, ends[0], ready);
    if (err < 0) {
        close(ends[0]);
        close(ends[1]);
        return err;
    }
    shm_mend(child->owner->options.shm);
    err = start_program(child, &(struct child_config){settings_fd, credentials_fd}, ends[1],
                        incarnation, &pid);
    close(ends[1]);
    if (err < 0) {
        child_process_done(child);
        return err;
    }
    child->pid = pid;
    child->generation = child->owner->options.generation->number;
    child->incarnation = incarnation;
    child->started_ms = clock_mono_ms();
    shm_process_begin(child->owner->options.shm, child->slot, child->role, (int32_t)pid,
                      incarnation);
    return 0;
}
