/* The state of a server out of two answers; which answers to a message are worth another try; what
 * options may be. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/answers.h"
#include "api/ctl/metrics_text.h"
#include "api/ctl/options.h"
#include "api/ctl/send_policy.h"
#include "api/ctl/status_answers.h"
#include "common/core/buf.h"

/* ---- metrics ---- */

static const char *const metrics =
    "# HELP outbox_entries Entries.\n"
    "# TYPE outbox_entries gauge\n"
    "outbox_entries{status=\"pending\"} 12\n"
    "outbox_entries{status=\"error\"} 2\n"
    "outbox_oldest_nonterminal_age_seconds 185.5\n"
    "outbox_build_info{version=\"0.1.0\",x=\"a\\\"},b\"} 1\n"
    "outbox_target_circuits{state=\"open\"} 2\n"
    "outbox_target_circuits{state=\"half_open\"} 1\n"
    "outbox_process_restarts_total{role=\"api\",reason=\"exit\"} 1\n"
    "outbox_process_restarts_total{role=\"worker\",reason=\"exit\"} 2\n"
    "broken{ 1\nbroken\n\nlast 1e3";

static void samples_are_read_one_by_one(void **state)
{
    static const char *const names[] = {"outbox_entries",
                                        "outbox_entries",
                                        "outbox_oldest_nonterminal_age_seconds",
                                        "outbox_build_info",
                                        "outbox_target_circuits",
                                        "outbox_target_circuits",
                                        "outbox_process_restarts_total",
                                        "outbox_process_restarts_total",
                                        "last"};
    struct span text = span_of(metrics);
    struct metrics_sample sample;
    size_t count = 0;

    (void)state;
    while (metrics_text_next(&text, &sample)) {
        assert_true(count < sizeof(names) / sizeof(names[0]));
        assert_true(span_equal(sample.name, span_of(names[count])));
        if (count == 3) {
            assert_true(span_equal(metrics_label(&sample, "version"), span_of("0.1.0")));
            assert_true(span_equal(metrics_label(&sample, "x"), span_of("a\\\"},b")));
            assert_int_equal(metrics_label(&sample, "y").len, 0);
        }
        count++;
    }
    assert_int_equal(count, sizeof(names) / sizeof(names[0]));
    assert_true(sample.value > 999 && sample.value < 1001);
}

/* ---- status ---- */

static json_t *make(const char *ready, const char *with_metrics)
{
    json_t *root = json_loads(ready, JSON_DECODE_INT_AS_REAL, NULL);
    json_t *result = status_make(root, span_of(with_metrics));

    json_decref(root);
    return result;
}

static void a_state_holds_what_is_known(void **state)
{
    json_t *known = make("{\"status\":\"ready\",\"durability\":\"fsync\",\"store\":true,"
                         "\"processes\":[{\"role\":\"api\",\"slot\":1,\"state\":\"ready\"}]}",
                         metrics);
    char *text = json_dumps(known, JSON_COMPACT);

    (void)state;
    assert_string_equal(
        text,
        "{\"ready\":true,\"oldestOpenAge\":185.5,\"version\":\"0.1.0\","
        "\"circuits\":{\"open\":2,\"half_open\":1},"
        "\"durability\":\"fsync\",\"store\":true,\"entries\":{\"pending\":12,\"error\":2},"
        "\"processes\":[{\"role\":\"api\",\"slot\":1.0,\"state\":\"ready\"}],\"restarts\":3}");
    free(text);
    json_decref(known);
}

static void assert_screen(json_t *known, const char *expected)
{
    const struct answer_view view = {0};
    struct buf out;

    buf_init(&out, 10000);
    status_print(known, "http://h", &view, &out);
    assert_string_equal(out.bytes, expected);
    buf_done(&out);
    json_decref(known);
}

static void a_state_is_one_screen(void **state)
{
    (void)state;
    assert_screen(
        make("{\"status\":\"ready\",\"durability\":\"fsync\",\"store\":true,"
             "\"processes\":[{\"role\":\"api\",\"slot\":1,\"state\":\"ready\"}]}",
             metrics),
        "outboxd 0.1.0 at http://h: ready\n"
        "store: reachable; a 202 is worth: fsync\n"
        "entries: pending 12  error 2  oldest 3m05s\n"
        "targets that do not answer: 3, asked again later (see the log)\n"
        "\n"
        "ROLE  SLOT  STATE\n"
        "api      1  ready\n"
        "restarts of processes since the start: 3\n"
        "\n"
        "Failed entries wait for you: `outboxctl workspaces` tells where, `outboxctl list "
        "WORKSPACE --status error` which.\n");
    assert_screen(make("{\"status\":\"degraded\",\"degraded\":[\"no worker serves\"],"
                       "\"durability\":\"fsync\",\"store\":true,"
                       "\"processes\":[{\"role\":\"worker\",\"slot\":4,\"state\":\"waiting\","
                       "\"deathsInARow\":3,\"lastDeath\":\"signal\",\"nextStartIn\":2.5}]}",
                       ""),
                  "outboxd at http://h: ready\n"
                  "degraded: no worker serves\n"
                  "store: reachable; a 202 is worth: fsync\n"
                  "entries: not known yet\n"
                  "\n"
                  "ROLE    SLOT  STATE\n"
                  "worker     4  waiting, died 3x (signal), next start in 2.5s\n");
    assert_screen(make("{\"status\":503,\"detail\":\"the store is away\",\"durability\":\"fsync\","
                       "\"store\":false,\"processes\":[]}",
                       ""),
                  "outboxd at http://h: not ready, the store is away\n"
                  "store: away; a 202 is worth: fsync\n"
                  "entries: not known yet\n"
                  "\n"
                  "ROLE  SLOT  STATE\n");
}

/* ---- send ---- */

static void only_what_may_change_is_tried_again(void **state)
{
    static const struct {
        long status;
        enum send_trouble trouble;
    } rows[] = {
        {202, SEND_NONE},        {200, SEND_NONE},        {429, SEND_FULL},
        {503, SEND_UNAVAILABLE}, {500, SEND_UNAVAILABLE}, {502, SEND_UNAVAILABLE},
        {408, SEND_UNAVAILABLE}, {400, SEND_REFUSED},     {401, SEND_REFUSED},
        {404, SEND_REFUSED},     {413, SEND_REFUSED},     {422, SEND_REFUSED},
        {301, SEND_REFUSED},     {204, SEND_REFUSED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(send_judge(rows[i].status), rows[i].trouble);
    }
}

static void waits_double_and_are_no_shorter_than_the_server_asks(void **state)
{
    (void)state;
    assert_int_equal(send_wait_ms(0, -1), 200);
    assert_int_equal(send_wait_ms(1, -1), 400);
    assert_int_equal(send_wait_ms(2, -1), 800);
    assert_int_equal(send_wait_ms(30, -1), 5000);
    assert_int_equal(send_wait_ms(UINT32_MAX, -1), 5000);
    assert_int_equal(send_wait_ms(0, 3000), 3000);
    assert_int_equal(send_wait_ms(30, 3000), 5000);
}

static void the_outcome_says_which_answer_it_was(void **state)
{
    json_t *accepted = json_pack("{s:s, s:s}", "id", "ob_1", "status", "pending");
    json_t *before =
        json_pack("{s:s, s:s, s:s}", "id", "ob_1", "status", "duplicate", "entryStatus", "sent");
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    send_write_outcome(202, accepted, "m1", false, &out);
    send_write_outcome(200, before, "m1", false, &out);
    assert_string_equal(out.bytes, "ob_1  accepted (202)  clientMessageID m1\n"
                                   "ob_1  accepted before (200), now sent  clientMessageID m1\n");
    buf_done(&out);
    json_decref(accepted);
    json_decref(before);
}

/* ---- options ---- */

static enum options_result read_line(struct options *ret, const char *const words[])
{
    static char *line[16]; /* what is read points into it */
    int count = 0;

    for (; words[count]; count++) {
        line[count] = (char *)(uintptr_t)words[count];
    }
    line[count] = NULL;
    optind = 0; /* getopt begins anew */
    return options_read(count, line, ret);
}

static void options_stand_before_and_behind_the_command(void **state)
{
    struct options options;

    (void)state;
    assert_int_equal(
        read_line(&options, (const char *const[]){"outboxctl", "-j", "list", "w", "--limit", "7",
                                                  "s", "--status=error,parked", NULL}),
        OPTIONS_RUN);
    assert_int_equal(options.command->id, COMMAND_LIST);
    assert_true(option_is_set(&options, OPTION_JSON));
    assert_false(option_is_set(&options, OPTION_QUIET));
    assert_int_equal(option_count(&options, OPTION_LIMIT, 1), 7);
    assert_string_equal(option_text(&options, OPTION_STATUS), "error,parked");
    assert_string_equal(options_argument(&options, 1), "s");
    assert_null(options_argument(&options, 2));
    assert_int_equal(read_line(&options, (const char *const[]){"outboxctl", "events", NULL}),
                     OPTIONS_RUN);
    assert_int_equal(options.command->id, COMMAND_TAIL);
    assert_int_equal(option_ms(&options, OPTION_TIMEOUT, 5), 5);
}

static void a_wrong_line_is_refused(void **state)
{
    static const char *const lines[][6] = {
        {"outboxctl"},
        {"outboxctl", "no-such-command"},
        {"outboxctl", "list"},
        {"outboxctl", "list", "w", "s", "x"},
        {"outboxctl", "list", "w", "--once"},
        {"outboxctl", "list", "w", "--status", "errors"},
        {"outboxctl", "list", "w", "--status", ""},
        {"outboxctl", "list", "w", "--limit", "0"},
        {"outboxctl", "list", "w", "--limit", "9x"},
        {"outboxctl", "list", "w", "--no-such-option"},
        {"outboxctl", "list", "w", "--limit"},
        {"outboxctl", "--color", "blue", "status"},
        {"outboxctl", "send", "w", "s", "--timeout=soon"},
        {"outboxctl", "--help=woman"},
    };
    struct options options;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(read_line(&options, lines[i]), OPTIONS_USAGE);
    }
}

static void durations_are_seconds_unless_they_have_a_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } rows[] = {
        {"0", 0},        {"2", 2000},  {"0.05", 50}, {"500ms", 500}, {"3s", 3000},
        {"10m", 600000}, {"-1", -1},   {"", -1},     {"nan", -1},    {"inf", -1},
        {"3 s", -1},     {"1e99", -1}, {"soon", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ms = -1;

        (void)options_parse_duration(rows[i].text, &ms);
        assert_int_equal(ms, rows[i].ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read_one_by_one),
        cmocka_unit_test(a_state_holds_what_is_known),
        cmocka_unit_test(a_state_is_one_screen),
        cmocka_unit_test(only_what_may_change_is_tried_again),
        cmocka_unit_test(waits_double_and_are_no_shorter_than_the_server_asks),
        cmocka_unit_test(the_outcome_says_which_answer_it_was),
        cmocka_unit_test(options_stand_before_and_behind_the_command),
        cmocka_unit_test(a_wrong_line_is_refused),
        cmocka_unit_test(durations_are_seconds_unless_they_have_a_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
