/* Lock tables: what a worker shows of what it holds, and what a reader gets when the bytes are
 * wrong. */
#include <errno.h>
#include <pthread.h>

#include "tests/unit/shm_fixture.h"

struct seen {
    struct shm_lock locks[FIXTURE_LOCKS];
    size_t count;
};

static void see(const struct shm_lock *lock, void *arg)
{
    struct seen *seen = arg;

    assert_true(seen->count < FIXTURE_LOCKS);
    seen->locks[seen->count++] = *lock;
}

static const struct shm_lock example = {
    .workspace = "shop:eu",
    .session = "a%20b",
    .activity = SHM_LOCK_SENDING,
    .kind = 3,
    .claim = 0x1a2,
    .started_mono_ms = 1234,
};

static void a_lock_is_seen_by_others_until_it_is_cleared(void **state)
{
    struct fixture f;
    struct seen seen = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(1));
    const int index = lock_table_put(worker, &example);
    assert_true(index >= 0);
    assert_int_equal(lock_table_each(f.supervisor, WORKER(0), see, &seen), 0);
    assert_int_equal(lock_table_each(f.supervisor, WORKER(1), see, &seen), 1);
    assert_string_equal(seen.locks[0].workspace, "shop:eu");
    assert_string_equal(seen.locks[0].session, "a%20b");
    assert_int_equal(seen.locks[0].activity, SHM_LOCK_SENDING);
    assert_int_equal(seen.locks[0].kind, 3);
    assert_int_equal(seen.locks[0].claim, 0x1a2);
    assert_int_equal(seen.locks[0].started_mono_ms, 1234);

    struct shm_lock changed = example;
    changed.activity = SHM_LOCK_VERIFYING;
    changed.kind = 77; /* past the end */
    lock_table_update(worker, index, &changed);
    seen.count = 0;
    assert_int_equal(lock_table_each(f.supervisor, WORKER(1), see, &seen), 1);
    assert_int_equal(seen.locks[0].activity, SHM_LOCK_VERIFYING);
    assert_int_equal(seen.locks[0].kind, LABEL_KIND_OTHER);

    lock_table_clear(worker, index);
    assert_int_equal(lock_table_each(f.supervisor, WORKER(1), see, &seen), 0);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void the_longest_names_fit_whole(void **state)
{
    struct fixture f;
    struct seen seen = {.count = 0};
    struct shm_lock lock = example;

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    memset(lock.workspace, 'w', 64);
    memset(lock.session, 's', 128);
    assert_true(lock_table_put(worker, &lock) >= 0);
    assert_int_equal(lock_table_each(worker, WORKER(0), see, &seen), 1);
    assert_int_equal(strlen(seen.locks[0].workspace), 64);
    assert_int_equal(strlen(seen.locks[0].session), 128);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void what_cannot_be_shown_is_refused(void **state)
{
    struct fixture f;
    struct shm_lock lock = example;

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    lock.session[0] = '\0';
    assert_int_equal(lock_table_put(worker, &lock), -ENOSPC);
    memset(lock.session, 's', sizeof(lock.session)); /* no NUL at all */
    assert_int_equal(lock_table_put(worker, &lock), -ENOSPC);
    lock = example;
    lock.workspace[0] = '\x1b'; /* would reach a terminal */
    assert_int_equal(lock_table_put(worker, &lock), -ENOSPC);
    lock = example;
    lock.activity = SHM_LOCK_ACTIVITY_COUNT;
    assert_int_equal(lock_table_put(worker, &lock), -ENOSPC);
    assert_int_equal(lock_table_put(f.supervisor, &example), -EINVAL); /* not a worker */
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void a_full_table_says_so_and_takes_again_what_was_cleared(void **state)
{
    struct fixture f;
    struct seen seen = {.count = 0};
    int indexes[FIXTURE_LOCKS];

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    for (uint32_t i = 0; i < FIXTURE_LOCKS; i++) {
        indexes[i] = lock_table_put(worker, &example);
        assert_true(indexes[i] >= 0);
    }
    assert_int_equal(lock_table_put(worker, &example), -ENOSPC);
    lock_table_clear(worker, indexes[3]);
    lock_table_clear(worker, indexes[3]); /* twice: ignored */
    assert_int_equal(lock_table_put(worker, &example), indexes[3]);
    assert_int_equal(lock_table_put(worker, &example), -ENOSPC);
    assert_int_equal(lock_table_each(worker, WORKER(0), see, &seen), FIXTURE_LOCKS);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void indexes_that_were_never_given_out_are_ignored(void **state)
{
    const int bad[] = {-ENOSPC, -1, 0, 5, FIXTURE_LOCKS, 1 << 30};
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        lock_table_update(worker, bad[i], &example);
        lock_table_clear(worker, bad[i]);
        lock_table_clear(f.supervisor, bad[i]);
    }
    assert_int_equal(lock_table_each(worker, WORKER(0), NULL, NULL), 0);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void a_table_outlives_its_worker_until_the_supervisor_has_read_it(void **state)
{
    struct fixture f;
    struct seen seen = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(2));
    assert_true(lock_table_put(worker, &example) >= 0);
    metrics_add(metrics_of(worker), METRIC_locks_held, 0, 5);
    metrics_add(metrics_of(worker), METRIC_verifications_total, LABEL_VERDICT_ABSENT, 5);
    shm_destroy(&worker); /* as if killed */
    assert_int_equal(lock_table_each(f.supervisor, WORKER(2), see, &seen), 1);
    shm_process_end(f.supervisor, WORKER(2));
    assert_int_equal(lock_table_each(f.supervisor, WORKER(2), see, &seen), 0);

    struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));
    assert_non_null(snapshot);
    metrics_snapshot_all(f.supervisor, snapshot);
    assert_int_equal(metrics_value(snapshot, METRIC_locks_held, 0),
                     0); /* it holds nothing any more */
    assert_int_equal(metrics_value(snapshot, METRIC_verifications_total, LABEL_VERDICT_ABSENT), 5);
    free(snapshot);
    fixture_teardown(&f);
}

static void a_slot_without_a_table_has_no_locks(void **state)
{
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    assert_int_equal(lock_table_each(f.supervisor, SHM_SLOT_SUPERVISOR, NULL, NULL), 0);
    assert_int_equal(lock_table_each(f.supervisor, WORKER(FIXTURE_WORKERS), NULL, NULL), 0);
    assert_int_equal(lock_table_each(f.supervisor, UINT32_MAX, NULL, NULL), 0);
    fixture_teardown(&f);
}

static void an_entry_of_garbage_is_left_out(void **state)
{
    struct fixture f;
    struct seen seen = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    assert_int_equal(lock_table_put(worker, &example), 0);
    struct shm_lock_cells *cells = shm_lock_at(f.supervisor, 0, 0);
    const uint64_t meta = cells->words[0];
    const uint64_t bad[] = {
        0xff,                                        /* no such activity */
        (meta & ~UINT64_C(0xff0000)) | 0xff0000,     /* a workspace of 255 bytes */
        meta & ~UINT64_C(0xff000000),                /* a session without a name */
        meta | UINT64_C(0xff000000),                 /* or with 255 bytes */
        (meta & ~UINT64_C(0xff000000)) | 0x10000000, /* a name with NULs in it */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cells->words[0] = bad[i];
        assert_int_equal(lock_table_each(f.supervisor, WORKER(0), see, &seen), 0);
    }
    cells->words[0] = meta;
    assert_int_equal(lock_table_each(f.supervisor, WORKER(0), see, &seen), 1);
    cells->words[3] = UINT64_C(0x1b1b1b1b1b1b1b1b); /* escape characters in the name */
    assert_int_equal(lock_table_each(f.supervisor, WORKER(0), see, &seen), 0);
    lock_table_update(worker, 0, &example);
    cells->seq |= 1; /* a writer that died half way */
    assert_int_equal(lock_table_each(f.supervisor, WORKER(0), see, &seen), 0);
    lock_table_update(worker, 0, &example);
    assert_int_equal(lock_table_each(f.supervisor, WORKER(0), see, &seen), 1);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

/* ---- two threads ---- */

#define TORN_ROUNDS 50000

struct writer {
    struct shm *shm;
    _Atomic int is_over;
};

/* All parts of a lock say the same number: a reader that sees two of them saw it torn. */
static struct shm_lock lock_of(unsigned n)
{
    struct shm_lock lock = {
        .activity = SHM_LOCK_SENDING, .kind = n % 32, .claim = n, .started_mono_ms = n};

    (void)snprintf(lock.workspace, sizeof(lock.workspace), "%064u", n);
    (void)snprintf(lock.session, sizeof(lock.session), "%0128u", n);
    return lock;
}

static void *rewrite(void *arg)
{
    struct writer *w = arg;
    const struct shm_lock first = lock_of(0);
    const int index = lock_table_put(w->shm, &first);

    for (unsigned n = 1; n <= TORN_ROUNDS; n++) {
        const struct shm_lock lock = lock_of(n);
        lock_table_update(w->shm, index, &lock);
    }
    atomic_store(&w->is_over, 1);
    return NULL;
}

static void check_whole(const struct shm_lock *lock, void *arg)
{
    bool *is_whole = arg;
    const struct shm_lock expected = lock_of((unsigned)lock->claim);

    *is_whole = *is_whole &&
                memcmp(expected.workspace, lock->workspace, sizeof(lock->workspace)) == 0 &&
                memcmp(expected.session, lock->session, sizeof(lock->session)) == 0 &&
                expected.kind == lock->kind && expected.started_mono_ms == lock->started_mono_ms;
}

static void a_lock_is_never_seen_torn(void **state)
{
    struct fixture f;
    pthread_t thread;
    bool is_whole = true;
    size_t seen = 0;

    (void)state;
    fixture_setup(&f);
    struct writer w = {.shm = fixture_attach(&f, WORKER(0))};
    struct shm reader = *w.shm; /* the same mapping, so that ThreadSanitizer sees both sides */
    assert_int_equal(pthread_create(&thread, NULL, rewrite, &w), 0);
    while (!atomic_load(&w.is_over)) {
        seen += lock_table_each(&reader, WORKER(0), check_whole, &is_whole);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    seen += lock_table_each(&reader, WORKER(0), check_whole, &is_whole);
    assert_true(is_whole);
    assert_true(seen > 0);
    shm_destroy(&w.shm);
    fixture_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_seen_by_others_until_it_is_cleared),
        cmocka_unit_test(the_longest_names_fit_whole),
        cmocka_unit_test(what_cannot_be_shown_is_refused),
        cmocka_unit_test(a_full_table_says_so_and_takes_again_what_was_cleared),
        cmocka_unit_test(indexes_that_were_never_given_out_are_ignored),
        cmocka_unit_test(a_table_outlives_its_worker_until_the_supervisor_has_read_it),
        cmocka_unit_test(a_slot_without_a_table_has_no_locks),
        cmocka_unit_test(an_entry_of_garbage_is_left_out),
        cmocka_unit_test(a_lock_is_never_seen_torn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
