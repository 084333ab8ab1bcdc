/* The shortest runs that the model test (test_dependency_model.c) once failed with, written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/store/support/sync_operate.h"
#include "tests/store/support/valkey_fixture.h"

#define AN_HOUR_MS 3600000

static const char configuration[] =
    "target: {url: \"http://127.0.0.1:1/\"}\n"
    "kinds:\n"
    "  - {name: note.create, url: /n, idempotent: true, follow_up_edit: note.update,"
    " follow_up_remove: note.delete}\n"
    "  - {name: note.update, url: /n, idempotent: true}\n"
    "  - {name: note.delete, url: /n, idempotent: true}\n";

static struct sync_store *s;
static struct settings *settings;
static unsigned next_token;

static int empty(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    return 0;
}

/* A note; `cmid` may be "", `dep` NULL. */
static void accept_note(const char *session, const char *id, const char *cmid, const char *dep)
{
    const struct sync_entry entry = {
        .ws = "ws",
        .session = session,
        .id = id,
        .cmid = cmid,
        .kind = "note.create",
        .payload = "{\"v\":1,\"a\":null}",
        .depends_on = {dep},
        .dep_count = dep ? 1 : 0,
        .cap = 100,
    };

    assert_int_equal(sync_accept_entry(s, settings, &entry, NULL), ACCEPT_ACCEPTED);
}

static struct taken take(const char *id)
{
    char token[48];

    snprintf(token, sizeof(token), "node.1.4.a.%x", ++next_token);
    const struct taken_list list = sync_claim(s, "ws", token, 1, 1, NULL, 0);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, id);
    return list.items[0];
}

static void fails(const char *id)
{
    const struct taken taken = take(id);

    assert_true(sync_settle_with(s, &taken, OUTCOME_FAILED, "", false).applied);
}

static void operate(enum resolver_operation operation, const char *id, const char *new_id,
                    const char *patch, enum resolver_what what)
{
    const struct sync_operated done = sync_operate(s, settings, operation, "ws", id, new_id, patch);

    assert_int_equal(done.result, OPERATE_DONE);
    assert_int_equal(done.what, what);
}

static void assert_holds(void)
{
    char why[400];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

/* An echo ends what still waits: nobody remembers it as waiting. */
static void what_is_confirmed_while_it_waits_is_not_waited_for_any_more(void **state)
{
    (void)state;
    accept_note("a", "first", "", NULL);
    accept_note("b", "second", "", "first");
    const unsigned p = partition_of("ws", 2);

    assert_string_equal(sync_raw(s, "SCARD outboxdep:{%u}:ws:first", p), "1");
    assert_true(sync_confirm(s, "ws", "second", "", "", "", AN_HOUR_MS).is_new);
    assert_string_equal(sync_raw(s, "EXISTS outboxdep:{%u}:ws:first", p), "0");
    assert_holds();
}

/* The content of a replacement may come from an edit that was never sent; its name does not. */
static void a_replacement_with_an_edits_content_keeps_its_name(void **state)
{
    char id[64];

    (void)state;
    accept_note("a", "note", "m1", NULL);
    const struct taken note = take("note");

    operate(RESOLVER_EDIT, "note", "edit", "{\"v\":2}", RESOLVER_FOLLOW_UP);
    assert_true(sync_settle_with(s, &note, OUTCOME_FAILED, "", false).applied);
    operate(RESOLVER_EDIT, "note", "again", "{\"a\":\"x\"}", RESOLVER_REPLACED);
    fails("again");
    operate(RESOLVER_RETRY, "again", "third", "", RESOLVER_REPLACED);

    const struct sync_entry same = {.ws = "ws",
                                    .session = "a",
                                    .id = "other",
                                    .cmid = "m1",
                                    .kind = "note.create",
                                    .payload = "{\"v\":1,\"a\":null}",
                                    .cap = 100};

    assert_int_equal(sync_accept_entry(s, settings, &same, id), ACCEPT_DUPLICATE);
    assert_string_equal(id, "third");
    const struct taken third = take("third");

    assert_string_equal(third.payload, "{\"v\":2,\"a\":\"x\"}");
    assert_true(sync_finish_with(s, &third, "", false).applied);
    assert_holds(); /* the marker ends with it */
}

/* Both wait for the answer, in whatever order the set names them: here the later one first. */
static void all_that_an_echo_leaves_open_wait_for_the_answer(void **state)
{
    (void)state;
    accept_note("b", "first", "", NULL);
    accept_note("a", "z-early", "", "first");
    accept_note("a", "a-late", "", "first");
    fails("first");
    operate(RESOLVER_RETRY, "first", "again", "", RESOLVER_REPLACED);
    const struct taken again = take("again");

    assert_true(sync_confirm(s, "ws", "again", "", "", "", AN_HOUR_MS).is_new);
    assert_int_equal(sync_claim(s, "ws", "node.1.4.a.ffff", 9, 9, NULL, 0).count, 0);
    assert_false(sync_finish_with(s, &again, "{\"a\":\"x\"}", false).applied);
    assert_string_equal(take("z-early").payload, "{\"v\":1,\"a\":\"x\"}");
    assert_holds();
}

/* An echo takes a follow-up out of the middle of a chain: its end is still what a later edit meets.
 */
static void
an_edit_meets_the_removal_at_the_end_of_the_chain_whatever_was_echoed_between(void **state)
{
    (void)state;
    accept_note("a", "note", "", NULL);
    take("note");
    operate(RESOLVER_EDIT, "note", "edit", "{\"v\":2}", RESOLVER_FOLLOW_UP);
    operate(RESOLVER_REMOVE, "note", "removal", "", RESOLVER_FOLLOW_UP);
    assert_true(sync_confirm(s, "ws", "edit", "", "", "", AN_HOUR_MS).is_new);
    assert_int_equal(
        sync_operate(s, settings, RESOLVER_EDIT, "ws", "note", "late", "{\"v\":3}").result,
        OPERATE_ALREADY_SENT);
    assert_string_equal(sync_operate(s, settings, RESOLVER_REMOVE, "ws", "note", "x", "").subject,
                        "removal");
    assert_holds();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_confirmed_while_it_waits_is_not_waited_for_any_more, empty),
        cmocka_unit_test_setup(all_that_an_echo_leaves_open_wait_for_the_answer, empty),
        cmocka_unit_test_setup(
            an_edit_meets_the_removal_at_the_end_of_the_chain_whatever_was_echoed_between, empty),
        cmocka_unit_test_setup(a_replacement_with_an_edits_content_keeps_its_name, empty),
    };
    struct valkey *server = valkey_start(NULL);

    settings = sync_settings(configuration);
    s = sync_store_open(server->socket, AN_HOUR_MS, AN_HOUR_MS);
    const int failed = cmocka_run_group_tests_name("dependency runs", tests, NULL, NULL);

    sync_store_close(s);
    settings_destroy(&settings);
    valkey_stop(&server);
    return failed;
}
