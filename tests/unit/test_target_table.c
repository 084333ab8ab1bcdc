/* What processes know about targets together: one probe for all of them, one rate, and cells that
 * are given to others when they tell nothing any more. */
#include <pthread.h>

#include "common/shm/target_table.h"
#include "tests/unit/shm_fixture.h"

#define SECOND  INT64_C(1000000000)
#define MS      INT64_C(1000000)
#define START   (5000 * SECOND)
#define THREADS 4
#define MINUTE  (60 * SECOND)

static const struct target_limits limits = {
    .circuit = {.failures = 3, .delay_ms = 1000, .max_ms = 8000}};

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_setup(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_teardown(&f);
    return 0;
}

static struct target_change tell(struct shm *shm, uint64_t key, bool has_failed, int64_t now_ns)
{
    const struct circuit_input input = {
        .what = has_failed ? CIRCUIT_HAS_FAILED : CIRCUIT_HAS_ANSWERED,
        .now_ms = now_ns / MS,
        .began_ms = now_ns / MS,
    };

    return target_table_tell(shm, key, &limits, &input);
}

static void open_circuit(struct shm *shm, uint64_t key, int64_t now_ns)
{
    struct target_change change = {0};

    for (int i = 0; i < 3; i++) {
        change = tell(shm, key, true, now_ns);
    }
    assert_int_equal(change.before, CIRCUIT_CLOSED);
    assert_int_equal(change.after, CIRCUIT_OPEN);
}

static void a_base_url_is_the_same_with_slashes_at_its_end(void **state)
{
    const uint64_t key = target_table_key(f.supervisor, "http://a/base");

    (void)state;
    assert_int_equal(target_table_key(f.supervisor, "http://a/base//"), key);
    assert_int_not_equal(target_table_key(f.supervisor, "http://a/bas"), key);
    assert_int_not_equal(target_table_key(f.supervisor, "http://a"), key);
    assert_int_not_equal(key, 0);
}

static void what_one_process_learns_the_others_know(void **state)
{
    struct shm *one = fixture_attach(&f, WORKER(0)), *other = fixture_attach(&f, WORKER(1));
    const uint64_t key = target_table_key(one, "http://dead");
    size_t counts[CIRCUIT_STATE_COUNT];

    (void)state;
    assert_int_equal(target_table_key(other, "http://dead"), key);
    tell(one, key, true, START);
    tell(other, key, true, START);
    const struct target_change change = tell(one, key, true, START);

    assert_int_equal(change.after, CIRCUIT_OPEN);
    struct target_permit permit = target_table_ask(other, key, &limits, START + 400 * MS);
    assert_int_equal(permit.answer, TARGET_CIRCUIT_WAITS);
    assert_int_equal(permit.wait_ns, 600 * MS);
    assert_int_equal(target_table_state(f.supervisor, key, START), CIRCUIT_OPEN);
    permit = target_table_ask(one, key, &limits, START + SECOND);
    assert_int_equal(permit.answer, TARGET_MAY_BE_ASKED);
    assert_int_equal(permit.before, CIRCUIT_OPEN);
    assert_int_equal(permit.after, CIRCUIT_HALF_OPEN);
    assert_int_equal(target_table_ask(other, key, &limits, START + SECOND).answer,
                     TARGET_CIRCUIT_WAITS);
    target_table_count(f.supervisor, START + SECOND, counts);
    assert_int_equal(counts[CIRCUIT_OPEN], 0);
    assert_int_equal(counts[CIRCUIT_HALF_OPEN], 1);
    assert_int_equal(tell(one, key, false, START + SECOND).after, CIRCUIT_CLOSED);
    assert_int_equal(target_table_ask(other, key, &limits, START + SECOND).answer,
                     TARGET_MAY_BE_ASKED);
    shm_destroy(&one);
    shm_destroy(&other);
}

static void one_target_says_nothing_of_another(void **state)
{
    struct shm *shm = fixture_attach(&f, WORKER(0));

    (void)state;
    open_circuit(shm, target_table_key(shm, "http://dead"), START);
    assert_int_equal(
        target_table_ask(shm, target_table_key(shm, "http://alive"), &limits, START).answer,
        TARGET_MAY_BE_ASKED);
    shm_destroy(&shm);
}

/* ---- many at once ---- */

struct asker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct target_limits *limits;
    uint64_t key;
    int64_t now_ns;
    unsigned asks, permits;
};

static void *ask_often(void *arg)
{
    struct asker *asker = arg;

    pthread_barrier_wait(asker->barrier);
    for (unsigned i = 0; i < asker->asks; i++) {
        asker->permits +=
            target_table_ask(f.supervisor, asker->key, asker->limits, asker->now_ns).answer ==
            TARGET_MAY_BE_ASKED;
    }
    return NULL;
}

static unsigned permits_of_many(uint64_t key, const struct target_limits *for_all, int64_t now_ns)
{
    struct asker askers[THREADS];
    pthread_barrier_t barrier;
    unsigned permits = 0;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){
            .barrier = &barrier, .limits = for_all, .key = key, .now_ns = now_ns, .asks = 200};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(askers[i].thread, NULL);
        permits += askers[i].permits;
    }
    pthread_barrier_destroy(&barrier);
    return permits;
}

static void of_many_that_ask_at_once_one_finds_out(void **state)
{
    const uint64_t key = target_table_key(f.supervisor, "http://dead");

    (void)state;
    for (int64_t round = 0; round < 50; round++) {
        const int64_t now_ns = START + round * MINUTE;

        open_circuit(f.supervisor, key, now_ns);
        assert_int_equal(permits_of_many(key, &limits, now_ns + SECOND), 1);
        tell(f.supervisor, key, false, now_ns + SECOND);
    }
}

static void many_that_ask_at_once_share_one_rate(void **state)
{
    const struct target_limits slow = {.per_second = 500}; /* bursts of 50 */
    const uint64_t key = target_table_key(f.supervisor, "http://slow");

    (void)state;
    for (int64_t round = 0; round < 50; round++) {
        const unsigned permits = permits_of_many(key, &slow, START + round * MINUTE);

        /* One that was disturbed too often is let through: never seen, and never more than that. */
        assert_in_range(permits, 50, 50 + THREADS);
    }
}

static void what_the_rate_holds_is_not_the_one_that_finds_out(void **state)
{
    const struct target_limits both = {.circuit = limits.circuit, .per_second = 1};
    const uint64_t key = target_table_key(f.supervisor, "http://dead");

    (void)state;
    open_circuit(f.supervisor, key, START);
    /* Held by the circuit: takes nothing of the rate. */
    assert_int_equal(target_table_ask(f.supervisor, key, &both, START + 900 * MS).answer,
                     TARGET_CIRCUIT_WAITS);
    assert_int_equal(target_table_ask(f.supervisor, key, &both, START + SECOND).answer,
                     TARGET_MAY_BE_ASKED);
    assert_int_equal(target_table_ask(f.supervisor, key, &both, START + SECOND).answer,
                     TARGET_CIRCUIT_WAITS);
    tell(f.supervisor, key, true, START + SECOND); /* open for two seconds */
    const struct target_limits slower = {.circuit = limits.circuit, .per_second = 1};
    const uint64_t other = target_table_key(f.supervisor, "http://other");

    assert_int_equal(target_table_ask(f.supervisor, other, &slower, START).answer,
                     TARGET_MAY_BE_ASKED);
    open_circuit(f.supervisor, other, START - 600 * MS);
    assert_int_equal(target_table_ask(f.supervisor, other, &slower, START + 400 * MS).answer,
                     TARGET_RATE_WAITS);
    assert_int_equal(target_table_state(f.supervisor, other, START + 400 * MS), CIRCUIT_OPEN);
}

/* ---- room ---- */

static uint64_t numbered(unsigned i)
{
    char url[32];

    snprintf(url, sizeof(url), "http://t%u", i);
    return target_table_key(f.supervisor, url);
}

static size_t open_of(unsigned first, unsigned count, int64_t now_ns)
{
    size_t open = 0;

    for (unsigned i = first; i < first + count; i++) {
        open += target_table_state(f.supervisor, numbered(i), now_ns) != CIRCUIT_CLOSED;
    }
    return open;
}

static void thousands_of_dead_targets_have_room_and_more_are_asked_as_if_they_lived(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        for (int n = 0; n < 3; n++) {
            tell(f.supervisor, numbered(i), true, START);
        }
    }
    assert_true(open_of(0, 2000, START) >= 1990);
    for (unsigned i = 2000; i < 20000; i++) {
        for (int n = 0; n < 3; n++) {
            tell(f.supervisor, numbered(i), true, START);
        }
    }
    assert_true(open_of(0, 2000, START) >= 1990); /* no stranger drives them out */
    assert_in_range(open_of(0, 20000, START), SHM_TARGETS / 2, SHM_TARGETS);
    for (unsigned i = 0; i < 20000; i++) {
        const struct target_permit permit =
            target_table_ask(f.supervisor, numbered(i), &limits, START);

        assert_true(permit.answer == TARGET_MAY_BE_ASKED || permit.wait_ns <= SECOND);
    }
}

static void what_nobody_asks_any_more_makes_room(void **state)
{
    const int64_t later = START + 11 * MINUTE;
    size_t counts[CIRCUIT_STATE_COUNT];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        for (int n = 0; n < 3; n++) {
            tell(f.supervisor, numbered(i), true, START);
        }
    }
    target_table_count(f.supervisor, START, counts);
    assert_true(counts[CIRCUIT_OPEN] > SHM_TARGETS / 2);
    target_table_count(f.supervisor, later, counts);
    assert_int_equal(counts[CIRCUIT_OPEN], 0);
    for (unsigned i = 50000; i < 50100; i++) {
        open_circuit(f.supervisor, numbered(i), later);
    }
    assert_int_equal(open_of(50000, 100, later), 100);
}

static void healthy_targets_take_no_room_and_a_rate_gives_it_back(void **state)
{
    const struct target_limits slow = {.per_second = 1000};

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        const int64_t now_ns = START + i * 10 * MS;

        assert_int_equal(tell(f.supervisor, numbered(i), false, now_ns).after, CIRCUIT_CLOSED);
        assert_int_equal(target_table_ask(f.supervisor, numbered(i), &slow, now_ns).answer,
                         TARGET_MAY_BE_ASKED);
    }
    open_circuit(f.supervisor, numbered(7), START + 2000 * SECOND);
}

/* The packed time has 32 bits of milliseconds. */
static void months_later_everything_still_works(void **state)
{
    const int64_t day = 86400 * SECOND;
    const uint64_t key = target_table_key(f.supervisor, "http://old");

    (void)state;
    for (int64_t now_ns = START; now_ns < START + 200 * day; now_ns += 13 * day) {
        open_circuit(f.supervisor, key, now_ns);
        assert_int_equal(target_table_ask(f.supervisor, key, &limits, now_ns).answer,
                         TARGET_CIRCUIT_WAITS);
        assert_int_equal(tell(f.supervisor, key, false, now_ns + SECOND).after, CIRCUIT_CLOSED);
        tell(f.supervisor, key, true, now_ns + 2 * SECOND);
        tell(f.supervisor, key, false, now_ns + 3 * SECOND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_base_url_is_the_same_with_slashes_at_its_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_one_process_learns_the_others_know, setup, teardown),
        cmocka_unit_test_setup_teardown(one_target_says_nothing_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(of_many_that_ask_at_once_one_finds_out, setup, teardown),
        cmocka_unit_test_setup_teardown(many_that_ask_at_once_share_one_rate, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_rate_holds_is_not_the_one_that_finds_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            thousands_of_dead_targets_have_room_and_more_are_asked_as_if_they_lived, setup,
            teardown),
        cmocka_unit_test_setup_teardown(what_nobody_asks_any_more_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(healthy_targets_take_no_room_and_a_rate_gives_it_back,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(months_later_everything_still_works, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
