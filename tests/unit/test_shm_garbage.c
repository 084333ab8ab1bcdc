/* Random bytes over the whole segment while every function runs: nothing crashes, every call ends,
 * and once the bytes stop, hints and lock tables work again. The seed is printed; TEST_SEED=<hex>
 * replays one. */
#include <pthread.h>
#include <time.h>

#include "common/core/buf.h"
#include "common/core/keys.h"
#include "common/core/utf8.h"
#include "common/shm/exposition.h"
#include "common/shm/target_table.h"
#include "tests/unit/shm_fixture.h"

#define ROUNDS 3000

struct vandal {
    unsigned char *base;
    size_t size_bytes;
    uint64_t random;
    _Atomic int is_over;
};

static uint64_t next_random(uint64_t *state)
{
    /* xorshift64*: small, seedable, good enough to hit everything. */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t pick_seed(void)
{
    const char *given = getenv("TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 16) : (uint64_t)time(NULL) * 2654435761U;

    print_message("TEST_SEED=%llx\n", (unsigned long long)seed);
    return seed | 1;
}

/* Cells, bytes, or whole stretches; values that hurt (0, ones, small numbers) more often than
 * chance would give. */
static void deface(struct vandal *v)
{
    static const uint64_t nasty[] = {0,   1,          2,         255,        256,
                                     257, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 1};
    const uint64_t r = next_random(&v->random);
    const uint64_t value =
        r & 1 ? next_random(&v->random) : nasty[(r >> 8) % (sizeof(nasty) / sizeof(nasty[0]))];
    const size_t at = next_random(&v->random) % (v->size_bytes / 8);

    if ((r >> 1) % 8 != 0) {
        atomic_store_explicit((_Atomic uint64_t *)(void *)v->base + at, value,
                              memory_order_relaxed);
        return;
    }
    for (size_t i = at; i < v->size_bytes / 8 && i < at + 512; i++) {
        atomic_store_explicit((_Atomic uint64_t *)(void *)v->base + i, value, memory_order_relaxed);
    }
}

static void *vandalise(void *arg)
{
    struct vandal *v = arg;

    while (!atomic_load(&v->is_over)) {
        deface(v);
    }
    return NULL;
}

static void count_hint(uint32_t from, uint64_t hint, void *arg)
{
    (void)hint;
    assert_true(from < WORKER(FIXTURE_WORKERS));
    ++*(size_t *)arg;
}

static void check_lock(const struct shm_lock *lock, void *arg)
{
    (void)arg;
    assert_true(workspace_name_is_valid(lock->workspace, strlen(lock->workspace)));
    assert_true(session_name_is_valid(lock->session, strlen(lock->session)));
    assert_true((unsigned)lock->activity < SHM_LOCK_ACTIVITY_COUNT);
    assert_true(lock->kind <= LABEL_KIND_OTHER);
    assert_true(lock->started_mono_ms >= 0);
}

/* Every line: a comment, or a name, perhaps labels, a number. */
static void check_text(const struct buf *text)
{
    assert_true(text->len > 0 && text->bytes[text->len - 1] == '\n');
    assert_true(utf8_is_valid(text->bytes, text->len));
    for (const char *line = text->bytes; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        assert_int_equal(strncmp(line, line[0] == '#' ? "# " : "outbox_", line[0] == '#' ? 2 : 7),
                         0);
        if (line[0] != '#') {
            const char *number = memrchr(line, ' ', (size_t)(end - line));
            char *stop;
            assert_non_null(number);
            (void)strtod(number, &stop);
            assert_ptr_equal(stop, end);
        }
    }
}

struct cast {
    struct shm *supervisor, *api, *worker, *reader;
    struct wake_set wakes;
    struct metrics_snapshot *snapshot;
};

static const struct shm_lock example = {.workspace = "w", .session = "s", .claim = 7};

static void act_supervisor(struct cast *c, uint64_t r)
{
    struct shm_process process;

    shm_process_begin(c->supervisor, r % 8, SHM_ROLE_WORKER, 1, r);
    shm_process_set_state(c->supervisor, r % 8, SHM_PROCESS_READY);
    (void)shm_hint_send(c->supervisor, &c->wakes, (uint32_t)r % 70, r);
    for (uint32_t slot = 0; slot < SHM_SLOT_MAX; slot++) {
        if (shm_process_read(c->supervisor, slot, &process) == 0) {
            assert_true(process.role <= SHM_ROLE_WORKER && process.state <= SHM_PROCESS_FAILED);
            assert_true(process.pid >= 0);
        }
        (void)lock_table_each(c->supervisor, slot, check_lock, NULL);
    }
    if (r % 16 == 0) {
        shm_process_end(c->supervisor, (uint32_t)(r >> 8) % 8);
    }
}

static void act_worker(struct cast *c, uint64_t r)
{
    size_t got = 0;
    const int index = lock_table_put(c->worker, &example);

    assert_true(index >= 0); /* what is free is private knowledge */
    shm_heartbeat(c->worker);
    (void)shm_hint_send(c->worker, &c->wakes, API(0), r);
    (void)shm_hint_send(c->api, &c->wakes, WORKER(0), r);
    wake_clear(c->wakes.fds[WORKER(0)]);
    size_t told = shm_hint_drain(c->worker, count_hint, &got);
    assert_int_equal(told, got);
    assert_true(got <= 4 * SHM_RING_SLOTS);
    told = shm_hint_drain(c->api, count_hint, &got);
    assert_true(told <= FIXTURE_WORKERS * SHM_RING_SLOTS);
    metrics_add_delivery(metrics_of(c->worker), r % 40, OUTCOME_CONFIRMED, 1);
    metrics_observe_seconds(metrics_of(c->worker), METRIC_delivery_duration_seconds, r % 40, 0.1);
    lock_table_update(c->worker, index, &example);
    lock_table_clear(c->worker, index);
}

/* A wrong byte costs a wait, and that one is bounded by the limits. */
static void act_targets(struct cast *c, uint64_t r)
{
    static const struct target_limits limits = {
        .circuit = {.failures = 3, .delay_ms = 1000, .max_ms = 8000}, .per_second = 10};
    const int64_t now_ns = INT64_C(5000000000000) + (int64_t)(r >> 20);
    const uint64_t key = r % 2 ? r : target_table_key(c->worker, "http://target");
    const struct circuit_input input = {
        .what = r & 4 ? CIRCUIT_HAS_FAILED : CIRCUIT_HAS_ANSWERED,
        .now_ms = now_ns / 1000000,
        .began_ms = now_ns / 1000000,
    };
    size_t counts[CIRCUIT_STATE_COUNT];

    const struct target_permit permit = target_table_ask(c->worker, key, &limits, now_ns);
    assert_true(permit.answer == TARGET_MAY_BE_ASKED ||
                (permit.wait_ns > 0 && permit.wait_ns <= INT64_C(8000000000)));
    const struct target_change change = target_table_tell(c->worker, key, &limits, &input);
    assert_true(change.after < CIRCUIT_STATE_COUNT);
    assert_true(target_table_state(c->reader, key, now_ns) < CIRCUIT_STATE_COUNT);
    target_table_count(c->reader, now_ns, counts);
    assert_true(counts[CIRCUIT_OPEN] + counts[CIRCUIT_HALF_OPEN] <= SHM_TARGETS);
}

static void act_reader(struct cast *c)
{
    struct metrics_histogram histogram;
    struct buf text;

    buf_init(&text, 4 << 20);
    assert_int_equal(metrics_expose(c->reader, NULL, &text), 0);
    check_text(&text);
    buf_done(&text);
    metrics_snapshot_all(c->reader, c->snapshot);
    for (size_t label = 0; label < LABELS_KIND; label++) {
        metrics_histogram(c->snapshot, METRIC_delivery_duration_seconds, label, &histogram);
        const double p99 = metrics_quantile(&histogram, 0.99);
        assert_true(p99 >= -1 && p99 <= 600);
    }
}

static void setup_cast(struct cast *c, const struct fixture *f)
{
    c->supervisor = f->supervisor;
    c->api = fixture_attach(f, API(0));
    c->worker = fixture_attach(f, WORKER(0));
    assert_int_equal(shm_map(&c->reader, shm_fd(f->supervisor), SHM_NO_SLOT, NULL), 0);
    assert_int_equal(wake_set_create(&c->wakes, shm_slot_count(f->supervisor)), 0);
    c->snapshot = malloc(sizeof(*c->snapshot));
    assert_non_null(c->snapshot);
}

static void done_cast(struct cast *c)
{
    free(c->snapshot);
    wake_set_done(&c->wakes);
    shm_destroy(&c->reader);
    shm_destroy(&c->worker);
    shm_destroy(&c->api);
}

static void assert_works(struct cast *c)
{
    size_t got = 0;

    (void)shm_hint_drain(c->worker, count_hint, &got);
    got = 0;
    assert_true(shm_hint_send(c->api, &c->wakes, WORKER(0), 1));
    assert_true(shm_hint_send(c->supervisor, &c->wakes, WORKER(0), 2));
    assert_int_equal(shm_hint_drain(c->worker, count_hint, &got), 2);
    shm_process_end(c->supervisor, WORKER(0)); /* empties the table */
    const int index = lock_table_put(c->worker, &example);
    assert_int_equal(lock_table_each(c->reader, WORKER(0), check_lock, NULL), 1);
    lock_table_clear(c->worker, index);
    assert_int_equal(lock_table_each(c->reader, WORKER(0), check_lock, NULL), 0);
}

static void bytes_written_while_everything_runs_hurt_nobody(void **state)
{
    struct fixture f;
    struct cast cast;
    pthread_t thread;

    (void)state;
    fixture_setup(&f);
    setup_cast(&cast, &f);
    struct vandal v = {
        .base = f.supervisor->base, .size_bytes = f.supervisor->size_bytes, .random = pick_seed()};
    uint64_t random = v.random ^ 0x5555;
    assert_int_equal(pthread_create(&thread, NULL, vandalise, &v), 0);
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t r = next_random(&random);
        act_supervisor(&cast, r);
        act_worker(&cast, r);
        act_targets(&cast, r);
        if (i % 20 == 0) {
            act_reader(&cast);
        }
    }
    atomic_store(&v.is_over, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_works(&cast);
    done_cast(&cast);
    fixture_teardown(&f);
}

static void a_segment_full_of_one_value_hurts_nobody(void **state)
{
    static const int values[] = {0x00, 0x01, 0x02, 0x20, 0x41, 0x7f, 0x80, 0xfe, 0xff};
    struct fixture f;
    struct cast cast;

    (void)state;
    fixture_setup(&f);
    setup_cast(&cast, &f);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (uint64_t r = 0; r < 8; r++) {
            memset(f.supervisor->base, values[i], f.supervisor->size_bytes);
            act_reader(&cast);
            act_worker(&cast, r);
            act_targets(&cast, r);
            act_supervisor(&cast, r);
        }
        assert_works(&cast);
    }
    done_cast(&cast);
    fixture_teardown(&f);
}

static void attaching_to_random_bytes_is_refused_or_safe(void **state)
{
    struct fixture f;
    struct shm *shm = NULL;

    (void)state;
    fixture_setup(&f);
    unsigned char header[sizeof(struct shm_header)];
    memcpy(header, f.supervisor->base, sizeof(header));
    uint64_t random = pick_seed();
    for (int i = 0; i < 20000; i++) {
        const uint64_t r = next_random(&random);
        f.supervisor->base[r % sizeof(header)] = (unsigned char)(r >> 32);
        if (shm_attach(&shm, shm_fd(f.supervisor), (uint32_t)(r >> 8) % 10) == 0) {
            assert_int_equal(shm_worker_slots(shm),
                             FIXTURE_WORKERS); /* only a header that fits the file */
            shm_destroy(&shm);
        }
        memcpy(f.supervisor->base, header, sizeof(header));
    }
    fixture_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_written_while_everything_runs_hurt_nobody),
        cmocka_unit_test(a_segment_full_of_one_value_hurts_nobody),
        cmocka_unit_test(attaching_to_random_bytes_is_refused_or_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
