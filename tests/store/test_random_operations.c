/* Random transitions in random order, with repeats, late callers, locks that expire and entries
 * that somebody parks, on a real server: the invariants hold after every step, and at the end every
 * message that was accepted has ended exactly once. Where nobody operates by hand, strict entries
 * of a session are first sent in the order of their acceptance. Seeded: OUTBOX_SEED repeats a run,
 * OUTBOX_STEPS lengthens it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define WORKSPACES 3
#define SESSIONS   4
#define TAKEN_MAX  64

static struct sync_store *s;
static uint64_t rng;
static unsigned next_entry, next_token;
static struct taken
    taken[TAKEN_MAX]; /* claims that somebody believes to hold; some are out of date */
static unsigned taken_count;
static const char *const all_flags[] = {"s", "", "si", "i", "sv", "v"};

/* One `sent` event for each entry that ended sent, none for any other. */
static const char *const sent_events_match =
    "#!lua flags=no-writes,allow-cross-slot-keys\n"
    "local sent = {}\n"
    "for _, k in ipairs(redis.call('KEYS', 'outboxev:*')) do\n"
    "  for _, e in ipairs(redis.call('XRANGE', k, '-', '+')) do\n"
    "    local f = {}\n"
    "    for i = 1, #e[2], 2 do f[e[2][i]] = e[2][i + 1] end\n"
    "    if f.type == 'sent' then\n"
    "      if sent[f.entryID] then return 'sent twice: ' .. f.entryID end\n"
    "      sent[f.entryID] = true\n"
    "    end\n"
    "  end\n"
    "end\n"
    "for _, k in ipairs(redis.call('KEYS', 'outboxdone:*')) do\n"
    "  local id = k:match(':([^:]+)$')\n"
    "  local how = cjson.decode(redis.call('GET', k)).how\n"
    "  if (how == 'sent') ~= (sent[id] == true) then return id .. ' ended ' .. how end\n"
    "end\n"
    "return ''\n";

/* The first `delivering` event of each strict entry, in the order of acceptance per session. The
 * digest in the tombstone says which entries were strict; their numbers rise with acceptance. */
static const char *const strict_order_holds =
    "#!lua flags=no-writes,allow-cross-slot-keys\n"
    "local strict = {}\n"
    "for _, k in ipairs(redis.call('KEYS', 'outboxdone:*')) do\n"
    "  if cjson.decode(redis.call('GET', k)).digest == 'strict' then\n"
    "    strict[k:match(':([^:]+)$')] = true\n"
    "  end\n"
    "end\n"
    "local checked = 0\n"
    "for _, k in ipairs(redis.call('KEYS', 'outboxev:*')) do\n"
    "  local seen, last = {}, {}\n"
    "  for _, e in ipairs(redis.call('XRANGE', k, '-', '+')) do\n"
    "    local f = {}\n"
    "    for i = 1, #e[2], 2 do f[e[2][i]] = e[2][i + 1] end\n"
    "    if f.type == 'delivering' and strict[f.entryID] and not seen[f.entryID] then\n"
    "      seen[f.entryID] = true\n"
    "      checked = checked + 1\n"
    "      local lane, n = f.workspaceID .. '|' .. f.sessionID, tonumber(f.entryID:sub(2))\n"
    "      if last[lane] and n < last[lane] then return lane .. ': e' .. n .. ' after e' .. "
    "last[lane] end\n"
    "      last[lane] = n\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return checked > 20 and '' or 'only ' .. checked .. ' strict entries'\n";

static unsigned draw(unsigned below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)((rng >> 11) % below);
}

static const char *workspace(void)
{
    static const char *const names[WORKSPACES] = {"ws", "w:2", "w%3"};

    return names[draw(WORKSPACES)];
}

static const char *session(void)
{
    static const char *const names[SESSIONS] = {"a", "a:b", "s3", "s%4"};

    return names[draw(SESSIONS)];
}

static void remember(const struct taken *claim)
{
    taken[taken_count < TAKEN_MAX ? taken_count++ : draw(TAKEN_MAX)] = *claim;
}

static void remember_next(const struct outcome_copy *outcome)
{
    if (outcome->has_next) {
        remember(&outcome->next);
    }
}

static void step_accept(void)
{
    char id[32], cmid[32];
    unsigned kind = draw(6);

    snprintf(id, sizeof(id), "e%u", next_entry++);
    snprintf(cmid, sizeof(cmid), draw(4) ? "m{%u}" : "", draw(200));
    sync_accept(s, workspace(), session(), id, cmid,
                strchr(all_flags[kind], 's') ? "strict" : "loose", all_flags[kind], 8, NULL);
}

static void step_claim(void)
{
    char token[48];

    snprintf(token, sizeof(token), "node.1.%u.a.%x", 4 + draw(2), ++next_token);
    struct taken_list list = sync_claim(s, workspace(), token, 1 + draw(4), 1 + draw(3), NULL, 0);

    for (size_t i = 0; i < list.count; i++) {
        remember(&list.items[i]);
    }
}

static enum outcome possible_outcome(const struct taken *claim)
{
    static const enum outcome sending[] = {
        OUTCOME_AMBIGUOUS,     OUTCOME_RETRY,  OUTCOME_REJECTED, OUTCOME_TRANSIENT,
        OUTCOME_PRIOR_PENDING, OUTCOME_FAILED, OUTCOME_CONFLICT, OUTCOME_UNKNOWN};
    static const enum outcome verifying[] = {OUTCOME_ABSENT, OUTCOME_INCONCLUSIVE,
                                             OUTCOME_TOO_EARLY, OUTCOME_UNKNOWN};
    static const enum outcome before[] = {OUTCOME_INCONCLUSIVE, OUTCOME_TOO_EARLY,
                                          OUTCOME_TRANSIENT, OUTCOME_FAILED};

    switch (claim->status) {
    case STATUS_DELIVERING:
        return sending[draw(8)];
    case STATUS_VERIFYING:
        return verifying[draw(4)];
    case STATUS_PENDING:
    case STATUS_ERROR:
    case STATUS_PARKED:
    case STATUS_COUNT:
        break;
    }
    return before[draw(4)];
}

/* Something becomes of a claim; often twice, as when an answer was lost; old claims stay and speak
 * up again later. */
static void step_outcome(void)
{
    if (taken_count == 0) {
        return;
    }
    unsigned at = draw(taken_count);
    struct taken claim = taken[at];
    bool want_next = draw(2);
    struct outcome_copy outcome;

    switch (draw(7)) {
    case 0:
    case 1:
        outcome = sync_finish(s, &claim, want_next);
        remember_next(&outcome);
        break;
    case 2:
    case 3:
        outcome = sync_settle(s, &claim, possible_outcome(&claim), want_next);
        remember_next(&outcome);
        break;
    case 4:
        if (claim.status == STATUS_PENDING || claim.status == STATUS_VERIFYING) {
            struct begin_send_answer begun = sync_begin_send(s, &claim);

            if (begun.applied) {
                taken[at].status = STATUS_DELIVERING;
                taken[at].sends = begun.sends;
            }
        }
        break;
    case 5:
        sync_hold(s, &claim, draw(3), draw(2) ? "circuit_open" : "");
        break;
    default:
        sync_release(s, &claim);
        break;
    }
    if (draw(3) == 0 && taken_count > 0) {
        unsigned drop = draw(taken_count);

        taken[drop] = taken[--taken_count];
    }
}

static void step_recover(void)
{
    if (taken_count > 0) {
        const struct taken *claim = &taken[draw(taken_count)];

        sync_recover(s, claim->workspace, claim->session, claim->token.text);
    }
}

static void step_person(void)
{
    char id[32], fresh[32];

    if (next_entry == 0) {
        return;
    }
    snprintf(id, sizeof(id), "e%u", draw(next_entry));
    if (draw(2)) {
        snprintf(fresh, sizeof(fresh), "e%u", next_entry++);
        sync_retry(s, workspace(), id, fresh, NULL);
    } else {
        sync_remove(s, workspace(), id, NULL);
    }
}

static const char *encoded(const char *name, char *room, size_t cap)
{
    int64_t len = percent_encode(name, strlen(name), room, cap);

    assert_true(len > 0 && (size_t)len < cap);
    room[len] = '\0';
    return room;
}

static bool key_exists(const char *what, unsigned p, const char *ws, const char *rest)
{
    return strcmp(sync_raw(s, "EXISTS %s:{%u}:%s:%s", what, p, ws, rest), "1") == 0;
}

/* The lock ends by its TTL while its owner goes on, who does not know. */
static void step_expire(void)
{
    char ws_room[32], ses_room[32];
    const char *name = workspace();
    const unsigned p = partition_of(name, strlen(name));
    const char *ws = encoded(name, ws_room, sizeof(ws_room));
    const char *ses = encoded(session(), ses_room, sizeof(ses_room));

    if (key_exists("outboxlock", p, ws, ses) && key_exists("outboxq", p, ws, ses)) {
        sync_raw(s, "DEL outboxlock:{%u}:%s:%s", p, ws, ses);
        sync_raw(s, "ZADD outboxlive:{%u} 1 %s:%s", p, ws, ses);
        sync_raw(s, "ZADD outboxws:{%u}:%s 1 %s", p, ws, ses);
        sync_raw(s, "ZADD outboxdue:{%u} 1 %s", p, ws);
    }
}

/* Parks or unparks a whole workspace, whatever somebody is doing with it. */
static void step_park(void)
{
    if (draw(3) == 0) {
        sync_walk(s, draw(2) ? WALK_PARK : WALK_UNPARK, workspace(), draw(4));
    }
}

/* Whatever stands in the store, every open entry is where a claim finds it. */
static void step_audit(void)
{
    assert_int_equal(sync_audit(s, workspace()), 0);
}

static void step_nothing(void)
{
}

static void check(uint64_t seed, unsigned step)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("seed %llu step %u: %s", (unsigned long long)seed, step, why);
    }
}

/* Everything that waits is made due and confirmed; errors are discarded. */
static void drain(void)
{
    static const char *const names[WORKSPACES] = {"ws", "w:2", "w%3"};
    char id[32];

    for (unsigned w = 0; w < WORKSPACES; w++) {
        sync_recover_all(s, names[w]);
        sync_walk(s, WALK_UNPARK, names[w], 0);
    }
    for (unsigned round = 0; round < 2000; round++) {
        unsigned left = 0;

        for (unsigned w = 0; w < WORKSPACES; w++) {
            char token[48];

            snprintf(token, sizeof(token), "node.1.9.a.%x", ++next_token);
            struct taken_list list = sync_claim(s, names[w], token, 50, 50, NULL, 0);

            for (size_t i = 0; i < list.count; i++) {
                sync_finish(s, &list.items[i], false);
                left++;
            }
            left += list.next_due_ms >= 0 && list.next_due_ms < 1000;
        }
        if (left == 0) {
            break;
        }
    }
    for (unsigned i = 0; i < next_entry; i++) {
        snprintf(id, sizeof(id), "e%u", i);
        for (unsigned w = 0; w < WORKSPACES; w++) {
            sync_remove(s, names[w], id, NULL);
        }
    }
}

static void every_accepted_message_ends_exactly_once(void **state)
{
    const char *seed_text = getenv("OUTBOX_SEED");
    const char *steps_text = getenv("OUTBOX_STEPS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : 20261130;
    unsigned steps = steps_text ? (unsigned)strtoul(steps_text, NULL, 10) : 400;

    (void)state;
    for (unsigned run = 0; run < (seed_text ? 1U : 8U); run++, seed++) {
        rng = seed * 0x9e3779b97f4a7c15U + 1;
        const bool by_hand = seed % 2 == 0; /* people retry and remove: order is theirs then */

        next_entry = taken_count = 0;
        sync_raw(s, "FLUSHALL");
        for (unsigned step = 0; step < steps; step++) {
            void (*const kinds[])(void) = {step_accept,  step_accept,
                                           step_accept,  step_claim,
                                           step_claim,   step_outcome,
                                           step_outcome, step_outcome,
                                           step_outcome, step_recover,
                                           step_expire,  step_park,
                                           step_audit,   by_hand ? step_person : step_nothing};

            kinds[draw(sizeof(kinds) / sizeof(kinds[0]))]();
            check(seed, step);
        }
        drain();
        check(seed, steps);
        assert_string_equal(sync_raw(s, "EVAL return(#redis.call('KEYS','outboxe:*')) 0"), "0");
        assert_string_equal(
            sync_raw(
                s, "EVAL "
                   "return(#redis.call('KEYS','outboxq:*')+#redis.call('KEYS','outboxlock:*')) 0"),
            "0");
        assert_string_equal(sync_script(s, sent_events_match), "");
        if (!by_hand) {
            assert_string_equal(sync_script(s, strict_order_holds), "");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_accepted_message_ends_exactly_once)};
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, 60000, 60000);
    int failed = cmocka_run_group_tests_name("random operations", tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
