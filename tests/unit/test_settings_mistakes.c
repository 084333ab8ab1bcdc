/* Each mistake is told with its line, key path and reason, and all of them at once. The expected
 * lines are written out. */
#include "tests/unit/settings_fixture.h"

#define SECRET        "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define THREE_SECRETS SECRET ", " SECRET ", " SECRET
#define NINE_SECRETS  THREE_SECRETS ", " THREE_SECRETS ", " THREE_SECRETS

static void each_mistake_has_its_line(void **state)
{
    static const struct {
        const char *text, *line;
    } rows[] = {
        /* keys */
        {"delivry_timeout: 3s",
         "t:1: delivry_timeout: unknown key; did you mean delivery_timeout?"},
        {"a: 1\nstore:\n  urll: x", "t:3: store.urll: unknown key; did you mean store.url?"},
        {"xyzzy: 1", "t:1: xyzzy: unknown key\n"},
        {"kind: []", "t:1: kind: unknown key; did you mean kinds?"},
        {"level: info", "t:1: level: unknown key here; did you mean log.level?"},
        {"store.url: x", "t:1: store.url: a dot is no nesting"},
        {"max_attempts: 5\n\nmax_attempts: 6",
         "t:3: max_attempts: stands here again, first on line 1"},
        {"store: {url: 'unix:///a', url: 'unix:///b'}", "t:1: store.url: stands here again"},
        {"log: {}\nlog: {}", "t:2: log: stands here again, first on line 1"},
        {"? [a]\n: b", "t:1: "},
        {"? {a: b}\n: c", "a key must be a single word"},
        {"\"a\\0b\": 1", "unknown key"},
        /* types */
        {"- a", "t:1: must be a mapping"},
        {"hello", "t:1: must be a mapping"},
        {"log: 5", "t:1: log: must be a mapping"},
        {"max_attempts: [1]", "t:1: max_attempts: must be a single value here"},
        {"max_attempts: {a: 1}", "t:1: max_attempts: must be a single value here"},
        {"max_attempts:", "t:1: max_attempts: has no value"},
        {"token_file: ~", "t:1: token_file: has no value"},
        {"state_dir: ''", "t:1: state_dir: must not be empty"},
        {"state_dir: \"a\\0b\"", "t:1: state_dir: holds a NUL character"},
        {"state_dir: \"a\\nb\"", "holds a control character"},
        {"listen: [[a]]", "t:1: listen: must be a single value here"},
        {"listen: [a, '']", "t:1: listen: element 2 is empty"},
        {"listen: 'a,,b'", "t:1: listen: element 2 is empty"},
        /* numbers */
        {"max_attempts: 5.0", "t:1: max_attempts: '5.0' is not a whole number"},
        {"max_attempts: -1", "t:1: max_attempts: '-1' is not a whole number"},
        {"max_attempts: 0", "t:1: max_attempts: '0' is not between 1 and 1000"},
        {"max_attempts: 4294967301", "is not between 1 and 1000"},
        {"max_attempts: 99999999999999999999", "is not between 1 and 1000"},
        {"watchdog: 10", "t:1: watchdog: '10' is not a duration (use 250ms, 30s, 10m, 24h)"},
        {"watchdog: 999ms", "t:1: watchdog: '999ms' is not between 1s and 10m"},
        {"watchdog: 99999999999999999999s", "is not between 1s and 10m"},
        {"max_text_bytes: 1 MB", "is not a size (use 512, 100KB, 64KiB, 1MiB)"},
        {"max_text_bytes: 65MB", "is not between 1 and 64MB"},
        /* words */
        {"jitter: ful", "t:1: jitter: 'ful' is none of none, full; did you mean full?"},
        {"log: {level: loud}", "t:1: log.level: 'loud' is none of error, warn, info, debug\n"},
        {"durability: disk", "'disk' is none of fsync, everysec, memory, {replicas: n}"},
        {"durability: {replica: 3}", "is none of fsync"},
        {"durability: {replicas: 0}", "'0' is not a number of replicas (1 to 100)"},
        {"durability: {replicas: 1, x: 2}", "is none of fsync"},
        {"durability: {}", "is none of fsync"},
        {"durability: {replicas: [1]}", "must be a single value here"},
        /* single values */
        {"listen: 127.0.0.1:0", "has no port from 1 to 65535"},
        {"listen: 127.0.0.1:65536", "has no port from 1 to 65535"},
        {"listen: 127.0.0.1", "is not ADDRESS:PORT"},
        {"listen: ':80'", "is not ADDRESS:PORT"},
        {"listen: '::1:80'", "must stand in brackets"},
        {"listen: '[::x]:80'", "has no IPv6 address"},
        {"listen: localhost:80", "not a numeric one"},
        {"listen: unix:a", "must begin with /"},
        {"listen: []", "t:1: listen: is empty"},
        {"listen: ['127.0.0.1:1', '127.0.0.1:1']", "names 127.0.0.1:1 twice"},
        {"node: a.b", "t:1: node: 'a.b' is not 1 to 64"},
        {"store: {url: 'http://x'}", "t:1: store.url: does not begin with unix://"},
        {"store: {url: 'unix://'}", "names no host or path"},
        {"store: {url: 'redis://u:***@h'}", "mask that --print-config writes"},
        {"target: {url: 'ftp://x'}", "does not begin with http:// or https://"},
        {"target: {url: 'http://'}", "names no host"},
        {"target: {url: 'http://u:p@h'}", "holds credentials"},
        {"target: {url: 'http://h?x'}", "no ? and no #"},
        {"target: {username: 'a:b'}", "holds a colon"},
        {"target: {url: 'http://{session}.agents'}",
         "t:1: target.url: has a { that does not begin {workspace}"},
        {"target: {secrets: [whsec_x]}",
         "t:1: target.secrets: holds what is no secret (whsec_ and base64 of 24 to 64 bytes)"},
        {"target: {secrets: '***'}", "t:1: target.secrets: is the mask that --print-config writes"},
        {"target: {secrets_file: /nonexistent}",
         "t:1: target.secrets_file: cannot read /nonexistent"},
        {"target: {secrets: [" NINE_SECRETS "]}",
         "t:1: target.secrets: has 9 secrets, more than 8"},
        {"targets: {circuit_failures: 256}", "t:1: targets.circuit_failures: "},
        {"targets: {max_circuit_delay: 61s}", "t:1: targets.max_circuit_delay: "},
        {"targets: {circuit_delay: 20s, max_circuit_delay: 10s}",
         "t:1: targets.max_circuit_delay: 10s is less than targets.circuit_delay (20s)"},
        {"targets: {allow: 10.0.0.0/33}",
         "t:1: targets.allow: '10.0.0.0/33' has no number of bits"},
        {"targets: {deny: [x]}", "'x' is no address range"},
        {"targets: {deny: ['fe80::/129']}", "from 0 to 128"},
        {"targets: {deny: ['10.0.0.0/']}", "from 0 to 32"},
        /* rules over several */
        {"lock_ttl: 10m",
         "t:1: lock_ttl: 10m is not greater than the longest timeout (10m of delivery_timeout)"},
        {"lock_ttl: 11m\nkinds: [{name: slow, url: /, timeout: 11m}]",
         "t:1: lock_ttl: 11m is not greater than the longest timeout (11m of slow)"},
        {"delivery_timeout: 1s\nverify_timeout: 9m\nlock_ttl: 5m",
         "t:3: lock_ttl: 5m is not greater than the longest timeout (9m of verify_timeout)"},
        {"max_backoff: 1s", "t:1: max_backoff: 1s is less than retry_backoff (10s)"},
        {"retry_backoff: 5m", "t:1: max_backoff: 2m is less than retry_backoff (5m)"},
        {"max_verify_backoff: 1s", "is less than verify_backoff (3s)"},
        {"tls: {certificate: /a}", "t:1: tls.certificate: is given without tls.key"},
        {"tls: {key: /a}", "t:1: tls.key: is given without tls.certificate"},
        {"store: {password_file: /a}", "t:1: store.password_file: is given without store.url"},
        {"durability: {replicas: 1}",
         "t:1: durability: replicas are wanted, but the embedded store has none"},
        /* kinds */
        {"kinds: 5", "t:1: kinds: must be a list"},
        {"kinds: {a: b}", "t:1: kinds: must be a list"},
        {"kinds:\n- 5", "t:2: kinds[0]: must be a mapping"},
        {"kinds:\n- url: /", "t:2: kinds[0].name: is missing"},
        {"kinds: [{name: a b, url: /}]", "kinds[0].name: 'a b' is not 1 to 64"},
        {"kinds: [{name: a}]", "kinds[0].url: is missing (executor http needs one)"},
        {"kinds: [{name: a, url: 'http://u:p@h/'}]",
         "kinds[0].url: 'http://u:p@h/' holds credentials"},
        {"kinds: [{name: a, url: 'https://{payload.user}@h'}]", "holds credentials"},
        {"kinds: [{name: a, url: b}]", "kinds[0].url: 'b' does not begin with /"},
        {"kinds: [{name: a, url: '/{x}'}]", "has a place '{x}' that is none of"},
        {"kinds: [{name: a, url: '/{payload.}'}]", "has a place '{payload.}' that is none of"},
        {"kinds: [{name: a, url: '/{id'}]", "a brace without its partner"},
        {"kinds: [{name: a, url: '/}'}]", "a brace without its partner"},
        {"kinds: [{name: a, url: /, lane: '{id}'}]", "kinds[0].lane: '{id}' has a place '{id}'"},
        {"kinds: [{name: a, executor: opencode, idempotent: true}]",
         "kinds[0].idempotent: goes with executor http only"},
        {"kinds: [{name: a, executor: ledger, verify: {url: /x, delivered: 200}}]",
         "kinds[0].verify.url: goes with executor http only"},
        {"kinds: [{name: a, url: /, executor: htp}]", "did you mean http?"},
        {"kinds: [{name: a, url: /, idempotent: yes}]", "'yes' is neither true nor false"},
        {"kinds: [{name: a, url: /, method: post}]", "is no HTTP method"},
        {"kinds: [{name: a, url: /, metod: POST}]",
         "t:1: kinds[0].metod: unknown key; did you mean method?"},
        {"kinds:\n- name: a\n  url: /\n  timeout: 10x",
         "t:4: kinds[0].timeout: '10x' is not a duration"},
        {"kinds:\n- name: a\n  url: /\n- {name: a, url: /}",
         "t:4: kinds[1].name: a is declared twice, first in kinds[0]"},
        {"kinds: [{name: prompt}, {name: prompt}]", "kinds[1].name: prompt is declared twice"},
        {"kinds: [{name: a, url: /, follow_up_edit: b.edit}, {name: b.edi, url: /}]",
         "kinds[0].follow_up_edit: 'b.edit' is no kind of this file; did you mean b.edi?"},
        {"kinds: [{name: a, url: /, follow_up_remove: zzz}]", "'zzz' is no kind of this file\n"},
        {"kinds: [{name: a, url: /, max_backoff: 1s}]",
         "kinds[0].max_backoff: 1s is less than retry_backoff (10s)"},
        {"kinds: [{name: a, url: /, verify: {url: /v}}]", "verify.delivered: is missing"},
        {"kinds: [{name: a, url: /, verify: {delivered: 200}}]", "verify.url: is missing"},
        {"kinds: [{name: a, url: /, verify: {url: /v, delivered: [200, 404], absent: 404}}]",
         "verify.absent: 404 stands in verify.delivered too"},
        {"kinds: [{name: a, url: /, verify: {url: /v, delivered: 99}}]",
         "'99' is not an HTTP status"},
        {"kinds: [{name: a, url: /, verify: {url: /v, delivered: [200, 200]}}]",
         "'200' stands twice"},
        {"kinds: [{name: a, url: /, verify: /v}]", "kinds[0].verify: must be a mapping"},
        /* YAML beyond what a configuration needs */
        {"node: &x a", "t:1: anchors (&name) are not supported"},
        {"a: &x b\nnode: *x", "t:2: aliases (*name) are not supported"},
        {"store:\n  <<: {url: x}", "t:2: merge keys (<<) are not supported"},
        {"node: !!str a", "t:1: tags (!name) are not supported"},
        {"node: a\n---\nnode: b", "t:2: a second document begins here"},
        {"node: [a", "not valid YAML"},
        {"target: {url: http://a/{workspace}/b, username: u}",
         "(within { } a value with a brace or a comma needs quotes)"},
        {"node: a\n\tb: c", "not valid YAML"},
        {"a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}}}}}}}}}",
         "nested too deeply"},
        {"node: \xff\xfe", "t:1: not valid UTF-8 (byte 0xff)"},
        {"# caf\xc3\xa9\n\nnode: \xe9", "t:3: not valid UTF-8 (byte 0xe9)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_mistake(rows[i].text, rows[i].line);
    }
    expect_mistake_bytes("node: a\0b", 9, "t:1: holds a NUL byte");
}

static void all_mistakes_are_told_in_one_pass(void **state)
{
    static const char text[] = "max_attempts: x\nfoo: 1\nwatchdog: 1\ntls: {key: /k}\n"
                               "kinds:\n- {name: a}\n- {url: /}\njitter: y\n";
    char *lines = read_bad_bytes(text, sizeof(text) - 1);
    size_t count = 0;

    (void)state;
    for (const char *p = lines; (p = strchr(p, '\n')) != NULL; p++) {
        count++;
    }
    assert_int_equal(count, 7);
    free(lines);
}

static void many_mistakes_are_counted_but_not_all_shown(void **state)
{
    struct settings_report report;
    struct settings *settings = NULL;
    struct buf text;

    (void)state;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 400; i++) {
        (void)buf_appendf(&text, "unknown_key_number_%d: 1\n", i);
    }
    settings_report_init(&report);
    assert_int_equal(settings_parse("t", text.bytes, text.len, &settings, &report), -EINVAL);
    assert_int_equal(report.error_count, 400);
    assert_true(report.errors.len > 0 && report.errors.len < 20000);
    settings_report_done(&report);
    for (int i = 400; i < 2000; i++) {
        (void)buf_appendf(&text, "unknown_key_number_%d: 1\n", i);
    }
    expect_mistake_bytes(text.bytes, text.len, "has too many keys");
    buf_done(&text);
}

static void too_many_kinds_are_refused(void **state)
{
    struct buf text;

    (void)state;
    buf_init(&text, 1 << 20);
    (void)buf_append_str(&text, "kinds:\n");
    for (int i = 0; i < 31; i++) {
        (void)buf_appendf(&text, "- {name: k%d, url: /}\n", i);
    }
    struct settings *settings = read_good_bytes(text.bytes, text.len);
    assert_int_equal(settings->kind_count, KIND_COUNT_MAX);
    settings_destroy(&settings);
    (void)buf_append_str(&text, "- {name: k31, url: /}\n");
    expect_mistake_bytes(text.bytes, text.len, "t:2: kinds: has 32 kinds, more than 31");
    buf_done(&text);
}

static void a_huge_file_is_refused_at_once(void **state)
{
    size_t len = (1u << 20) + 1;
    char *bytes = malloc(len);

    (void)state;
    assert_non_null(bytes);
    memset(bytes, '[', len);
    expect_mistake_bytes(bytes, len, "t: is larger than 1 MiB");
    expect_mistake_bytes(bytes, len - 1, "nested too deeply");
    free(bytes);
}

/* Every prefix and every one-byte change of a rich file: an answer, no crash, no leak. */
static void no_damaged_file_does_harm(void **state)
{
    static const char text[] = "listen: [127.0.0.1:1, 'unix:/a']\ndurability: {replicas: 2}\n"
                               "store: {url: \"valkey://u:p@h:1\"}\nwatchdog: 10s\n"
                               "kinds:\n- name: a\n  url: /{id}\n"
                               "  verify: {url: /v, delivered: 200, absent: [404]}\n";
    static const char bytes[] = "\0\n\t :-[]{}&*!|>'\"%@`#,?\\\xff\xc3~x0<";

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++) {
        for (size_t j = 0; j < sizeof(bytes); j++) {
            struct settings_report report;
            struct settings *settings = NULL;
            char damaged[sizeof(text)];

            memcpy(damaged, text, sizeof(text));
            damaged[i] = bytes[j];
            settings_report_init(&report);
            int err =
                settings_parse("t", damaged, j == 0 ? i : sizeof(text) - 1, &settings, &report);
            assert_true(err == 0 || err == -EINVAL);
            assert_int_equal(err == 0, settings != NULL);
            assert_int_equal(err == 0, report.error_count == 0);
            settings_destroy(&settings);
            settings_report_done(&report);
        }
    }
}

static void what_may_surprise_is_a_warning(void **state)
{
    static const struct {
        const char *text, *line;
    } rows[] = {
        {"target: {password: x}", "t:1: target.password: stands in the configuration itself"},
        {"target: {password: x, password_file: /nonexistent}",
         "t:1: target.password_file: not read"},
        {"target: {secrets: [" SECRET "]}",
         "t:1: target.secrets: stand in the configuration itself"},
        {"target: {secrets: [" SECRET "], secrets_file: /nonexistent}",
         "t:1: target.secrets_file: not read"},
        {"store: {url: 'redis://:x@h', password_file: /nonexistent}",
         "t:1: store.password_file: not read"},
        {"kinds: [{name: a, url: /, idempotent: true, verify: {url: /v, delivered: 200}}]",
         "kinds[0].verify.url: is not used"},
        {"kinds: [{name: a, url: /, idempotent: true, on_ambiguous: retry}]",
         "kinds[0].on_ambiguous: is not used"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct settings_report report;
        struct settings *settings = NULL;

        settings_report_init(&report);
        assert_int_equal(
            settings_parse("t", rows[i].text, strlen(rows[i].text), &settings, &report), 0);
        assert_non_null(report.warnings.bytes);
        assert_non_null(strstr(report.warnings.bytes, rows[i].line));
        settings_destroy(&settings);
        settings_report_done(&report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_has_its_line),
        cmocka_unit_test(all_mistakes_are_told_in_one_pass),
        cmocka_unit_test(many_mistakes_are_counted_but_not_all_shown),
        cmocka_unit_test(too_many_kinds_are_refused),
        cmocka_unit_test(a_huge_file_is_refused_at_once),
        cmocka_unit_test(no_damaged_file_does_harm),
        cmocka_unit_test(what_may_surprise_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
