/* A hash table of cells in the segment: a key, a circuit packed into one word, a rate's time. Each
 * word is changed by compare-and-swap, so that of two workers that ask at once one is the probe. A
 * cell that tells nothing any more is taken by the next target. */
#include "common/shm/target_table.h"

#include <string.h>

#include "common/core/keys.h"
#include "common/core/rate.h"
#include "common/shm/shm_private.h"

#define WINDOW    8U /* cells in which a key may stand */
#define TRIES_MAX 8  /* of a change that others disturb */
#define MS_NS     INT64_C(1000000)
#define STALE_MS  INT64_C(600000)

/* ---- words ---- */

/* Bits 0-7 state, 8-15 failures, 16-23 opens, 24-31 mark, from 32: low bits of the time in
 * milliseconds. */
static uint64_t pack(const struct circuit *circuit)
{
    return (uint64_t)circuit->state | (uint64_t)circuit->failures << 8 |
           (uint64_t)circuit->opens << 16 | (uint64_t)circuit->mark << 24 |
           (uint64_t)(uint32_t)circuit->at_ms << 32;
}

/* The time nearest to now that ends in those bits: three weeks back or ahead. */
static struct circuit unpack(uint64_t word, int64_t now_ms)
{
    const int32_t apart_ms = (int32_t)((uint32_t)(word >> 32) - (uint32_t)now_ms);
    const unsigned state = word & 0xff;

    if (word == 0 || state >= CIRCUIT_STATE_COUNT) {
        return (struct circuit){0};
    }
    return (struct circuit){
        .state = (enum circuit_state)state,
        .failures = (uint8_t)(word >> 8),
        .opens = (uint8_t)(word >> 16),
        .mark = (uint8_t)(word >> 24),
        .at_ms = now_ms + apart_ms,
    };
}

static struct circuit circuit_in(const struct shm_target_cell *cell, int64_t now_ms)
{
    return unpack(atomic_load_explicit(&cell->circuit, memory_order_relaxed), now_ms);
}

static bool owes(const struct shm_target_cell *cell, int64_t now_ns)
{
    return (int64_t)atomic_load_explicit(&cell->full_ns, memory_order_relaxed) > now_ns;
}

/* ---- cells ---- */

enum worth {
    WORTH_NOTHING, /* free, or the same as one that is not there */
    WORTH_LITTLE,  /* some failures, or a circuit that nobody has asked for long */
    WORTH_KEEPING,
};

static bool is_stale(const struct circuit *circuit, int64_t now_ms)
{
    return circuit->state != CIRCUIT_CLOSED && circuit->at_ms < now_ms - STALE_MS;
}

static enum worth worth_of(const struct shm_target_cell *cell, int64_t now_ns)
{
    const struct circuit circuit = circuit_in(cell, now_ns / MS_NS);

    if (owes(cell, now_ns) ||
        (circuit.state != CIRCUIT_CLOSED && !is_stale(&circuit, now_ns / MS_NS))) {
        return WORTH_KEEPING;
    }
    return circuit.state == CIRCUIT_CLOSED && circuit.failures == 0 ? WORTH_NOTHING : WORTH_LITTLE;
}

static struct shm_target_cell *cell_at(const struct shm *shm, uint64_t key, uint32_t i)
{
    /* FNV's low bits are its weakest. */
    const uint64_t first = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 40;

    return shm_target_at(shm, (uint32_t)(first + i) % SHM_TARGETS);
}

static struct shm_target_cell *find(const struct shm *shm, uint64_t key)
{
    for (uint32_t i = 0; i < WINDOW; i++) {
        struct shm_target_cell *cell = cell_at(shm, key, i);

        if (atomic_load_explicit(&cell->key, memory_order_relaxed) == key) {
            return cell;
        }
    }
    return NULL;
}

static struct shm_target_cell *find_or_take(struct shm *shm, uint64_t key, int64_t now_ns)
{
    struct shm_target_cell *cell = find(shm, key);
    struct shm_target_cell *best = NULL;
    enum worth least = WORTH_KEEPING;

    if (cell) {
        return cell;
    }
    for (uint32_t i = 0; i < WINDOW; i++) {
        cell = cell_at(shm, key, i);
        const enum worth worth = worth_of(cell, now_ns);

        if (worth < least) {
            least = worth;
            best = cell;
        }
    }
    if (best) {
        atomic_store_explicit(&best->circuit, 0, memory_order_relaxed);
        atomic_store_explicit(&best->full_ns, 0, memory_order_relaxed);
        atomic_store_explicit(&best->key, key, memory_order_relaxed);
    }
    return best;
}

/* ---- changes ---- */

/* Steps the circuit; gives up on a cell that others keep changing: one answer more or less. */
static struct circuit_step step_circuit(struct shm_target_cell *cell,
                                        const struct circuit_input *input,
                                        const struct circuit_limits *limits,
                                        enum circuit_state *ret_before)
{
    uint64_t word = atomic_load_explicit(&cell->circuit, memory_order_relaxed);
    struct circuit_step step = {.may_go = true};

    for (int i = 0; i < TRIES_MAX; i++) {
        const struct circuit before = unpack(word, input->now_ms);

        step = circuit_step(&before, input, limits);
        *ret_before = before.state;
        const uint64_t next = pack(&step.next);

        if (next == word ||
            atomic_compare_exchange_strong_explicit(&cell->circuit, &word, next,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            break;
        }
    }
    return step;
}

static struct rate_step take_rate(struct shm_target_cell *cell, int64_t now_ns, uint32_t per_second)
{
    uint64_t full_ns = atomic_load_explicit(&cell->full_ns, memory_order_relaxed);
    struct rate_step step = {.may_go = true};

    for (int i = 0; i < TRIES_MAX; i++) {
        step = rate_take((int64_t)full_ns, now_ns, per_second);
        if (!step.may_go || atomic_compare_exchange_strong_explicit(
                                &cell->full_ns, &full_ns, (uint64_t)step.full_ns,
                                memory_order_relaxed, memory_order_relaxed)) {
            break;
        }
    }
    return step;
}

uint64_t target_table_key(const struct shm *shm, const char *url)
{
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    /* The generation is random: nobody can choose URLs that stand in each other's way. */
    const uint64_t key = fnv1a64(url, len) ^ shm->generation;

    return key > 0 ? key : 1;
}

struct target_permit target_table_ask(struct shm *shm, uint64_t key,
                                      const struct target_limits *limits, int64_t now_ns)
{
    const struct circuit_input asked = {.what = CIRCUIT_WAS_ASKED, .now_ms = now_ns / MS_NS};
    struct shm_target_cell *cell =
        limits->per_second > 0 ? find_or_take(shm, key, now_ns) : find(shm, key);
    struct target_permit permit = {.answer = TARGET_MAY_BE_ASKED};

    if (!cell) {
        return permit;
    }
    /* Looked at first: a request that the circuit holds takes nothing of the rate, and one that the
     * rate holds is not the one that finds out. */
    const struct circuit now = circuit_in(cell, asked.now_ms);
    const bool is_held = !circuit_step(&now, &asked, &limits->circuit).may_go;

    permit.before = permit.after = now.state;
    if (!is_held && limits->per_second > 0) {
        const struct rate_step rate = take_rate(cell, now_ns, limits->per_second);

        if (!rate.may_go) {
            permit.answer = TARGET_RATE_WAITS;
            permit.wait_ns = rate.wait_ns;
            return permit;
        }
    }
    const struct circuit_step step = step_circuit(cell, &asked, &limits->circuit, &permit.before);

    permit.after = step.next.state;
    if (!step.may_go) {
        permit.answer = TARGET_CIRCUIT_WAITS;
        permit.wait_ns = step.wait_ms * MS_NS;
    }
    return permit;
}

struct target_change target_table_tell(struct shm *shm, uint64_t key,
                                       const struct target_limits *limits,
                                       const struct circuit_input *input)
{
    const bool has_failed = input->what == CIRCUIT_HAS_FAILED && limits->circuit.failures > 0;
    struct shm_target_cell *cell =
        has_failed ? find_or_take(shm, key, input->now_ms * MS_NS) : find(shm, key);
    struct target_change change = {CIRCUIT_CLOSED, CIRCUIT_CLOSED};

    if (cell) {
        change.after = step_circuit(cell, input, &limits->circuit, &change.before).next.state;
    }
    return change;
}

/* ---- reading ---- */

static enum circuit_state state_in(const struct shm_target_cell *cell, int64_t now_ns)
{
    const struct circuit circuit = circuit_in(cell, now_ns / MS_NS);

    return is_stale(&circuit, now_ns / MS_NS) ? CIRCUIT_CLOSED : circuit.state;
}

enum circuit_state target_table_state(const struct shm *shm, uint64_t key, int64_t now_ns)
{
    const struct shm_target_cell *cell = find(shm, key);

    return cell ? state_in(cell, now_ns) : CIRCUIT_CLOSED;
}

void target_table_count(const struct shm *shm, int64_t now_ns, size_t ret[CIRCUIT_STATE_COUNT])
{
    memset(ret, 0, CIRCUIT_STATE_COUNT * sizeof(ret[0]));
    for (uint32_t i = 0; i < SHM_TARGETS; i++) {
        const enum circuit_state state = state_in(shm_target_at(shm, i), now_ns);

        if (state != CIRCUIT_CLOSED) {
            ret[state]++;
        }
    }
}
