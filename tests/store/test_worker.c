/* The worker as a process: the real program on a real store, with a target that obeys. The test
 * plays the supervisor: it hands down configuration, shared memory, lifeline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "common/core/ids.h"
#include "common/core/keys.h"
#include "common/shm/shm.h"
#include "common/shm/wake.h"
#include "tests/store/support/http_target.h"
#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define GENERATION  UINT64_C(0xbeef)
#define INCARNATION UINT64_C(0x51)
#define SLOT        SHM_SLOT_WORKER_FIRST
#define LOCK_TTL_MS 720000
#define WAIT_MS     30000 /* then the test fails: longer than anything but a lock's lifetime */

#define IDEMPOTENT "idempotent: true"
#define LOOKED_UP                                                                                  \
    "verify: {url: '/by-key/{id}', delivered: 200, absent: 404}, verify_settle: 100ms, "           \
    "verify_delay: 50ms"
#define PLAIN "on_ambiguous: error"

struct scene {
    struct valkey *valkey;
    struct sync_store *store;
    struct http_target *target;
    struct shm *shm;
    char state_dir[64];
    pid_t worker;
    int lifeline; /* write end */
    int ready;    /* read end */
};

static const char *program; /* path of outboxd-worker */

/* Turns the condition over until it holds; fails the test when that is hopeless. */
#define WAIT(condition)                                                                            \
    do {                                                                                           \
        const int64_t until_ms_ = clock_mono_ms() + WAIT_MS;                                       \
        while (!(condition)) {                                                                     \
            if (clock_mono_ms() > until_ms_) {                                                     \
                fail_msg("never happened: %s", #condition);                                        \
            }                                                                                      \
            usleep(5000);                                                                          \
        }                                                                                          \
    } while (0)

/* ---- set-up ---- */

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    const struct shm_sizes sizes = {.worker_slots = 2, .locks_per_worker = 64};
    char locks[96];

    assert_non_null(scene);
    scene->valkey = valkey_start(NULL);
    scene->store = sync_store_open(scene->valkey->socket, LOCK_TTL_MS, 600000);
    scene->target = http_target_start();
    memcpy(scene->state_dir, "/tmp/outboxd-test-XXXXXX", sizeof("/tmp/outboxd-test-XXXXXX"));
    assert_non_null(mkdtemp(scene->state_dir));
    snprintf(locks, sizeof(locks), "%s/locks", scene->state_dir);
    assert_int_equal(mkdir(locks, 0700), 0);
    assert_int_equal(shm_create(&scene->shm, scene->state_dir, GENERATION, &sizes), 0);
    scene->lifeline = scene->ready = -1;
    *state = scene;
    return 0;
}

/* Waits for the worker's end; returns its wait status. */
static int reap(struct scene *scene)
{
    int status = 0;

    WAIT(waitpid(scene->worker, &status, WNOHANG) == scene->worker);
    scene->worker = 0;
    close(scene->lifeline);
    close(scene->ready);
    scene->lifeline = scene->ready = -1;
    return status;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    char path[128];

    if (scene->worker > 0) {
        kill(scene->worker, SIGKILL);
        reap(scene);
    }
    http_target_stop(&scene->target);
    if (scene->store) {
        sync_store_close(scene->store);
    }
    valkey_stop(&scene->valkey);
    shm_destroy(&scene->shm);
    snprintf(path, sizeof(path), "%s/locks/%" PRIx64 ".%u", scene->state_dir, GENERATION, SLOT);
    unlink(path);
    snprintf(path, sizeof(path), "%s/locks", scene->state_dir);
    rmdir(path);
    rmdir(scene->state_dir);
    free(scene);
    return 0;
}

/* `kind`: members of the kind `note`; `top`: further settings, whole lines. */
static int config_fd(const struct scene *scene, const char *kind, const char *top)
{
    const int fd = memfd_create("config", MFD_CLOEXEC);

    assert_true(fd >= 0);
    dprintf(fd,
            "state_dir: %s\nstore: {url: '%s'}\nworkers: 1\ndelivery_timeout: 60s\n"
            "target: {url: 'http://127.0.0.1:%d'}\nretry_backoff: 50ms\nmax_backoff: 200ms\n"
            "log: {level: warn}\n%s\nkinds:\n  - {name: note, url: /notes, ordering: strict, %s}\n",
            scene->state_dir, scene->valkey->url, http_target_port(scene->target), top, kind);
    return fd;
}

/* After fork: only what a signal handler may call. */
static void become_worker(const int sources[4])
{
    char generation[20], incarnation[20], slot[12];
    char name[] = "outboxd-worker", a[] = "--slot", b[] = "--generation", c[] = "--incarnation",
         d[] = "--node", node[] = "n";
    char *const argv[] = {name, a, slot, b, generation, c, incarnation, d, node, NULL};
    int high[4];

    snprintf(generation, sizeof(generation), "%" PRIx64, GENERATION);
    snprintf(incarnation, sizeof(incarnation), "%" PRIx64, INCARNATION);
    snprintf(slot, sizeof(slot), "%u", SLOT);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < 4; i++) {
        high[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, 500);
    }
    for (int i = 0; i < 4; i++) {
        dup2(high[i], INHERIT_CONFIG + i);
    }
    dup2(wake_create(), INHERIT_EVENTFD_FIRST + SLOT);
    execv(program, argv);
    _exit(127);
}

static void start_worker(struct scene *scene, const char *kind, const char *top)
{
    int lifeline[2], ready[2];
    char word[8] = "";
    const int config = config_fd(scene, kind, top);

    assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const int sources[4] = {config, shm_fd(scene->shm), lifeline[0], ready[1]};

    scene->worker = fork();
    assert_true(scene->worker >= 0);
    if (scene->worker == 0) {
        become_worker(sources);
    }
    close(config);
    close(lifeline[0]);
    close(ready[1]);
    scene->lifeline = lifeline[1];
    scene->ready = ready[0];
    assert_int_equal(read(scene->ready, word, sizeof(word)), 6);
    assert_memory_equal(word, "READY\n", 6);
}

static void accept_entry(struct scene *scene, const char *ws, const char *ses, const char *id,
                         const char *flags)
{
    assert_int_equal(sync_accept(scene->store, ws, ses, id, id, "d", flags, 1000, NULL),
                     ACCEPT_ACCEPTED);
}

static bool has_ended(struct scene *scene, const char *ws, const char *id)
{
    return strcmp(sync_state(scene->store, ws, id), "sent") == 0;
}

static uint32_t part(const char *ws)
{
    return partition_of(ws, strlen(ws));
}

/* Events of one type in a workspace's partition. */
static int events(struct scene *scene, const char *ws, const char *type)
{
    char script[512];

    snprintf(script, sizeof(script),
             "local n = 0 for _, e in ipairs(redis.call('XRANGE', 'outboxev:{%" PRIu32
             "}', '-', '+')) do for i = 1, #e[2], 2 do if e[2][i] == 'type' and e[2][i+1] == '%s' "
             "then n = n + 1 end end end return tostring(n)",
             part(ws), type);
    return (int)strtol(sync_script(scene->store, script), NULL, 10);
}

static struct lock_token token_of(uint64_t incarnation)
{
    return lock_token_make(&(struct token_parts){.node = "n",
                                                 .generation = GENERATION,
                                                 .slot = SLOT,
                                                 .incarnation = incarnation,
                                                 .claim = 999999});
}

/* ---- tests ---- */

static void test_entries_of_a_session_arrive_in_order_and_the_worker_drains(void **state)
{
    struct scene *scene = *state;

    accept_entry(scene, "w", "s", "ob_1", "si");
    accept_entry(scene, "w", "s", "ob_2", "si");
    start_worker(scene, IDEMPOTENT, "");
    WAIT(has_ended(scene, "w", "ob_2"));
    assert_true(has_ended(scene, "w", "ob_1"));
    assert_int_equal(http_target_posts(scene->target, NULL), 2);
    kill(scene->worker, SIGTERM);
    assert_int_equal(reap(scene), 0);
}

static void test_what_is_in_flight_at_sigterm_is_finished_and_nothing_else_begins(void **state)
{
    struct scene *scene = *state;

    http_target_behave(scene->target, TARGET_HOLD);
    accept_entry(scene, "w", "s", "ob_1", "si");
    accept_entry(scene, "w", "s", "ob_2", "si");
    start_worker(scene, IDEMPOTENT, "");
    WAIT(http_target_open(scene->target) == 1);
    kill(scene->worker, SIGTERM);
    usleep(100000); /* it may take note; if it does so later only, the test is weaker, not wrong */
    http_target_behave(scene->target, TARGET_ANSWER);
    assert_int_equal(reap(scene), 0);
    assert_true(has_ended(scene, "w", "ob_1"));
    assert_string_equal(sync_state(scene->store, "w", "ob_2"), "pending");
    assert_int_equal(sync_held(scene->store, "w", ""), 0);
}

static void test_a_worker_whose_supervisor_is_gone_finishes_and_ends(void **state)
{
    struct scene *scene = *state;

    http_target_behave(scene->target, TARGET_HOLD);
    accept_entry(scene, "w", "s", "ob_1", "si");
    start_worker(scene, IDEMPOTENT, "");
    WAIT(http_target_open(scene->target) == 1);
    close(scene->lifeline);
    scene->lifeline = open("/dev/null", O_RDONLY | O_CLOEXEC);
    usleep(100000);
    http_target_behave(scene->target, TARGET_ANSWER);
    assert_int_equal(reap(scene), 0);
    assert_true(has_ended(scene, "w", "ob_1"));
}

static void test_a_reused_connection_closed_without_answer_got_one_post(void **state)
{
    struct scene *scene = *state;

    accept_entry(scene, "w", "s", "ob_1", "sv");
    start_worker(scene, LOOKED_UP, "");
    WAIT(has_ended(scene, "w", "ob_1")); /* its connection stays open */
    http_target_behave(scene->target, TARGET_KEEP_CLOSE);
    accept_entry(scene, "w", "s", "ob_2", "sv");
    WAIT(has_ended(scene, "w", "ob_2"));
    assert_int_equal(http_target_posts(scene->target, "ob_2"), 1);
    assert_true(http_target_lookups(scene->target) >= 1);
}

static void
test_a_message_is_sent_again_only_once_the_target_proved_that_it_has_not_got_it(void **state)
{
    struct scene *scene = *state;

    http_target_behave(scene->target, TARGET_FORGET_CLOSE);
    accept_entry(scene, "w", "s", "ob_1", "sv");
    start_worker(scene, LOOKED_UP, "");
    WAIT(http_target_posts(scene->target, "ob_1") == 1);
    http_target_behave(scene->target, TARGET_ANSWER);
    WAIT(has_ended(scene, "w", "ob_1"));
    assert_int_equal(http_target_posts(scene->target, "ob_1"), 2);
    assert_true(http_target_lookups(scene->target) >= 2); /* after the first, before the second */
}

static void test_without_a_lookup_an_unknown_outcome_is_an_error(void **state)
{
    struct scene *scene = *state;

    http_target_behave(scene->target, TARGET_KEEP_CLOSE);
    accept_entry(scene, "w", "s", "ob_1", "s");
    start_worker(scene, PLAIN, "");
    WAIT(strcmp(sync_state(scene->store, "w", "ob_1"), "error") == 0);
    assert_non_null(
        strstr(sync_raw(scene->store, "HGET outboxe:{%" PRIu32 "}:w:ob_1 lastError", part("w")),
               "outcome_unknown"));
    assert_int_equal(http_target_posts(scene->target, "ob_1"), 1);
}

static void test_an_outcome_unknown_when_the_kind_stopped_being_idempotent_is_an_error(void **state)
{
    struct scene *scene = *state;
    const struct lock_token token = token_of(7);

    /* Claimed for sending by a process that died; its kind was idempotent then. */
    accept_entry(scene, "w", "s", "ob_1", "si");
    assert_int_equal(sync_claim(scene->store, "w", token.text, 1, 1, NULL, 0).count, 1);
    assert_true(sync_recover(scene->store, "w", "s", token.text));
    start_worker(scene, PLAIN, "");
    WAIT(strcmp(sync_state(scene->store, "w", "ob_1"), "error") == 0);
    assert_int_equal(http_target_posts(scene->target, NULL), 0);
}

static void test_claims_whose_answers_were_lost_are_given_back(void **state)
{
    struct scene *scene = *state;

    accept_entry(scene, "w", "s", "ob_1", "si");  /* of this very process: unsent */
    accept_entry(scene, "w2", "s", "ob_2", "si"); /* of a dead one in the same slot */
    assert_int_equal(sync_claim(scene->store, "w", token_of(INCARNATION).text, 1, 1, NULL, 0).count,
                     1);
    assert_int_equal(sync_claim(scene->store, "w2", token_of(7).text, 1, 1, NULL, 0).count, 1);
    start_worker(scene, IDEMPOTENT, "");
    WAIT(has_ended(scene, "w", "ob_1") && has_ended(scene, "w2", "ob_2"));
}

static void test_a_claim_that_comes_while_its_session_is_held_is_given_back(void **state)
{
    struct scene *scene = *state;
    char key[64];

    http_target_behave(scene->target, TARGET_HOLD);
    accept_entry(scene, "w", "s", "ob_1", "si");
    start_worker(scene, IDEMPOTENT, "");
    WAIT(http_target_open(scene->target) == 1);
    /* The lock goes under its hands, and the same worker claims the session anew. */
    snprintf(key, sizeof(key), "GET outboxlock:{%" PRIu32 "}:w:s", part("w"));
    char *token = strdup(sync_raw(scene->store, "%s", key));

    assert_true(sync_recover(scene->store, "w", "s", token));
    free(token);
    WAIT(events(scene, "w", "delivering") >= 2);
    accept_entry(scene, "w", "s", "ob_2", "si");
    http_target_behave(scene->target, TARGET_ANSWER);
    WAIT(has_ended(scene, "w", "ob_1") && has_ended(scene, "w", "ob_2"));
}

static void test_a_claim_that_is_not_durable_sends_nothing(void **state)
{
    struct scene *scene = *state;
    char ws[16] = "w";

    /* In the partition that is read first: each claim waits for its replicas in turn. */
    for (int i = 0; part(ws) != 0; i++) {
        snprintf(ws, sizeof(ws), "w%d", i);
    }
    accept_entry(scene, ws, "s", "ob_1", "si");
    start_worker(scene, IDEMPOTENT, "durability: {replicas: 1}"); /* there is none */
    WAIT(events(scene, ws, "delivering") >= 1);
    usleep(300000);
    assert_int_equal(http_target_posts(scene->target, NULL), 0);
}

static void test_a_workspace_at_its_share_goes_on_as_soon_as_a_place_is_free(void **state)
{
    struct scene *scene = *state;

    http_target_set_delay(scene->target, 50);
    http_target_behave(scene->target, TARGET_DELAY);
    for (int i = 0; i < 60; i++) {
        char ses[16], id[16];

        snprintf(ses, sizeof(ses), "s%d", i);
        snprintf(id, sizeof(id), "ob_%d", i);
        accept_entry(scene, "w", ses, id, "si");
    }
    start_worker(scene, IDEMPOTENT, "max_in_flight: 8");
    WAIT(http_target_posts(scene->target, NULL) == 60);
    /* If it waited for the next look at the partition (a second), there were a dozen. */
    assert_true(http_target_long_gaps(scene->target) <= 4);
}

static void test_an_outcome_is_recorded_after_the_store_was_killed(void **state)
{
    struct scene *scene = *state;

    http_target_behave(scene->target, TARGET_HOLD);
    accept_entry(scene, "w", "s", "ob_1", "sv");
    accept_entry(scene, "w", "s", "ob_2", "sv");
    start_worker(scene, LOOKED_UP, "");
    WAIT(http_target_open(scene->target) == 1);
    sync_store_close(scene->store);
    scene->store = NULL;
    valkey_kill(scene->valkey);
    http_target_behave(scene->target, TARGET_ANSWER);
    WAIT(http_target_open(scene->target) == 0);
    valkey_restart(scene->valkey);
    scene->store = sync_store_open(scene->valkey->socket, LOCK_TTL_MS, 600000);
    WAIT(has_ended(scene, "w", "ob_2"));
    assert_true(has_ended(scene, "w", "ob_1"));
    assert_int_equal(http_target_posts(scene->target, "ob_1"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_entries_of_a_session_arrive_in_order_and_the_worker_drains),
        TEST(test_what_is_in_flight_at_sigterm_is_finished_and_nothing_else_begins),
        TEST(test_a_worker_whose_supervisor_is_gone_finishes_and_ends),
        TEST(test_a_reused_connection_closed_without_answer_got_one_post),
        TEST(test_a_message_is_sent_again_only_once_the_target_proved_that_it_has_not_got_it),
        TEST(test_without_a_lookup_an_unknown_outcome_is_an_error),
        TEST(test_an_outcome_unknown_when_the_kind_stopped_being_idempotent_is_an_error),
        TEST(test_claims_whose_answers_were_lost_are_given_back),
        TEST(test_a_claim_that_comes_while_its_session_is_held_is_given_back),
        TEST(test_a_claim_that_is_not_durable_sends_nothing),
        TEST(test_a_workspace_at_its_share_goes_on_as_soon_as_a_place_is_free),
        TEST(test_an_outcome_is_recorded_after_the_store_was_killed),
    };

    program = argc > 1 ? argv[1] : getenv("OUTBOXD_TEST_WORKER");
    if (!program) {
        fprintf(stderr, "usage: test_worker PATH_OF_OUTBOXD_WORKER\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
