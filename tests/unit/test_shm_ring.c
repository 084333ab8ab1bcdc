/* Hints and wake-ups. The two-thread tests use one mapping from both sides, so that
 * ThreadSanitizer, which knows addresses and not pages, sees every cell: meson setup build-tsan
 * -Db_sanitize=thread -Db_lundef=false && ninja -C build-tsan tests/unit/test_shm_ring &&
 *   build-tsan/tests/unit/test_shm_ring */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "tests/unit/shm_fixture.h"

struct taken {
    uint64_t hints[1024];
    uint32_t from[1024];
    size_t count;
};

static void take(uint32_t from, uint64_t hint, void *arg)
{
    struct taken *taken = arg;

    assert_true(taken->count < 1024);
    taken->hints[taken->count] = hint;
    taken->from[taken->count] = from;
    taken->count++;
}

static uint64_t drops_of(const struct shm *shm, enum label_ring sort)
{
    struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));

    assert_non_null(snapshot);
    metrics_snapshot_all(shm, snapshot);
    const uint64_t drops = metrics_value(snapshot, METRIC_ring_drops_total, sort);
    free(snapshot);
    return drops;
}

static void hints_arrive_in_order_from_every_sender(void **state)
{
    struct fixture f;
    struct taken taken = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *api = fixture_attach(&f, API(1));
    struct shm *worker = fixture_attach(&f, WORKER(2));
    assert_true(shm_hint_push(f.supervisor, WORKER(2), 10));
    assert_true(shm_hint_push(api, WORKER(2), 20));
    assert_true(shm_hint_push(api, WORKER(2), 21));
    assert_int_equal(shm_hint_drain(worker, take, &taken), 3);
    assert_int_equal(taken.hints[0], 10);
    assert_int_equal(taken.from[0], SHM_SLOT_SUPERVISOR);
    assert_int_equal(taken.hints[1], 20);
    assert_int_equal(taken.hints[2], 21);
    assert_int_equal(taken.from[2], API(1));
    assert_int_equal(shm_hint_drain(worker, take, &taken), 0);
    assert_true(shm_hint_push(worker, API(1), 30));
    assert_int_equal(shm_hint_drain(api, take, &taken), 1);
    assert_int_equal(taken.from[3], WORKER(2));
    shm_destroy(&api);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void each_pair_has_a_ring_of_its_own(void **state)
{
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    for (uint32_t to = 0; to < WORKER(FIXTURE_WORKERS); to++) {
        for (uint32_t from = 0; from < WORKER(FIXTURE_WORKERS); from++) {
            struct shm *sender = fixture_attach(&f, from);
            const bool talks =
                shm_slot_role(to) == SHM_ROLE_WORKER
                    ? shm_slot_role(from) != SHM_ROLE_WORKER
                    : shm_slot_role(to) == SHM_ROLE_API && shm_slot_role(from) == SHM_ROLE_WORKER;
            assert_int_equal(shm_hint_push(sender, to, (uint64_t)from << 8 | to), talks);
            shm_destroy(&sender);
        }
    }
    for (uint32_t to = 0; to < WORKER(FIXTURE_WORKERS); to++) {
        struct taken taken = {.count = 0};
        struct shm *receiver = fixture_attach(&f, to);
        const size_t expected = to == 0 ? 0 : to < SHM_SLOT_WORKER_FIRST ? FIXTURE_WORKERS : 4;
        assert_int_equal(shm_hint_drain(receiver, take, &taken), expected);
        for (size_t i = 0; i < taken.count; i++) {
            assert_int_equal(taken.hints[i], (uint64_t)taken.from[i] << 8 | to);
        }
        shm_destroy(&receiver);
    }
    fixture_teardown(&f);
}

static void a_pair_without_a_ring_is_refused_and_not_counted(void **state)
{
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    struct shm *api = fixture_attach(&f, API(0));
    assert_false(shm_hint_push(api, API(1), 1));
    assert_false(shm_hint_push(api, SHM_SLOT_SUPERVISOR, 1));
    assert_false(shm_hint_push(api, WORKER(FIXTURE_WORKERS), 1));
    assert_false(shm_hint_push(api, UINT32_MAX, 1));
    for (size_t sort = 0; sort < LABELS_RING; sort++) {
        assert_int_equal(drops_of(f.supervisor, (enum label_ring)sort), 0);
    }
    shm_destroy(&api);
    fixture_teardown(&f);
}

static void a_full_ring_drops_and_counts_and_recovers(void **state)
{
    struct fixture f;
    struct taken taken = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    for (uint64_t i = 0; i < SHM_RING_SLOTS; i++) {
        assert_true(shm_hint_push(f.supervisor, WORKER(0), i));
    }
    assert_false(shm_hint_push(f.supervisor, WORKER(0), 999));
    assert_false(shm_hint_push(f.supervisor, WORKER(0), 999));
    assert_int_equal(drops_of(worker, LABEL_RING_SUPERVISOR_WORKER), 2);
    assert_int_equal(shm_hint_drain(worker, take, &taken), SHM_RING_SLOTS);
    for (uint64_t i = 0; i < SHM_RING_SLOTS; i++) {
        assert_int_equal(taken.hints[i], i);
    }
    assert_true(shm_hint_push(f.supervisor, WORKER(0), 1000));
    assert_int_equal(shm_hint_drain(worker, take, &taken), 1);
    assert_int_equal(taken.hints[SHM_RING_SLOTS], 1000);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void the_counters_of_a_ring_may_wrap(void **state)
{
    struct fixture f;
    struct taken taken = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    struct shm_ring *ring = shm_ring_at(f.supervisor, 0, 0);
    ring->head = ring->tail = UINT64_MAX - 2;
    for (uint64_t i = 0; i < 6; i++) {
        assert_true(shm_hint_push(f.supervisor, WORKER(0), i));
    }
    assert_int_equal(shm_hint_drain(worker, take, &taken), 6);
    assert_int_equal(taken.hints[5], 5);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void a_ring_with_garbage_counters_works_again_after_one_drain(void **state)
{
    const uint64_t garbage[] = {1, 255, 256, 257, UINT64_MAX, UINT64_MAX / 2, 0x5555555555555555};
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    struct shm_ring *ring = shm_ring_at(f.supervisor, 0, 0);
    for (size_t i = 0; i < 2 * sizeof(garbage) / sizeof(garbage[0]); i++) {
        struct taken taken = {.count = 0};
        *(i % 2 ? &ring->head : &ring->tail) = garbage[i / 2];
        (void)shm_hint_push(f.supervisor, WORKER(0), 7); /* may be dropped */
        assert_true(shm_hint_drain(worker, take, &taken) <= SHM_RING_SLOTS);
        taken.count = 0;
        assert_true(shm_hint_push(f.supervisor, WORKER(0), 8));
        assert_int_equal(shm_hint_drain(worker, take, &taken), 1);
        assert_int_equal(taken.hints[0], 8);
    }
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static bool is_signalled(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void a_consumer_is_signalled_once_until_it_drains(void **state)
{
    struct fixture f;
    struct wake_set wakes;
    struct taken taken = {.count = 0};

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    assert_int_equal(wake_set_create(&wakes, shm_slot_count(f.supervisor)), 0);
    const int fd = wakes.fds[WORKER(0)];
    assert_int_equal(shm_hint_drain(worker, take, &taken), 0); /* asks for a signal */
    assert_true(shm_hint_send(f.supervisor, &wakes, WORKER(0), 1));
    assert_true(is_signalled(fd));
    wake_clear(fd);
    assert_false(is_signalled(fd));
    assert_true(shm_hint_send(f.supervisor, &wakes, WORKER(0), 2));
    assert_false(is_signalled(fd)); /* one is under way, as far as the sender knows */
    assert_int_equal(shm_hint_drain(worker, take, &taken), 2);
    assert_true(shm_hint_send(f.supervisor, &wakes, WORKER(0), 3));
    assert_true(is_signalled(fd));
    assert_false(is_signalled(wakes.fds[WORKER(1)]));
    /* Any garbage in the flag is a needless signal at most. */
    wake_clear(fd);
    shm_process_at(worker, WORKER(0))->wants_wake = UINT64_C(0xdeadbeef00000000);
    assert_true(shm_hint_send(f.supervisor, &wakes, WORKER(0), 4));
    assert_true(is_signalled(fd));
    assert_false(shm_hint_send(f.supervisor, &wakes, UINT32_MAX, 4));
    wake_set_done(&wakes);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void waking_nobody_and_clearing_nothing_do_not_block(void **state)
{
    struct wake_set wakes;

    (void)state;
    wake_set_init(&wakes);
    wake_signal(wakes.fds[5]);
    wake_clear(wakes.fds[5]);
    const int fd = wake_create();
    assert_true(fd >= 0);
    wake_clear(fd);
    for (int i = 0; i < 1000; i++) {
        wake_signal(fd);
    }
    assert_true(is_signalled(fd));
    wake_clear(fd);
    assert_false(is_signalled(fd));
    close(fd);
    wake_set_inherit(&wakes, SHM_SLOT_MAX + 100); /* no more slots than there can be */
    wake_set_init(&wakes);
    wake_set_done(&wakes);
}

/* ---- two threads ---- */

#define THREAD_HINTS 200000

struct two_threads {
    struct shm producer, consumer; /* views of one mapping, as two processes would have */
    struct wake_set wakes;
    _Atomic uint64_t pushed;
    _Atomic uint64_t last_seen;
    _Atomic int is_over;
    bool in_order;
};

static void *produce(void *arg)
{
    struct two_threads *t = arg;

    for (uint64_t i = 1; i <= THREAD_HINTS; i++) {
        if (shm_hint_send(&t->producer, &t->wakes, WORKER(0), i)) {
            atomic_fetch_add(&t->pushed, 1);
        }
    }
    atomic_store(&t->is_over, 1);
    wake_signal(t->wakes.fds[WORKER(0)]);
    return NULL;
}

static void see(uint32_t from, uint64_t hint, void *arg)
{
    struct two_threads *t = arg;

    t->in_order = t->in_order && from == SHM_SLOT_SUPERVISOR && hint > t->last_seen;
    t->last_seen = hint;
}

static void setup_threads(struct two_threads *t, const struct fixture *f)
{
    memset(t, 0, sizeof(*t));
    t->producer = *f->supervisor;
    t->consumer = *f->supervisor;
    t->consumer.my_slot = WORKER(0);
    t->consumer.metrics.block = shm_metrics_at(&t->consumer, WORKER(0));
    t->in_order = true;
    assert_int_equal(wake_set_create(&t->wakes, shm_slot_count(f->supervisor)), 0);
}

static void two_threads_lose_nothing_but_what_was_counted_as_dropped(void **state)
{
    struct fixture f;
    struct two_threads t;
    pthread_t thread;
    uint64_t got = 0;

    (void)state;
    fixture_setup(&f);
    setup_threads(&t, &f);
    assert_int_equal(pthread_create(&thread, NULL, produce, &t), 0);
    for (bool is_last = false; !is_last;) {
        is_last =
            atomic_load(&t.is_over); /* before the drain: what was pushed until then is in it */
        got += shm_hint_drain(&t.consumer, see, &t);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(t.in_order);
    assert_int_equal(got, t.pushed);
    assert_int_equal(t.pushed + drops_of(f.supervisor, LABEL_RING_SUPERVISOR_WORKER), THREAD_HINTS);
    wake_set_done(&t.wakes);
    fixture_teardown(&f);
}

#define PING_ROUNDS 20000

/* Sends one hint and waits until it was seen: every one needs its wake-up. */
static void *ping(void *arg)
{
    struct two_threads *t = arg;

    for (uint64_t i = 1; i <= PING_ROUNDS; i++) {
        (void)shm_hint_send(&t->producer, &t->wakes, WORKER(0), i);
        while (atomic_load(&t->last_seen) < i && !atomic_load(&t->is_over)) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void a_sleeping_consumer_never_misses_a_hint(void **state)
{
    struct fixture f;
    struct two_threads t;
    pthread_t thread;
    int missed = 0;

    (void)state;
    fixture_setup(&f);
    setup_threads(&t, &f);
    struct pollfd p = {.fd = t.wakes.fds[WORKER(0)], .events = POLLIN};
    (void)shm_hint_drain(&t.consumer, see, &t);
    assert_int_equal(pthread_create(&thread, NULL, ping, &t), 0);
    while (t.last_seen < PING_ROUNDS && missed == 0) {
        /* Far longer than any scheduler takes: coming back empty-handed means that a wake-up was
         * lost. */
        missed = poll(&p, 1, 20000) == 0;
        wake_clear(p.fd);
        (void)shm_hint_drain(&t.consumer, see, &t);
    }
    atomic_store(&t.is_over, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(missed, 0);
    assert_true(t.in_order);
    wake_set_done(&t.wakes);
    fixture_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hints_arrive_in_order_from_every_sender),
        cmocka_unit_test(each_pair_has_a_ring_of_its_own),
        cmocka_unit_test(a_pair_without_a_ring_is_refused_and_not_counted),
        cmocka_unit_test(a_full_ring_drops_and_counts_and_recovers),
        cmocka_unit_test(the_counters_of_a_ring_may_wrap),
        cmocka_unit_test(a_ring_with_garbage_counters_works_again_after_one_drain),
        cmocka_unit_test(a_consumer_is_signalled_once_until_it_drains),
        cmocka_unit_test(waking_nobody_and_clearing_nothing_do_not_block),
        cmocka_unit_test(two_threads_lose_nothing_but_what_was_counted_as_dropped),
        cmocka_unit_test(a_sleeping_consumer_never_misses_a_hint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
