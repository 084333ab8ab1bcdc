/* What a running daemon takes over from a new configuration; places of kinds in the metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/kind_labels.h"
#include "common/base/settings.h"

static struct settings *parse(const char *yaml)
{
    struct settings_report report;
    struct settings *settings = NULL;

    settings_report_init(&report);
    if (settings_parse("test", yaml, strlen(yaml), &settings, &report) < 0) {
        fail_msg("%s", report.errors.bytes);
    }
    settings_report_done(&report);
    return settings;
}

static void what_needs_a_restart_keeps_its_running_value_and_is_named(void **state)
{
    struct settings *configured =
        parse("{state_dir: ./a, workers: 1, listen: ['127.0.0.1:1', '[::1]:1']}");
    struct settings *running =
        parse("{state_dir: /abs/a, store: {url: 'unix:///abs/a/sock'}, workers: 1, "
              "listen: ['127.0.0.1:1', '[::1]:1']}");
    struct settings *fresh = parse(
        "{state_dir: ./a, workers: 5, listen: '127.0.0.1:2', durability: memory, events_max: 500}");
    struct buf left;

    (void)state;
    buf_init(&left, 1000);
    assert_int_equal(settings_keep_running(fresh, configured, running, &left), 0);
    assert_string_equal(left.bytes, "listen, durability, events_max");
    assert_int_equal(fresh->workers, 5);
    assert_string_equal(fresh->state_dir, "/abs/a");
    assert_string_equal(fresh->store_url, "unix:///abs/a/sock");
    assert_int_equal(fresh->listen.count, 2);
    assert_string_equal(fresh->listen.items[1], "[::1]:1");
    assert_int_equal(fresh->durability.level, DURABILITY_FSYNC);
    assert_int_equal(fresh->events_max, configured->events_max);
    assert_null(fresh->pid_file);
    buf_done(&left);
    settings_destroy(&fresh);
    settings_destroy(&running);
    settings_destroy(&configured);
}

static void an_unchanged_configuration_names_nothing(void **state)
{
    struct settings *configured =
        parse("{durability: {replicas: 2}, store: {url: 'valkey://h:1/2'}}");
    struct settings *running = NULL, *fresh = NULL;
    struct buf left;

    (void)state;
    buf_init(&left, 1000);
    assert_int_equal(settings_copy(configured, &running), 0);
    assert_int_equal(settings_copy(configured, &fresh), 0);
    assert_int_equal(settings_keep_running(fresh, configured, running, &left), 0);
    assert_int_equal(left.len, 0);
    assert_int_equal(fresh->durability.replicas, 2);
    buf_done(&left);
    settings_destroy(&fresh);
    settings_destroy(&running);
    settings_destroy(&configured);
}

static void a_kind_keeps_its_place_whatever_comes_and_goes(void **state)
{
    struct settings *first = parse("kinds: [{name: a, url: /}, {name: b, url: /}]");
    struct settings *second = parse("kinds: [{name: c, url: /}, {name: b, url: /}]");
    struct kind_labels labels = {.count = 0}, read;
    char text[KIND_LABELS_TEXT_MAX];

    (void)state;
    kind_labels_add(&labels, first);
    kind_labels_add(&labels, second);
    kind_labels_print(&labels, text);
    assert_string_equal(text, "prompt,a,b,c");
    kind_labels_parse(&read, text);
    assert_int_equal(read.count, 4);
    assert_string_equal(read.names[3], "c");
    kind_labels_apply(&read, second);
    assert_int_equal(settings_kind(second, "b", 1)->place, 2);
    assert_int_equal(settings_kind(second, "c", 1)->place, 3);
    settings_destroy(&first);
    settings_destroy(&second);
}

static void kinds_beyond_the_places_are_other_and_bad_text_is_harmless(void **state)
{
    struct kind_labels labels;
    char text[200], long_name[100];

    (void)state;
    memset(text, 0, sizeof(text));
    for (size_t i = 0; i < 2 * 40; i += 2) {
        text[i] = (char)('0' + i / 2);
        text[i + 1] = ',';
    }
    kind_labels_parse(&labels, text);
    assert_int_equal(labels.count, KIND_COUNT_MAX);
    struct settings *settings = parse("kinds: [{name: a, url: /}]");
    kind_labels_add(&labels, settings);
    kind_labels_apply(&labels, settings);
    assert_int_equal(settings_kind(settings, "a", 1)->place, UINT32_MAX);
    settings_destroy(&settings);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    kind_labels_parse(&labels, long_name);
    assert_int_equal(labels.count, 0);
    kind_labels_parse(&labels, ",,a,");
    assert_int_equal(labels.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_needs_a_restart_keeps_its_running_value_and_is_named),
        cmocka_unit_test(an_unchanged_configuration_names_nothing),
        cmocka_unit_test(a_kind_keeps_its_place_whatever_comes_and_goes),
        cmocka_unit_test(kinds_beyond_the_places_are_other_and_bad_text_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
