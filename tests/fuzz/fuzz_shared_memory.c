/* The shared segment with anything in it. An input is who looks (its first byte), and what was
 * written: a place of three bytes, how often, and a word of eight, again and again. Whoever looks
 * gets numbers in range, names that are names, text that Prometheus can read, and comes back. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/core/buf.h"
#include "common/core/keys.h"
#include "common/shm/exposition.h"
#include "common/shm/metrics.h"
#include "common/shm/shm_private.h"
#include "common/shm/target_table.h"
#include "common/shm/wake.h"
#include "tests/fuzz/fuzz.h"

#define PATCH_BYTES  12 /* place, count, word */
#define WORKERS      2
#define LOCKS        4
#define EXPOSED_MAX  (1U << 22)
#define RATE_WAIT_NS 2000000000

static const struct target_limits limits = {
    .circuit = {.failures = 3, .delay_ms = 100, .max_ms = 1000}, .per_second = 5};

/* One segment for all inputs, and what it looks like when nobody has been at it. */
static struct {
    int fd;
    size_t size;
    char *image;
    char *base; /* a mapping that nobody guards */
} segment;

static void make_segment(void)
{
    const struct shm_sizes sizes = {WORKERS, LOCKS};
    const struct shm_lock lock = {
        .workspace = "w", .session = "s", .claim = 1, .started_mono_ms = 1};
    struct shm *shm = NULL, *worker = NULL;
    char dir[64];

    snprintf(dir, sizeof(dir), "/fuzz.%ld", (long)getpid());
    MUST_HOLD(shm_create(&shm, dir, 1, &sizes) == 0);
    MUST_HOLD(shm_attach(&worker, shm_fd(shm), SHM_SLOT_WORKER_FIRST) == 0);
    for (uint32_t slot = 0; slot < shm_slot_count(shm); slot++) {
        shm_process_begin(shm, slot, shm_slot_role(slot), 1, slot);
        shm_process_set_state(shm, slot, SHM_PROCESS_READY);
    }
    MUST_HOLD(lock_table_put(worker, &lock) == 0);
    MUST_HOLD(shm_hint_push(shm, SHM_SLOT_WORKER_FIRST, 7));
    MUST_HOLD(shm_hint_push(worker, SHM_SLOT_API_FIRST, 7));
    segment.size = shm->size_bytes;
    segment.image = malloc(segment.size);
    MUST_HOLD(segment.image);
    memcpy(segment.image, shm->base, segment.size);
    segment.fd = dup(shm_fd(shm));
    MUST_HOLD(segment.fd >= 0);
    segment.base = mmap(NULL, segment.size, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
    MUST_HOLD(segment.base != MAP_FAILED);
    shm_destroy(&worker);
    shm_destroy(&shm); /* its name goes; what is open stays */
}

static void spoil(const uint8_t *bytes, size_t len)
{
    for (; len >= PATCH_BYTES; bytes += PATCH_BYTES, len -= PATCH_BYTES) {
        size_t at =
            ((size_t)bytes[0] << 16 | (size_t)bytes[1] << 8 | bytes[2]) % segment.size / 8 * 8;

        for (size_t i = 0; i <= bytes[3] && at + 8 <= segment.size; i++, at += 8) {
            memcpy(segment.base + at, bytes + 4, 8);
        }
    }
}

/* ---- who looks ---- */

static void check_lock(const struct shm_lock *lock, void *arg)
{
    (void)arg;
    MUST_HOLD(workspace_name_is_valid(lock->workspace, strlen(lock->workspace)));
    MUST_HOLD(session_name_is_valid(lock->session, strlen(lock->session)));
    MUST_HOLD(lock->activity < SHM_LOCK_ACTIVITY_COUNT && lock->started_mono_ms >= 0);
    MUST_HOLD(lock->kind <= LABEL_KIND_OTHER);
}

static void look_at_processes(const struct shm *shm)
{
    struct shm_process process;

    for (uint32_t slot = 0; slot < SHM_SLOT_MAX; slot++) {
        (void)shm_process_is_ready(shm, slot);
        if (shm_process_read(shm, slot, &process) == 0) {
            MUST_HOLD(slot < shm_slot_count(shm));
            MUST_HOLD(process.role != SHM_ROLE_NONE && process.role <= SHM_ROLE_WORKER);
            MUST_HOLD(process.state <= SHM_PROCESS_FAILED && process.pid >= 0);
            MUST_HOLD(process.started_mono_ms >= 0 && process.heartbeat_mono_ms >= 0);
            MUST_HOLD(process.restart.last_death < LABELS_DEATH_REASON);
            (void)shm_process_is_looping(&process);
        }
        MUST_HOLD(lock_table_each(shm, slot, check_lock, NULL) <= LOCKS);
    }
}

/* Lines of the exposition format: a name in front, a number at the end. */
static void check_exposition(const struct buf *text)
{
    const char *at = text->bytes, *end = text->bytes + text->len;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        MUST_HOLD(stop && stop > at);
        if (*at != '#') {
            const char *blank = memrchr(at, ' ', (size_t)(stop - at));
            char *number_end = NULL;

            MUST_HOLD(blank && strncmp(at, "outbox_", 7) == 0);
            (void)strtod(blank + 1, &number_end);
            MUST_HOLD(number_end == stop);
        }
        at = stop + 1;
    }
}

static void look_at_metrics(const struct shm *shm)
{
    static const char *const kinds[] = {"note", NULL, "note"};
    const struct exposition_names names = {.kinds = {kinds, 3}};
    struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));
    struct metrics_histogram histogram;
    struct buf text;

    MUST_HOLD(snapshot);
    buf_init(&text, EXPOSED_MAX);
    MUST_HOLD(metrics_expose(shm, &names, &text) == 0);
    check_exposition(&text);
    buf_done(&text);
    metrics_snapshot_slot(shm, SHM_SLOT_WORKER_FIRST, snapshot);
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        metrics_histogram(snapshot, (enum metric)metric, 0, &histogram);
        (void)metrics_quantile(&histogram, 0.99);
    }
    free(snapshot);
}

static void look_at_targets(const struct shm *shm)
{
    size_t counts[CIRCUIT_STATE_COUNT];
    const int64_t now_ns = clock_mono_ns();
    const uint64_t key = target_table_key(shm, "http://127.0.0.1:9000");

    MUST_HOLD(target_table_state(shm, key, now_ns) < CIRCUIT_STATE_COUNT);
    target_table_count(shm, now_ns, counts);
}

static void ask_a_target(struct shm *shm)
{
    const int64_t now_ns = clock_mono_ns(), now_ms = now_ns / 1000000;
    const uint64_t key = target_table_key(shm, "http://127.0.0.1:9000");
    const struct circuit_input failed = {
        .what = CIRCUIT_HAS_FAILED, .now_ms = now_ms, .began_ms = now_ms, .mark = 1};
    const struct target_permit permit = target_table_ask(shm, key, &limits, now_ns);

    MUST_HOLD(permit.answer <= TARGET_RATE_WAITS);
    MUST_HOLD((permit.answer == TARGET_MAY_BE_ASKED) == (permit.wait_ns <= 0));
    MUST_HOLD(permit.answer != TARGET_CIRCUIT_WAITS ||
              permit.wait_ns <= limits.circuit.max_ms * 1000000);
    MUST_HOLD(permit.answer != TARGET_RATE_WAITS || permit.wait_ns <= RATE_WAIT_NS);
    (void)target_table_tell(shm, key, &limits, &failed);
}

static void count_hint(uint32_t from_slot, uint64_t hint, void *arg)
{
    size_t *count = arg;

    MUST_HOLD(from_slot < SHM_SLOT_MAX);
    (void)hint;
    (*count)++;
}

/* Rings: after one look that drops what is garbage, hints go through again. */
static void exchange_hints(struct shm *shm)
{
    struct wake_set wakes;
    size_t count = 0;

    wake_set_init(&wakes);
    for (uint32_t slot = 0; slot < SHM_SLOT_MAX; slot++) {
        (void)shm_hint_send(shm, &wakes, slot, 1);
    }
    MUST_HOLD(shm_hint_drain(shm, count_hint, &count) == count);
    MUST_HOLD(count <= (size_t)SHM_SLOT_MAX * SHM_RING_SLOTS);
    count = 0;
    MUST_HOLD(shm_hint_drain(shm, count_hint, &count) == 0 && count == 0);
}

static void look_and_write(struct shm *shm)
{
    const struct shm_lock lock = {.workspace = "w", .session = "s"};

    exchange_hints(shm);
    ask_a_target(shm);
    shm_heartbeat(shm);
    metrics_add(metrics_of(shm), METRIC_ring_drops_total, 0, 1);
    const int index = lock_table_put(shm, &lock);

    lock_table_update(shm, index, &lock);
    lock_table_clear(shm, index);
}

static void look(struct shm *shm, bool at_metrics)
{
    look_at_processes(shm);
    if (at_metrics) { /* a thousand times slower than all the rest */
        look_at_metrics(shm);
    }
    look_at_targets(shm);
    if (shm_my_slot(shm) != SHM_NO_SLOT) {
        look_and_write(shm);
    }
}

/* One that was there before the garbage came, and one that comes after it. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct shm *before = NULL, *after = NULL;

    if (!segment.base) {
        make_segment();
    }
    if (len < 1) {
        return 0;
    }
    const uint32_t slot =
        bytes[0] & 0x80 ? SHM_NO_SLOT : bytes[0] % 8 % (SHM_SLOT_WORKER_FIRST + WORKERS);

    memcpy(segment.base, segment.image, segment.size);
    MUST_HOLD(shm_map(&before, segment.fd, slot, NULL) == 0);
    spoil(bytes + 1, len - 1);
    look(before, (bytes[0] & 0x70) == 0x40);
    shm_destroy(&before);
    if (shm_map(&after, segment.fd, slot, NULL) == 0) {
        look(after, false);
    }
    shm_destroy(&after);
    return 0;
}
