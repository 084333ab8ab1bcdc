/* The supervisor's recovery on a real store: whose sessions are taken back, and whose are left.
 * Owners are played by lock files: a held one is a process that lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "common/base/inherit.h"
#include "common/core/ids.h"
#include "supervisor/recovery.h"
#include "supervisor/recovery_private.h"
#include "tests/store/support/valkey_fixture.h"

#define OWN         UINT64_C(0x1111)
#define OLD         UINT64_C(0x2222)
#define LOCK_TTL_MS 600000

struct scene {
    struct valkey *valkey;
    uv_loop_t loop;
    struct store *store;
    struct recovery *recovery;
    struct generation generation;
    char state_dir[64];
    uint64_t hints;
    bool is_done;
};

static void on_done(void *arg)
{
    struct scene *scene = arg;

    scene->is_done = true;
}

static void on_partition(uint32_t partition, void *arg)
{
    struct scene *scene = arg;

    scene->hints |= UINT64_C(1) << partition;
}

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    scene->valkey = valkey_start(NULL);
    memcpy(scene->state_dir, "/tmp/outboxd-test-XXXXXX", sizeof("/tmp/outboxd-test-XXXXXX"));
    assert_non_null(mkdtemp(scene->state_dir));
    generation_init(&scene->generation);
    scene->generation.number = OWN;
    scene->generation.state_dir = scene->state_dir;
    memcpy(scene->generation.node, "here", sizeof("here"));
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    const struct store_options store = {
        .url = scene->valkey->url,
        .connections = 2,
        .max_outstanding = 10000,
        .connect_timeout_ms = 5000,
        .command_timeout_ms = 5000,
        .dedupe_ttl_ms = 1000,
        .lock_ttl_ms = LOCK_TTL_MS,
        .events_max = 1000,
    };
    assert_int_equal(store_open(&scene->loop, &store, &scene->store), 0);
    const struct recovery_options recovery = {
        .loop = &scene->loop,
        .store = scene->store,
        .generation = &scene->generation,
        .recovered = on_partition,
        .arg = scene,
    };
    assert_int_equal(recovery_create(&scene->recovery, &recovery), 0);
    *state = scene;
    return 0;
}

static void remove_folder(const struct scene *scene)
{
    char command[128];

    for (uint64_t generation = OWN; generation <= OLD; generation += OLD - OWN) {
        for (uint32_t slot = 0; slot < 16; slot++) {
            (void)snprintf(command, sizeof(command), "%s/locks/%" PRIx64 ".%" PRIu32,
                           scene->state_dir, generation, slot);
            (void)unlink(command);
        }
    }
    (void)snprintf(command, sizeof(command), "%s/locks", scene->state_dir);
    (void)rmdir(command);
    (void)rmdir(scene->state_dir);
}

static int tear_down(void **state)
{
    struct scene *scene = *state;

    recovery_stop(scene->recovery);
    store_close(scene->store, NULL, NULL);
    uv_run(&scene->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene->loop), 0);
    recovery_destroy(&scene->recovery);
    valkey_stop(&scene->valkey);
    remove_folder(scene);
    free(scene);
    return 0;
}

/* A session locked by that process, as a claim leaves it; its entry is not needed here. */
static void lock_session(struct scene *scene, const char *session, const char *node,
                         uint64_t generation, uint32_t slot, uint64_t incarnation,
                         int64_t deadline_ms)
{
    struct token_parts parts = {
        .generation = generation, .slot = slot, .incarnation = incarnation, .claim = 1};
    const uint32_t p =
        partition_of(session, strlen(session)); /* the workspace has the session's name */

    (void)snprintf(parts.node, sizeof(parts.node), "%s", node);
    const struct lock_token token = lock_token_make(&parts);
    (void)valkey_do(scene->valkey, "SET outboxlock:{%u}:%s:%s %s PX %d", p, session, session,
                    token.text, LOCK_TTL_MS);
    (void)valkey_do(scene->valkey, "ZADD outboxlive:{%u} %lld %s:%s", p, (long long)deadline_ms,
                    session, session);
}

static int64_t far_deadline(struct scene *scene)
{
    return valkey_do(scene->valkey, "EVAL %s 0", "return redis.call('TIME')[1] * 1000") +
           LOCK_TTL_MS;
}

static bool is_locked(struct scene *scene, const char *session)
{
    const uint32_t p = partition_of(session, strlen(session));

    return valkey_do(scene->valkey, "EXISTS outboxlock:{%u}:%s:%s", p, session, session) == 1;
}

/* The lock file of a process that lives (its descriptor), or that died. */
static int living(struct scene *scene, uint64_t generation, uint32_t slot)
{
    const int fd = inherit_lock_slot(scene->state_dir, generation, slot);

    assert_true(fd >= 0);
    return fd;
}

static void dead(struct scene *scene, uint64_t generation, uint32_t slot)
{
    close(living(scene, generation, slot));
}

/* Time limits of a test that waits for an event; the event normally comes at once. */
static void run_until(struct scene *scene, bool (*happened)(struct scene *scene))
{
    const uint64_t start_ms = uv_hrtime() / 1000000;

    while (!happened(scene)) {
        assert_true(uv_hrtime() / 1000000 - start_ms < 60000);
        uv_run(&scene->loop, UV_RUN_ONCE);
    }
}

static bool is_done(struct scene *scene)
{
    return scene->is_done;
}

static void recover_at_start(struct scene *scene)
{
    recovery_at_start(scene->recovery, on_done, scene);
    run_until(scene, is_done);
}

/* ---- at start ---- */

static void at_start_dead_processes_of_this_node_lose_their_sessions(void **state)
{
    struct scene *scene = *state;
    const int64_t deadline_ms = far_deadline(scene);
    const int fd = living(scene, OLD, 5);

    dead(scene, OLD, 4);
    lock_session(scene, "dead", "here", OLD, 4, 1, deadline_ms);
    lock_session(scene, "drains", "here", OLD, 5, 1, deadline_ms);
    lock_session(scene, "elsewhere", "there", OLD, 4, 1, deadline_ms);
    lock_session(scene, "nofile", "here", 0x9999, 4, 1, deadline_ms);
    recover_at_start(scene);
    assert_false(is_locked(scene, "dead"));
    assert_true(is_locked(scene, "drains"));
    assert_true(is_locked(scene, "elsewhere"));
    assert_true(is_locked(scene, "nofile")); /* no lock file: another node that has our name */
    assert_true(scene->hints == UINT64_C(1) << partition_of("dead", 4));
    close(fd);
}

static void at_start_expired_locks_are_taken_whoever_owns_them(void **state)
{
    struct scene *scene = *state;

    lock_session(scene, "late", "there", OLD, 4, 1, 1000);
    recover_at_start(scene);
    assert_false(is_locked(scene, "late"));
}

static void at_start_a_store_that_comes_late_is_waited_for(void **state)
{
    struct scene *scene = *state;

    dead(scene, OLD, 4);
    lock_session(scene, "dead", "here", OLD, 4, 1, far_deadline(scene));
    valkey_kill(scene->valkey);
    recovery_at_start(scene->recovery, on_done, scene);
    for (int i = 0; i < 5; i++) {
        uv_run(&scene->loop, UV_RUN_ONCE);
    }
    assert_false(scene->is_done);
    valkey_launch(scene->valkey);
    run_until(scene, is_done);
    assert_false(is_locked(scene, "dead"));
}

/* ---- a worker's death ---- */

static bool is_hinted(struct scene *scene)
{
    return scene->hints != 0;
}

static void a_dead_worker_loses_what_that_process_held_and_nothing_else(void **state)
{
    struct scene *scene = *state;
    const int64_t deadline_ms = far_deadline(scene);
    const int fd = living(scene, OWN, 4); /* its successor lives in the same slot already */

    lock_session(scene, "mine", "here", OWN, 4, 0xab, deadline_ms);
    lock_session(scene, "successors", "here", OWN, 4, 0xabc, deadline_ms);
    lock_session(scene, "neighbours", "here", OWN, 5, 0xab, deadline_ms);
    recovery_of_process(scene->recovery, OWN, 4, 0xab);
    run_until(scene, is_hinted);
    assert_false(is_locked(scene, "mine"));
    assert_true(is_locked(scene, "successors"));
    assert_true(is_locked(scene, "neighbours"));
    close(fd);
}

/* ---- the periodic part ---- */

static bool draining_is_recovered(struct scene *scene)
{
    return !is_locked(scene, "drains");
}

static void a_draining_process_of_a_dead_supervisor_is_recovered_once_it_is_gone(void **state)
{
    struct scene *scene = *state;
    const int fd = living(scene, OLD, 5);
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/locks/%" PRIx64 ".5", scene->state_dir, OLD);
    lock_session(scene, "drains", "here", OLD, 5, 1, far_deadline(scene));
    recovery_watch(scene->recovery);
    for (int i = 0; i < 40; i++) {
        uv_run(&scene->loop, UV_RUN_ONCE);
    }
    assert_true(is_locked(scene, "drains"));
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    run_until(scene, draining_is_recovered);
}

static bool lock_file_is_gone(struct scene *scene)
{
    return inherit_slot_is_free(scene->state_dir, OLD, 4) == -ENOENT;
}

static void lock_files_go_once_nothing_in_the_store_names_them(void **state)
{
    struct scene *scene = *state;
    const int fd = living(scene, OLD, 5);

    dead(scene, OLD, 4);
    lock_session(scene, "dead", "here", OLD, 4, 1, far_deadline(scene));
    recovery_watch(scene->recovery);
    run_until(scene, lock_file_is_gone);
    assert_false(is_locked(scene, "dead")); /* never before what it told about was taken back */
    assert_int_equal(inherit_slot_is_free(scene->state_dir, OLD, 5), 0);
    close(fd);
}

static bool silent_is_recovered(struct scene *scene)
{
    (void)valkey_do(scene->valkey, "INCR outboxnode:there:%llx", (unsigned long long)0x7777);
    return !is_locked(scene, "silent");
}

static void a_node_is_dead_when_its_counter_stands_still_and_only_then(void **state)
{
    struct scene *scene = *state;
    const int64_t deadline_ms = far_deadline(scene);
    const uint64_t start_ms = uv_hrtime() / 1000000;

    lock_session(scene, "beats", "there", 0x7777, 4, 1, deadline_ms);
    lock_session(scene, "silent", "there", 0x8888, 4, 1, deadline_ms);
    (void)valkey_do(scene->valkey, "SET outboxnode:there:8888 41");
    recovery_watch(scene->recovery);
    run_until(scene, silent_is_recovered);
    assert_true(uv_hrtime() / 1000000 - start_ms >= NODE_WATCH_DEAD_MS);
    assert_true(is_locked(scene, "beats"));
    assert_true(valkey_do(scene->valkey, "EXISTS outboxnode:here:%llx", (unsigned long long)OWN) ==
                1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_start_dead_processes_of_this_node_lose_their_sessions,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(at_start_expired_locks_are_taken_whoever_owns_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(at_start_a_store_that_comes_late_is_waited_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_dead_worker_loses_what_that_process_held_and_nothing_else,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_draining_process_of_a_dead_supervisor_is_recovered_once_it_is_gone, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(lock_files_go_once_nothing_in_the_store_names_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_node_is_dead_when_its_counter_stands_still_and_only_then,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
