/* The scene of attacks. */
#include "tests/store/support/attack_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/store/support/valkey_fixture.h"

struct sync_store *s;
unsigned p;

void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

enum accept_result accept_in(const char *ses, const char *id, const char *cmid, const char *flags)
{
    return sync_accept(s, "ws", ses, id, cmid, "digest", flags, 20000, NULL);
}

struct taken_list claim(const char *token)
{
    return sync_claim(s, "ws", token, 10, 10, NULL, 0);
}

struct taken claim_one(const char *token, const char *expected_id)
{
    struct taken_list list = claim(token);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, expected_id);
    return list.items[0];
}

/* What a session whose lock ended looks like when its deadline has come. */
void expire_lock(const char *ses)
{
    sync_raw(s, "DEL outboxlock:{%u}:ws:%s", p, ses);
    sync_raw(s, "ZADD outboxlive:{%u} 1 ws:%s", p, ses);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 %s", p, ses);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
}

void make_due(const char *ses, const char *id)
{
    sync_raw(s, "HSET outboxe:{%u}:ws:%s nextAttemptAt 0", p, id);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 %s", p, ses);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
}

void park_by_hand(const char *id)
{
    const char *was = sync_state(s, "ws", id);

    sync_raw(s, "HINCRBY outboxstat:{%u} %s -1", p, was);
    sync_raw(s, "HINCRBY outboxstat:{%u} parked 1", p);
    sync_raw(s, "HINCRBY outboxwsstat:{%u}:ws %s -1", p, was);
    sync_raw(s, "HINCRBY outboxwsstat:{%u}:ws parked 1", p);
    sync_raw(s, "HSET outboxe:{%u}:ws:%s status parked priorStatus %s", p, id, was);
    sync_raw(s, "ZREM outboxopen:{%u} ws:%s", p, id);
}

long long number_of(const char *text)
{
    return strtoll(text, NULL, 10);
}

bool is_locked(const char *ses)
{
    return strcmp(sync_raw(s, "EXISTS outboxlock:{%u}:ws:%s", p, ses), "1") == 0;
}

int attack_begin(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    return 0;
}

int attack_end(void **state)
{
    (void)state;
    sync_raw(s, "CONFIG SET maxmemory 0"); /* also when the test failed half way */
    return 0;
}

int attacks_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
    struct valkey *server = valkey_start(NULL);

    p = partition_of("ws", 2);
    s = sync_store_open(server->socket, ATTACK_LOCK_TTL, 60000);
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
