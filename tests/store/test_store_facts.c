/* What the store says of itself, the layout check, and the counters of generations, on a real
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/store.h"
#include "tests/store/support/valkey_fixture.h"

struct seen {
    int count;
    enum store_result result;
    struct server_facts facts;
    bool yes;
    int64_t number;
    bool is_closed;
};

static uv_loop_t loop;

static void on_facts(enum store_result result, const struct server_facts *facts, void *arg)
{
    struct seen *seen = arg;

    seen->count++;
    seen->result = result;
    if (facts) {
        seen->facts = *facts;
    }
}

static void on_flag(enum store_result result, bool yes, void *arg)
{
    struct seen *seen = arg;

    seen->count++;
    seen->result = result;
    seen->yes = yes;
}

static void on_beat(enum store_result result, bool exists, int64_t counter, void *arg)
{
    on_flag(result, exists, arg);
    ((struct seen *)arg)->number = counter;
}

static void on_closed(void *arg)
{
    ((struct seen *)arg)->is_closed = true;
}

static struct store *open_store(const char *url, uint32_t max_outstanding)
{
    const struct store_options options = {
        .url = url,
        .connections = 2,
        .max_outstanding = max_outstanding,
        .connect_timeout_ms = 5000,
        .command_timeout_ms = 10000,
        .durability = {.level = DURABILITY_FSYNC},
        .events_max = 100,
    };
    struct store *store;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(store_open(&loop, &options, &store), 0);
    while (!store_is_up(store)) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    return store;
}

static void wait_for(const struct seen *seen)
{
    while (seen->count == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(seen->count, 1);
}

static void close_store(struct store *store)
{
    struct seen seen = {0};

    store_close(store, on_closed, &seen);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(seen.is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void the_server_tells_what_it_is(void **state)
{
    static const struct {
        enum valkey_fsync fsync;
        const char *const extra[3];
        bool aof;
        const char *appendfsync, *policy;
        enum durability_level level;
        bool is_refused;
    } rows[] = {
        {VALKEY_FSYNC_ALWAYS, {NULL}, true, "always", "noeviction", DURABILITY_FSYNC, false},
        {VALKEY_FSYNC_EVERYSEC, {NULL}, true, "everysec", "noeviction", DURABILITY_FSYNC, true},
        {VALKEY_FSYNC_EVERYSEC, {NULL}, true, "everysec", "noeviction", DURABILITY_EVERYSEC, false},
        {VALKEY_AOF_OFF, {NULL}, false, "always", "noeviction", DURABILITY_EVERYSEC, true},
        {VALKEY_FSYNC_ALWAYS,
         {"--maxmemory-policy", "allkeys-lru"},
         true,
         "always",
         "allkeys-lru",
         DURABILITY_FSYNC,
         true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct valkey *valkey =
            valkey_start(&(struct valkey_options){.fsync = rows[i].fsync, .extra = rows[i].extra});
        struct store *store = open_store(valkey->url, 100);
        struct seen seen = {0};

        store_facts(store, on_facts, &seen);
        wait_for(&seen);
        assert_int_equal(seen.result, STORE_OK);
        assert_true(strcmp(seen.facts.name, "valkey") == 0 ||
                    strcmp(seen.facts.name, "redis") == 0);
        assert_true(strtol(seen.facts.version, NULL, 10) >= 7);
        assert_int_equal(seen.facts.aof_enabled, rows[i].aof);
        assert_string_equal(seen.facts.appendfsync, rows[i].appendfsync);
        assert_string_equal(seen.facts.maxmemory_policy, rows[i].policy);
        assert_false(seen.facts.is_loading || seen.facts.is_replica);
        assert_true(seen.facts.aof_last_write_ok && seen.facts.aof_last_rewrite_ok);
        assert_true(seen.facts.used_memory_bytes > 0 && seen.facts.max_memory_bytes == 0);
        assert_true(llabs(seen.facts.now_ms - clock_wall_ms()) < 60000); /* the same machine */
        assert_int_equal(seen.facts.process_id, valkey->pid);
        assert_int_equal(seen.facts.connected_replicas, 0);
        const char *refusal =
            store_facts_refusal(&seen.facts, (struct durability){.level = rows[i].level});

        assert_int_equal(refusal != NULL, rows[i].is_refused);
        close_store(store);
        valkey_stop(&valkey);
    }
}

static void a_server_without_config_says_noauth_and_a_full_bound_is_told_once(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct store *store;
    struct seen seen = {0};
    char url[128];

    (void)state;
    valkey_do(valkey, "ACL SETUSER weak on >pw ~* &* +@all -config");
    (void)snprintf(url, sizeof(url), "valkey://weak:pw@127.0.0.1:%d", valkey->port);
    store = open_store(url, 100);
    store_facts(store, on_facts, &seen);
    wait_for(&seen);
    assert_int_equal(seen.result, STORE_NOAUTH);
    close_store(store);

    /* The bound falls between the commands of one request: its answers come out of order. Meta and
     * beat are one script each, and find room. */
    for (uint32_t bound = 1; bound < 3; bound++) {
        struct seen full = {0}, meta = {0}, beat = {0};

        store = open_store(valkey->url, bound);
        store_facts(store, on_facts, &full);
        wait_for(&full);
        store_check_meta(store, on_flag, &meta);
        wait_for(&meta);
        store_beat(store, "node", 1, on_flag, &beat);
        wait_for(&beat);
        assert_int_equal(full.result, bound == 1 ? STORE_FULL : STORE_OK);
        assert_int_equal(meta.result, STORE_OK);
        assert_int_equal(beat.result, STORE_OK);
        close_store(store);
    }
    valkey_stop(&valkey);
}

static void the_layout_is_written_once_and_must_match(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct store *store = open_store(valkey->url, 100);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct seen seen = {0};

        store_check_meta(store, on_flag, &seen);
        wait_for(&seen);
        assert_int_equal(seen.result, STORE_OK);
        assert_true(seen.yes);
    }
    struct seen other = {0};

    valkey_do(valkey, "HSET outboxmeta partitions 32");
    store_check_meta(store, on_flag, &other);
    wait_for(&other);
    assert_int_equal(other.result, STORE_OK);
    assert_false(other.yes);
    struct seen wrong = {0};

    valkey_do(valkey, "DEL outboxmeta");
    valkey_do(valkey, "SET outboxmeta x");
    store_check_meta(store, on_flag, &wrong);
    wait_for(&wrong);
    assert_int_equal(wrong.result, STORE_ERROR);
    assert_false(wrong.yes);
    close_store(store);
    valkey_stop(&valkey);
}

static void a_generations_counter_rises_is_read_and_is_kept_a_day(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct store *store = open_store(valkey->url, 100);
    const uint64_t generation = 0xfedcba9876543210;
    struct seen absent = {0}, seen = {0};

    (void)state;
    store_read_beat(store, "node-1", generation, on_beat, &absent);
    wait_for(&absent);
    assert_int_equal(absent.result, STORE_OK);
    assert_false(absent.yes);
    for (int i = 0; i < 3; i++) {
        struct seen beat = {0};

        store_beat(store, "node-1", generation, on_flag, &beat);
        wait_for(&beat);
        assert_int_equal(beat.result, STORE_OK);
        assert_true(beat.yes);
    }
    store_read_beat(store, "node-1", generation, on_beat, &seen);
    wait_for(&seen);
    assert_true(seen.yes);
    assert_int_equal(seen.number, 3);
    int64_t ttl_ms = valkey_do(valkey, "PTTL outboxnode:node-1:fedcba9876543210");

    assert_in_range(ttl_ms, 86000000, 86400000);
    close_store(store);
    valkey_stop(&valkey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_tells_what_it_is),
        cmocka_unit_test(a_server_without_config_says_noauth_and_a_full_bound_is_told_once),
        cmocka_unit_test(the_layout_is_written_once_and_must_match),
        cmocka_unit_test(a_generations_counter_rises_is_read_and_is_kept_a_day),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
