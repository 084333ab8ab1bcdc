/* Event streams of a real store: pages, what they tell of the stream's reach, following through an
 * outage, and what became delayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <uv.h>

#include "common/store/event_tail.h"
#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

static struct valkey *server;
static struct sync_store *s;
static uint32_t p;

static int begin(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    p = partition_of("w", 1);
    return 0;
}

static void add(uint64_t ms, const char *type)
{
    sync_raw(s, "XADD outboxev:{%u} %llu-0 type %s workspaceID w sessionID s", p,
             (unsigned long long)ms, type);
}

/* ---- pages ---- */

struct page {
    bool is_done, is_whole, is_full;
    enum store_result result;
    struct stream_id first, last;
    char text[256]; /* the events' times */
};

static void on_page(enum store_result result, struct events_answer *answer, void *arg)
{
    struct page *page = arg;
    struct store_event event;

    page->is_done = true;
    page->result = result;
    if (result != STORE_OK) {
        return;
    }
    page->is_whole = answer->is_whole;
    page->is_full = answer->is_full;
    page->first = answer->first;
    page->last = answer->last;
    while (store_event_next(&answer->events, &event)) {
        const size_t len = strlen(page->text);

        assert_int_equal(event.partition, p);
        snprintf(page->text + len, sizeof(page->text) - len, "%d ", (int)event.id.ms);
    }
}

static struct page ask(uint64_t after, uint32_t max)
{
    struct page page = {0};

    store_events(s->store, p, (struct stream_id){after, 0}, max, on_page, &page);
    while (!page.is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    return page;
}

static void a_stream_that_is_not_there_is_an_empty_one(void **state)
{
    const struct page page = ask(0, 10);

    (void)state;
    assert_int_equal(page.result, STORE_OK);
    assert_true(page.is_whole && !page.is_full);
    assert_int_equal(page.last.ms + page.first.ms, 0);
    assert_string_equal(page.text, "");
}

static void pages_follow_each_other(void **state)
{
    (void)state;
    for (uint64_t ms = 10; ms <= 50; ms += 10) {
        add(ms, "accepted");
    }
    struct page page = ask(0, 3);

    assert_string_equal(page.text, "10 20 30 ");
    assert_true(page.is_full && page.is_whole);
    assert_int_equal(page.first.ms, 10);
    assert_int_equal(page.last.ms, 50);
    page = ask(30, 3);
    assert_string_equal(page.text, "40 50 ");
    assert_false(page.is_full);
    page = ask(50, 3);
    assert_string_equal(page.text, "");
    page = ask(0, 0); /* only how far it reaches */
    assert_string_equal(page.text, "");
    assert_int_equal(page.last.ms, 50);
}

static void a_trimmed_stream_says_so(void **state)
{
    (void)state;
    for (uint64_t ms = 10; ms <= 50; ms += 10) {
        add(ms, "accepted");
    }
    sync_raw(s, "XTRIM outboxev:{%u} MAXLEN 2", p);
    struct page page = ask(10, 10);

    assert_false(page.is_whole);
    assert_int_equal(page.first.ms, 40);
    assert_string_equal(page.text, "40 50 ");
    sync_raw(s, "XTRIM outboxev:{%u} MAXLEN 0", p); /* all of it: what was is still known */
    page = ask(10, 10);
    assert_false(page.is_whole);
    assert_int_equal(page.first.ms, 50);
    assert_int_equal(page.last.ms, 50);
}

static void a_key_that_holds_no_stream_is_an_error_and_no_crash(void **state)
{
    (void)state;
    sync_raw(s, "SET outboxev:{%u} x", p);
    assert_int_not_equal(ask(0, 10).result, STORE_OK);
}

/* ---- following ---- */

struct followed {
    char text[256];
    uint32_t rounds, lost;
    bool has_enough;
};

static void on_events(struct store_event_list *events, void *arg)
{
    struct followed *followed = arg;
    struct store_event event;

    while (store_event_next(events, &event)) {
        const size_t len = strlen(followed->text);

        snprintf(followed->text + len, sizeof(followed->text) - len, "%u:%d ", event.partition,
                 (int)event.id.ms);
    }
}

static bool on_round(bool is_behind, void *arg)
{
    struct followed *followed = arg;

    (void)is_behind;
    followed->rounds++;
    return !followed->has_enough;
}

static bool on_lost(enum store_result why, void *arg)
{
    struct followed *followed = arg;

    (void)why;
    followed->lost++;
    return true;
}

static void an_outage_leaves_no_gap(void **state)
{
    const struct stream_id from[PARTITION_COUNT] = {[7] = {10, 0}};
    struct followed followed = {0};
    const struct event_tail_options options = {
        .url = server->url,
        .connect_timeout_ms = 5000,
        .on_events = on_events,
        .on_round = on_round,
        .on_lost = on_lost,
        .arg = &followed,
    };
    struct event_tail *tail = NULL;

    (void)state;
    sync_raw(s, "XADD outboxev:{7} 10-0 type a");
    sync_raw(s, "XADD outboxev:{7} 11-0 type b");
    assert_int_equal(event_tail_open(s->loop, &options, &tail), 0);
    event_tail_follow(tail, from);
    while (followed.rounds < 1) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    assert_string_equal(followed.text, "7:11 "); /* not the one it began behind */
    valkey_kill(server);
    while (followed.lost < 1) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    valkey_restart(server);
    freeReplyObject(valkey_command(server, "XADD outboxev:{7} 12-0 type c"));
    freeReplyObject(valkey_command(server, "XADD outboxev:{63} 5-0 type d"));
    while (strlen(followed.text) < strlen("7:11 7:12 63:5 ")) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    assert_non_null(strstr(followed.text, "7:12 "));
    assert_non_null(strstr(followed.text, "63:5 "));
    event_tail_close(&tail);
}

/* ---- delayed ---- */

struct looked {
    bool is_done;
    struct delayed_answer answer;
    char text[256];
    uint32_t count;
};

static void on_looked(enum store_result result, struct delayed_answer *answer, void *arg)
{
    struct looked *looked = arg;
    struct store_event event;

    assert_int_equal(result, STORE_OK);
    looked->is_done = true;
    looked->answer = *answer;
    while (store_delayed_next(answer, &event)) {
        const struct span id = store_event_field(&event, "entryID");
        const size_t len = strlen(looked->text);

        assert_true(span_equal(store_event_field(&event, "type"), span_of("delayed")));
        assert_true(span_equal(store_event_field(&event, "workspaceID"), span_of("w")));
        assert_true(event.id.ms > 0);
        looked->count++;
        if (len + id.len + 2 < sizeof(looked->text)) {
            snprintf(looked->text + len, sizeof(looked->text) - len, "%.*s ", (int)id.len, id.ptr);
        }
    }
}

static struct looked look(int64_t stuck_after_ms, int64_t from_ms)
{
    struct looked looked = {0};

    store_delayed(s->store, p, stuck_after_ms, from_ms, on_looked, &looked);
    while (!looked.is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    return looked;
}

static void open_entry(const char *id, const char *status, int64_t accepted_ms)
{
    sync_raw(s, "HSET outboxe:{%u}:w:%s status %s session s kind note acceptedAt %lld", p, id,
             status, (long long)accepted_ms);
    sync_raw(s, "ZADD outboxopen:{%u} %lld w:%s", p, (long long)accepted_ms, id);
}

static void those_that_wait_are_told_once(void **state)
{
    const int64_t now = look(1000, -1).answer.now_ms;

    (void)state;
    open_entry("before", "pending", now - 9000);
    open_entry("a", "pending", now - 5000);
    open_entry("b", "verifying", now - 4000);
    open_entry("c", "delivering", now - 3000); /* under way: no waiting */
    open_entry("d", "pending", now + 100000);
    struct looked looked = look(1000, now - 6000);

    assert_string_equal(looked.text, "a b ");
    assert_int_equal(looked.answer.next_ms, now + 100000);
    looked = look(1000, looked.answer.looked_to_ms);
    assert_string_equal(looked.text, "");
    looked = look(1000, -1); /* the first look tells nothing of the past */
    assert_string_equal(looked.text, "");
    assert_true(looked.answer.looked_to_ms >= now - 1000);
}

static void a_crowd_is_told_in_turns_and_none_twice(void **state)
{
    const int64_t now = look(1000, -1).answer.now_ms;
    int64_t from = now - 60000;
    uint32_t count = 0, turns = 0;

    (void)state;
    for (int i = 0; i < 1300; i++) {
        char id[16];

        snprintf(id, sizeof(id), "e%d", i);
        open_entry(id, "pending", now - 50000 + i / 3); /* three in each millisecond */
    }
    do {
        const struct looked looked = look(1000, from);

        assert_true(looked.answer.looked_to_ms > from);
        from = looked.answer.looked_to_ms;
        count += looked.count;
        turns++;
    } while (from < now - 1000);
    assert_int_equal(count, 1300);
    assert_int_equal(turns, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_stream_that_is_not_there_is_an_empty_one, begin),
        cmocka_unit_test_setup(pages_follow_each_other, begin),
        cmocka_unit_test_setup(a_trimmed_stream_says_so, begin),
        cmocka_unit_test_setup(a_key_that_holds_no_stream_is_an_error_and_no_crash, begin),
        cmocka_unit_test_setup(those_that_wait_are_told_once, begin),
        cmocka_unit_test_setup(a_crowd_is_told_in_turns_and_none_twice, begin),
        cmocka_unit_test_setup(an_outage_leaves_no_gap, begin), /* the last one: its store dies */
    };

    server = valkey_start(NULL);
    s = sync_store_open(server->socket, 60000, 60000);
    const int failed = cmocka_run_group_tests_name("events", tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
