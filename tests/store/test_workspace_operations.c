/* 10,000 racing operations: several simulated workers, people who retry and remove, and walks over
 * whole workspaces that are stopped between any two of their steps, on a real server. After each
 * operation the whole store is compared with what a model allows to have changed: nothing but the
 * entry that was meant. Seeded: OUTBOX_SEED repeats a run, OUTBOX_STEPS lengthens it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define WORKSPACES  3
#define SESSIONS    4
#define CAP         6
#define TAKEN_MAX   64
#define ENTRIES_MAX 256
#define IDS_MAX     80

static const char *const workspaces[WORKSPACES] = {"ws", "w:2", "w%3"};
static const char *const sessions[SESSIONS] = {"a", "a:b", "s3", "s%4"};

static struct sync_store *s;      /* workers and people */
static struct sync_store *walker; /* on a loop of its own: goes on only when we let it */
static struct sync_walking walking;
static bool is_walking, is_disturbed; /* disturbed: somebody re-armed entries meanwhile */
static enum walk_kind walk_kind;
static const char *walk_ws;
static long long latest_parked; /* acceptance of the latest that this walk has parked */

static uint64_t rng, seed;
static unsigned step_number, next_entry, next_token;
static struct taken taken[TAKEN_MAX];
static unsigned taken_count;
static uint64_t done[16]; /* how often each kind of thing happened */

static unsigned draw(unsigned below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)((rng >> 11) % below);
}

static const char *workspace(void)
{
    return workspaces[draw(WORKSPACES)];
}

/* ---- the whole store at one moment ---- */

struct shot {
    char key[64];   /* encoded workspace : id */
    char state[96]; /* status/priorStatus/sends/attempts/verifyAttempts/prior */
    char status[16], prior_status[16], code[32];
    int is_staged, has_prior, is_idempotent;
    unsigned sends;
    long long accepted;
};
struct snapshot {
    struct shot shots[ENTRIES_MAX];
    size_t count;
};
static struct snapshot before, after;

static const char *const take_snapshot =
    "#!lua flags=no-writes,allow-cross-slot-keys\n"
    "local call, lines = redis.call, {}\n"
    "local function enc(raw)\n"
    "  return (raw:gsub('[^A-Za-z0-9._~-]', function(c) return string.format('%%%02X', c:byte()) "
    "end))\n"
    "end\n"
    "local keys = call('KEYS', 'outboxe:*')\n"
    "table.sort(keys)\n"
    "for _, k in ipairs(keys) do\n"
    "  local p, ws, id = k:match('^outboxe:{(%d+)}:([^:]+):([^:]+)$')\n"
    "  local v = call('HMGET', k, 'status', 'priorStatus', 'lastError', 'prior', 'flags', 'sends', "
    "'acceptedAt', 'attempts', 'session', 'verifyAttempts')\n"
    "  local staged = call('LPOS', 'outboxd:{' .. p .. '}:' .. ws .. ':' .. enc(v[9]), id)\n"
    "  local code = v[3] and cjson.decode(v[3]).code or '-'\n"
    "  local state = table.concat({v[1], v[2] or '-', v[6] or 0, v[8] or 0, v[10] or 0, v[4] or "
    "0}, "
    "'/')\n"
    "  lines[#lines + 1] = table.concat({ws .. ':' .. id, state, v[1], v[2] or '-', code,\n"
    "    staged and 1 or 0, v[4] and 1 or 0, (v[5] or ''):find('i', 1, true) and 1 or 0, v[6] or "
    "0, "
    "v[7]}, ' ')\n"
    "end\n"
    "return table.concat(lines, '\\n')\n";

static void look(struct snapshot *to)
{
    redisReply *reply = redisCommand(s->raw, "EVAL %s 0", take_snapshot);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    to->count = 0;
    for (char *save = NULL, *line = strtok_r(reply->str, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        struct shot *shot = &to->shots[to->count];

        assert_true(to->count++ < ENTRIES_MAX);
        assert_int_equal(sscanf(line, "%63s %95s %15s %15s %31s %d %d %d %u %lld", shot->key,
                                shot->state, shot->status, shot->prior_status, shot->code,
                                &shot->is_staged, &shot->has_prior, &shot->is_idempotent,
                                &shot->sends, &shot->accepted),
                         10);
    }
    freeReplyObject(reply);
}

static const char *key_of(const char *ws, const char *id, char room[64])
{
    int64_t len = percent_encode(ws, strlen(ws), room, 60);

    snprintf(room + len, 64 - (size_t)len, ":%s", id);
    return room;
}

static const struct shot *find(const struct snapshot *snapshot, const char *ws, const char *id)
{
    char key[64];

    key_of(ws, id, key);
    for (size_t i = 0; i < snapshot->count; i++) {
        if (strcmp(snapshot->shots[i].key, key) == 0) {
            return &snapshot->shots[i];
        }
    }
    return NULL;
}

/* ---- what may have changed ---- */

/* Entries that the operation was about. */
static char meant[IDS_MAX][64];
static size_t meant_count;

static void mean(const char *ws, const char *id)
{
    assert_true(meant_count < IDS_MAX);
    key_of(ws, id, meant[meant_count++]);
}

static bool is_meant(const struct shot *shot)
{
    for (size_t i = 0; i < meant_count; i++) {
        if (strcmp(meant[i], shot->key) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_open(const char *status)
{
    return strcmp(status, "pending") == 0 || strcmp(status, "delivering") == 0 ||
           strcmp(status, "verifying") == 0;
}

static bool is_of(const struct shot *shot, const char *ws)
{
    char prefix[64];

    key_of(ws, "", prefix);
    return strncmp(shot->key, prefix, strlen(prefix)) == 0;
}

/* What a walk may do to an entry of its workspace. */
static bool walk_allows(enum walk_kind kind, const struct shot *was, const struct shot *is)
{
    if (kind == WALK_CLEANUP) {
        return !is;
    }
    if (!is || was->sends != is->sends) {
        return false;
    }
    if (kind == WALK_PARK) {
        latest_parked = was->accepted > latest_parked ? was->accepted : latest_parked;
        return is_open(was->status) && strcmp(is->status, "parked") == 0 &&
               strcmp(is->prior_status, was->status) == 0 && was->is_staged == is->is_staged;
    }
    if (kind == WALK_UNVERIFIABLE) {
        return strcmp(was->status, "error") == 0 && strcmp(was->code, "unverifiable") == 0 &&
               strcmp(is->status, "verifying") == 0;
    }
    if (kind != WALK_UNPARK || strcmp(was->status, "parked") != 0) {
        return false;
    }
    if (!was->is_staged && !was->has_prior && strcmp(was->prior_status, "delivering") == 0) {
        return strcmp(is->status, was->is_idempotent ? "pending" : "verifying") == 0;
    }
    return strcmp(is->status, was->prior_status) == 0;
}

static bool is_allowed(const struct shot *was, const struct shot *is, const enum walk_kind *kind,
                       const char *ws)
{
    return is_meant(was ? was : is) ||
           (kind && was && is_of(was, ws) && walk_allows(*kind, was, is));
}

/* Both are sorted by partition and key: entries are paired by name. */
static void compare(const char *what, const enum walk_kind *kind, const char *ws)
{
    for (size_t i = 0; i < before.count; i++) {
        const struct shot *was = &before.shots[i], *is = NULL;

        for (size_t k = 0; k < after.count && !is; k++) {
            is = strcmp(after.shots[k].key, was->key) == 0 ? &after.shots[k] : NULL;
        }
        if ((!is || strcmp(was->state, is->state) != 0) && !is_allowed(was, is, kind, ws)) {
            fail_msg("seed %llu step %u: %s touched %s: [%s] -> [%s]", (unsigned long long)seed,
                     step_number, what, was->key, was->state, is ? is->state : "gone");
        }
    }
    for (size_t k = 0; k < after.count; k++) {
        const struct shot *is = &after.shots[k];
        bool was_there = false;

        for (size_t i = 0; i < before.count && !was_there; i++) {
            was_there = strcmp(before.shots[i].key, is->key) == 0;
        }
        if (!was_there && !is_meant(is)) {
            fail_msg("seed %llu step %u: %s made %s", (unsigned long long)seed, step_number, what,
                     is->key);
        }
    }
    before = after;
}

static void settle_up(const char *what)
{
    look(&after);
    compare(what, NULL, NULL);
}

/* ---- operations ---- */

static bool is_held(const struct taken *claim)
{
    const struct shot *shot = find(&before, claim->workspace, claim->id);

    return shot && shot->is_staged;
}

/* Forgets claims that are over, now and then one: others are needed to know what a recovery may
 * touch. */
static void forget(unsigned at)
{
    if (!is_held(&taken[at])) {
        taken[at] = taken[--taken_count];
    }
}

static void remember(const struct taken *claim)
{
    mean(claim->workspace, claim->id);
    for (unsigned i = taken_count; taken_count == TAKEN_MAX && i-- > 0;) {
        forget(i);
    }
    assert_true(taken_count < TAKEN_MAX);
    taken[taken_count++] = *claim;
}

static void op_accept(void)
{
    static const char *const flags[] = {"s", "", "si", "i", "sv", "v"};
    char id[32];
    const char *ws = workspace();

    snprintf(id, sizeof(id), "e%u", next_entry++);
    mean(ws, id);
    sync_accept(s, ws, sessions[draw(SESSIONS)], id, "", "d", flags[draw(6)], CAP, NULL);
    settle_up("accept");
}

static bool is_paused(const char *ws)
{
    char name[64];
    int64_t len = percent_encode(ws, strlen(ws), name, sizeof(name) - 1);

    name[len] = '\0';
    return strcmp(sync_raw(s, "HGET outboxconf:{%u}:%s paused", partition_of(ws, strlen(ws)), name),
                  "1") == 0;
}

static void op_claim(void)
{
    char token[48];
    const char *ws = workspace();

    snprintf(token, sizeof(token), "node.1.%u.a.%x", 4 + draw(2), ++next_token);
    struct taken_list list = sync_claim(s, ws, token, 1 + draw(4), 1 + draw(3), NULL, 0);

    for (size_t i = 0; i < list.count; i++) {
        const struct shot *was = find(&before, list.items[i].workspace, list.items[i].id);

        assert_non_null(was);
        assert_true(is_open(was->status));
        assert_false(was->is_staged);
        assert_false(is_paused(list.items[i].workspace));
        remember(&list.items[i]);
        done[0]++;
    }
    settle_up("claim");
}

static enum outcome outcome_for(const struct taken *claim)
{
    static const enum outcome sending[] = {OUTCOME_AMBIGUOUS,     OUTCOME_RETRY,
                                           OUTCOME_REJECTED,      OUTCOME_TRANSIENT,
                                           OUTCOME_PRIOR_PENDING, OUTCOME_FAILED};
    static const enum outcome looking[] = {OUTCOME_INCONCLUSIVE, OUTCOME_TOO_EARLY, OUTCOME_FAILED};

    return claim->status == STATUS_DELIVERING ? sending[draw(6)] : looking[draw(3)];
}

/* Often of a claim that is out of date, sometimes twice. */
static void op_outcome(void)
{
    if (taken_count == 0) {
        return;
    }
    const unsigned at = draw(taken_count);
    const struct taken claim = taken[at];
    const unsigned what = draw(5);
    struct outcome_copy outcome = {0};

    /* What a lost answer of the same claim took belongs to it. */
    for (unsigned i = 0; i < taken_count; i++) {
        if (strcmp(taken[i].token.text, claim.token.text) == 0 &&
            strcmp(taken[i].session, claim.session) == 0) {
            mean(taken[i].workspace, taken[i].id);
        }
    }
    if (what < 2) {
        outcome = sync_finish(s, &claim, draw(2));
    } else if (what < 4) {
        outcome = sync_settle(s, &claim, outcome_for(&claim), draw(2));
    } else if (claim.status != STATUS_DELIVERING) {
        struct begin_send_answer begun = sync_begin_send(s, &claim);

        if (begun.applied) {
            taken[at].status = STATUS_DELIVERING;
            taken[at].sends = begun.sends;
        }
    } else if (draw(2)) {
        sync_release(s, &claim);
    } else {
        sync_hold(s, &claim, draw(3), "");
    }
    if (outcome.has_next) {
        remember(&outcome.next);
    }
    done[1] += outcome.applied;
    settle_up("an outcome");
    if (draw(3) == 0) {
        forget(at);
    }
}

/* A worker dies: what it had staged in that session, and only that. */
static void op_recover(void)
{
    if (taken_count == 0) {
        return;
    }
    const unsigned at = draw(taken_count);
    const struct taken claim = taken[at];

    for (unsigned i = 0; i < taken_count; i++) {
        if (strcmp(taken[i].workspace, claim.workspace) == 0 &&
            strcmp(taken[i].session, claim.session) == 0) {
            const struct shot *was = find(&before, taken[i].workspace, taken[i].id);

            if (was && was->is_staged) {
                mean(taken[i].workspace, taken[i].id);
            }
        }
    }
    sync_recover(s, claim.workspace, claim.session, claim.token.text);
    taken[at] = taken[--taken_count];
    settle_up("recovery");
}

static void op_person(void)
{
    if (before.count == 0) {
        return;
    }
    const struct shot *was = &before.shots[draw((unsigned)before.count)];
    const char *ws = workspaces[0];
    const char *id = strchr(was->key, ':') + 1;
    char fresh[32];
    const bool is_retry = draw(2);

    for (unsigned w = 0; w < WORKSPACES; w++) {
        ws = is_of(was, workspaces[w]) ? workspaces[w] : ws;
    }
    /* What the target owns is not sent or verified now: it has not failed, and can't be taken away.
     */
    const bool is_busy = was->is_staged || (!is_retry && strcmp(was->status, "delivering") == 0);
    const bool is_failed = strcmp(was->status, "error") == 0;
    const enum person_result expected = is_busy                  ? PERSON_BUSY
                                        : is_retry && !is_failed ? PERSON_NOT_FAILED
                                                                 : PERSON_DONE;
    enum person_result result;

    if (expected == PERSON_DONE) {
        mean(ws, id);
    }
    if (is_retry) {
        snprintf(fresh, sizeof(fresh), "e%u", next_entry++);
        mean(ws, fresh);
        result = sync_retry(s, ws, id, fresh, NULL);
        is_disturbed = true;
    } else {
        result = sync_remove(s, ws, id, NULL);
    }
    if (result != expected) {
        fail_msg("seed %llu step %u: %s of %s [%s]: %d instead of %d", (unsigned long long)seed,
                 step_number, is_retry ? "retry" : "remove", was->key, was->state, result,
                 expected);
    }
    done[2 + result]++;
    settle_up(is_retry ? "retry" : "remove");
}

static void op_pause(void)
{
    sync_pause(s, workspace(), draw(3) == 0);
    settle_up("pause or resume");
}

static enum walk_kind any_walk(void)
{
    static const enum walk_kind kinds[] = {WALK_PARK,         WALK_UNPARK,        WALK_UNPARK,
                                           WALK_UNVERIFIABLE, WALK_PARKED_ERRORS, WALK_CLEANUP};
    const enum walk_kind kind = kinds[draw(6)];

    return kind == WALK_CLEANUP && draw(4) ? WALK_UNPARK : kind;
}

/* Begins a walk, or lets it go on for a moment: it stops in the middle of a workspace. */
static void op_walk(void)
{
    if (!is_walking) {
        walk_kind = any_walk();
        walk_ws = workspace();
        is_walking = true;
        is_disturbed = false;
        latest_parked = 0;
        sync_walk_begin(walker, walk_kind, walk_ws, 1 + draw(3), &walking);
    }
    const uint64_t count = walking.answer.count;

    sync_walk_on(walker, s);
    look(&after);
    const struct snapshot *now = &after;

    if (walking.is_done) {
        is_walking = false;
        done[6 + (unsigned)walk_kind] += walking.answer.count - count;
        for (size_t i = 0; i < now->count && !is_disturbed && walk_kind != WALK_PARKED_ERRORS;
             i++) {
            const struct shot *shot = &now->shots[i];

            if (is_of(shot, walk_ws) && shot->accepted < walking.answer.at_ms) {
                assert_false(walk_kind == WALK_PARK && is_open(shot->status));
                assert_false(walk_kind == WALK_UNPARK && strcmp(shot->status, "parked") == 0);
                assert_false(walk_kind == WALK_CLEANUP);
            }
        }
    }
    compare("a step of a walk", &walk_kind, walk_ws);
    if (!is_walking && walk_kind == WALK_PARK && !is_disturbed) {
        assert_true(latest_parked <= walking.answer.at_ms); /* what came later is not parked */
    }
}

/* A whole walk in between. */
static void op_walk_through(void)
{
    const enum walk_kind kind = any_walk();
    const char *ws = workspace();

    is_disturbed = true;
    done[6 + (unsigned)kind] += sync_walk(s, kind, ws, draw(4));
    look(&after);
    compare("a walk", &kind, ws);
}

static void check_invariants(void)
{
    char why[512];

    /* Between two steps of a cleanup its sessions hold locks without entries. */
    if (!(is_walking && walk_kind == WALK_CLEANUP) && !sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("seed %llu step %u: %s", (unsigned long long)seed, step_number, why);
    }
}

static void racing_operations_touch_nothing_but_what_they_mean(void **state)
{
    static void (*const ops[])(void) = {
        op_accept,  op_accept,  op_accept,  op_accept,  op_claim,   op_claim,        op_claim,
        op_outcome, op_outcome, op_outcome, op_outcome, op_recover, op_person,       op_person,
        op_pause,   op_walk,    op_walk,    op_walk,    op_walk,    op_walk_through,
    };
    const char *seed_text = getenv("OUTBOX_SEED"), *steps_text = getenv("OUTBOX_STEPS");
    const unsigned steps = steps_text ? (unsigned)strtoul(steps_text, NULL, 10) : 10000;

    (void)state;
    seed = seed_text ? strtoull(seed_text, NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    rng = seed * 0x9e3779b97f4a7c15U + 1;
    sync_limits.max_verify_attempts = 1;
    look(&before);
    for (step_number = 0; step_number < steps; step_number++) {
        meant_count = 0;
        ops[draw(sizeof(ops) / sizeof(ops[0]))]();
        if (step_number % 10 == 0) {
            check_invariants();
        }
    }
    if (is_walking) {
        sync_walk_end(walker, &walking);
        is_walking = false;
    }
    check_invariants();
    /* Each of them happened, or the test has seen nothing. */
    for (unsigned i = 0; i < 6 && !steps_text; i++) {
        if (i != 2 + PERSON_NOT_FOUND) {
            assert_true(done[i] > 0);
        }
    }
    assert_true(steps_text || (done[6 + WALK_PARK] > 0 && done[6 + WALK_UNPARK] > 0 &&
                               done[6 + WALK_UNVERIFIABLE] > 0 && done[6 + WALK_CLEANUP] > 0));
    for (unsigned w = 0; w < WORKSPACES; w++) {
        sync_walk(s, WALK_CLEANUP, workspaces[w], 0);
    }
    assert_string_equal(sync_script(s, "#!lua flags=no-writes,allow-cross-slot-keys\n"
                                       "for _, k in ipairs(redis.call('KEYS', '*')) do\n"
                                       "  if not k:match('^outbox%l+:{%d+}$') then return k end\n"
                                       "  if redis.call('TYPE', k).ok == 'zset' then return k end\n"
                                       "end\n"
                                       "return ''\n"),
                        "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(racing_operations_touch_nothing_but_what_they_mean),
    };
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, 60000, 60000);
    walker = sync_store_open(server->socket, 60000, 60000);
    int failed = cmocka_run_group_tests_name("operations on workspaces", tests, NULL, NULL);

    sync_store_close(walker);
    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
