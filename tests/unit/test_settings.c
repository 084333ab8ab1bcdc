/* The configuration as it is meant to be: defaults, every type of value, kinds, secrets from files.
 */
#include "tests/unit/settings_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

static void an_empty_file_is_all_defaults(void **state)
{
    static const char *const texts[] = {
        "",         "\n",          "# only a comment\n",   "---\n",       "{}",
        "kinds:\n", "kinds: []\n", "store:\n  # url: x\n", "\xef\xbb\xbf"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct settings *s = read_good(texts[i]);

        assert_string_equal(s->listen.items[0], "127.0.0.1:7780");
        assert_int_equal(s->listen.count, 1);
        assert_string_equal(s->state_dir, "/var/lib/outboxd");
        assert_null(s->store_url);
        assert_int_equal(s->durability.level, DURABILITY_FSYNC);
        assert_int_equal(s->targets_deny.count, 8);
        assert_int_equal(s->targets_allow.count, 0);
        assert_int_equal(s->max_attempts, 5);
        assert_int_equal(s->session_cap, 25);
        assert_int_equal(s->max_text_bytes, 100000);
        assert_int_equal(s->jitter, JITTER_FULL);
        assert_int_equal(settings_lock_ttl_ms(s), 720000);
        assert_int_equal(settings_drain_timeout_ms(s), 630000);
        assert_in_range(settings_worker_count(s), 1, 28);
        assert_int_equal(s->kind_count, 1);
        settings_destroy(&s);
        assert_null(s);
    }
}

static void without_a_file_it_runs(void **state)
{
    struct settings_report report;
    struct settings *s = NULL;

    (void)state;
    settings_report_init(&report);
    assert_int_equal(settings_load(NULL, &s, &report), 0);
    assert_int_equal(report.error_count, 0);
    settings_destroy(&s);
    assert_int_equal(settings_load("/nonexistent/outboxd.yaml", &s, &report), -ENOENT);
    assert_non_null(strstr(report.errors.bytes, "/nonexistent/outboxd.yaml: cannot be read: "));
    assert_null(s);
    settings_report_done(&report);
}

static void the_built_in_prompt_is_always_there(void **state)
{
    struct settings *s = read_good("kinds: [{name: a, url: /a}]");
    const struct kind *prompt = settings_kind(s, "prompt", 6);

    (void)state;
    assert_non_null(prompt);
    assert_int_equal(settings_kind_index(s, prompt), 0);
    assert_int_equal(prompt->executor, EXECUTOR_OPENCODE);
    assert_true(kind_can_look_up(prompt));
    assert_int_equal(prompt->verify_settle_ms, 10000);
    assert_int_equal(prompt->ordering, ORDERING_FIRST_DUE);
    assert_false(prompt->is_idempotent);
    assert_int_equal(prompt->on_ambiguous, ON_AMBIGUOUS_ERROR);
    const struct kind *a = settings_kind(s, "a", 1);
    assert_int_equal(settings_kind_index(s, a), 1);
    assert_int_equal(a->ordering, ORDERING_STRICT);
    assert_string_equal(a->content_type, "application/json");
    assert_null(settings_kind(s, "b", 1));
    assert_null(settings_kind(s, "promp", 5));
    settings_destroy(&s);
}

static void a_declaration_replaces_the_built_in_prompt(void **state)
{
    struct settings *s = read_good("kinds:\n"
                                   "- {name: a, url: /a}\n"
                                   "- {name: prompt, executor: opencode, ordering: strict}\n");
    const struct kind *prompt = settings_kind(s, "prompt", 6);

    (void)state;
    assert_int_equal(s->kind_count, 2);
    assert_int_equal(settings_kind_index(s, prompt), 1);
    assert_int_equal(prompt->executor, EXECUTOR_OPENCODE);
    assert_int_equal(prompt->ordering, ORDERING_STRICT);
    assert_int_equal(prompt->verify_settle_ms, 10000);
    settings_destroy(&s);

    s = read_good("kinds: [{name: prompt, url: /in, idempotent: true}]");
    assert_int_equal(s->kinds[0].executor, EXECUTOR_HTTP);
    assert_int_equal(s->kinds[0].ordering, ORDERING_FIRST_DUE);
    settings_destroy(&s);

    s = read_good("kinds: [{name: prompt, executor: http, idempotent: true}]");
    assert_string_equal(s->kinds[0].url, "/");
    assert_true(s->kinds[0].is_idempotent);
    settings_destroy(&s);
}

static void kinds_take_over_the_limits_they_leave_out(void **state)
{
    struct settings *s = read_good("kinds:\n"
                                   "- {name: a, url: /a, timeout: 20m, max_attempts: 2}\n"
                                   "- {name: b, url: /b}\n"
                                   "- {name: c, executor: opencode}\n"
                                   "delivery_timeout: 1m\nverify_settle: 0\nretry_for: 0\n"
                                   "max_transient_failures: 7\n");

    (void)state;
    assert_int_equal(s->kinds[1].timeout_ms, 1200000);
    assert_int_equal(s->kinds[1].max_attempts, 2);
    assert_int_equal(s->kinds[2].timeout_ms, 60000);
    assert_int_equal(s->kinds[2].max_attempts, 5);
    assert_int_equal(s->kinds[2].max_transient_failures, 7);
    assert_int_equal(s->kinds[2].retry_for_ms, 0);
    assert_int_equal(s->kinds[3].verify_settle_ms, 0); /* said so: not opencode's own default */
    assert_int_equal(settings_longest_timeout_ms(s), 1200000);
    assert_int_equal(settings_lock_ttl_ms(s), 1320000);
    settings_destroy(&s);
}

static void a_look_up_takes_a_status_or_a_list(void **state)
{
    struct settings *s =
        read_good("kinds:\n"
                  "- name: pay\n"
                  "  url: /pay/{payload.a.b}/{id}\n"
                  "  verify: {url: '/pay/{id}', delivered: 200, absent: [404, 410]}\n");
    const struct verify_lookup *v = &s->kinds[1].verify;

    (void)state;
    assert_string_equal(v->url, "/pay/{id}");
    assert_string_equal(v->method, "GET");
    assert_int_equal(v->delivered.count, 1);
    assert_int_equal(v->delivered.codes[0], 200);
    assert_int_equal(v->absent.count, 2);
    assert_int_equal(v->absent.codes[1], 410);
    settings_destroy(&s);
}

static void values_are_read_in_every_notation(void **state)
{
    struct settings *s = read_good("listen: 127.0.0.1:80, unix:/run/a.sock\n"
                                   "targets:\n  allow:\n  - 10.0.0.0/8\n  - fd00::/8\n"
                                   "  deny: []\n"
                                   "durability: {replicas: 2}\n"
                                   "store: {url: 'valkey://h:1/2'}\n"
                                   "max_attempts: '7'\n"
                                   "state_dir: ~/outbox\n"
                                   "log:\n  level: debug\n  format: json\n"
                                   "jitter: \"none\"\n");

    (void)state;
    assert_int_equal(s->listen.count, 2);
    assert_string_equal(s->listen.items[1], "unix:/run/a.sock");
    assert_int_equal(s->targets_allow.count, 2);
    assert_int_equal(s->targets_deny.count, 0);
    assert_int_equal(s->durability.level, DURABILITY_REPLICAS);
    assert_int_equal(s->durability.replicas, 2);
    assert_int_equal(s->max_attempts, 7);
    assert_string_equal(s->state_dir, "~/outbox"); /* a path, not a shell word */
    assert_int_equal(s->log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(s->log_format, LOG_FORMAT_JSON);
    assert_int_equal(s->jitter, JITTER_NONE);
    settings_destroy(&s);
}

static void listening_beyond_loopback_needs_tokens(void **state)
{
    static const char *const local[] = {"127.0.0.1:1", "127.9.9.9:1", "'[::1]:1'", "unix:/x"};
    static const char *const open[] = {"0.0.0.0:1", "'[::]:1'", "10.0.0.1:1",
                                       "'127.0.0.1:1, 10.0.0.1:2'"};
    char text[128];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof(text), "listen: %s\n", local[i]);
        struct settings *s = read_good(text);
        settings_destroy(&s);
        (void)snprintf(text, sizeof(text), "listen: %s\n", open[i]);
        expect_mistake(text, "t:1: listen: other machines could call the API without a token");
        (void)snprintf(text, sizeof(text), "listen: %s\ntoken_file: /t\n", open[i]);
        s = read_good(text);
        settings_destroy(&s);
    }
}

static char secret_dir[32];

static void write_secret(const char *name, const char *content, size_t len)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/%s", secret_dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, len), len);
    close(fd);
}

static int make_secret_dir(void **state)
{
    (void)state;
    memcpy(secret_dir, "/tmp/outboxd-test.XXXXXX", 25);
    return mkdtemp(secret_dir) ? 0 : -1;
}

static int remove_secret_dir(void **state)
{
    char path[64];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/pw", secret_dir);
    (void)unlink(path);
    (void)unsetenv("CREDENTIALS_DIRECTORY");
    return rmdir(secret_dir);
}

static void passwords_come_from_files_and_credentials(void **state)
{
    char text[256];

    (void)state;
    write_secret("pw", "p@ss:w/rd \"\xc3\xa9\r\n", 15);
    (void)snprintf(text, sizeof(text),
                   "target: {url: 'http://h', password_file: %s/pw}\n"
                   "store: {url: 'valkey://u@h:1/2', password_file: %s/pw}\n",
                   secret_dir, secret_dir);
    struct settings *s = read_good(text);
    assert_string_equal(s->target_password, "p@ss:w/rd \"\xc3\xa9");
    assert_string_equal(s->store_url, "valkey://u:p%40ss%3Aw%2Frd%20%22%C3%A9@h:1/2");
    settings_destroy(&s);

    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", secret_dir, 1), 0);
    s = read_good("target: {password_file: pw}\nstore: {url: 'redis://h', password_file: pw}\n");
    assert_string_equal(s->target_password, "p@ss:w/rd \"\xc3\xa9");
    assert_string_equal(s->store_url, "redis://:p%40ss%3Aw%2Frd%20%22%C3%A9@h");
    settings_destroy(&s);
    expect_mistake("target: {password_file: ../pw2}",
                   "t:1: target.password_file: cannot read ../pw2");
    expect_mistake("target: {password_file: a/pw}", "holds no /");
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    expect_mistake("target: {password_file: pw}", "$CREDENTIALS_DIRECTORY is not set");
}

static void a_credential_that_only_the_service_gets_is_a_warning_for_who_only_looks(void **state)
{
    static const char text[] = "target: {url: 'http://h', password_file: pw}";
    struct settings_report report;
    struct settings *s = NULL;

    (void)state;
    settings_report_init(&report);
    report.is_look_only = true;
    assert_int_equal(settings_parse("t", text, strlen(text), &s, &report), 0);
    assert_non_null(strstr(report.warnings.bytes, "only the service gets it"));
    settings_report_done(&report);
    settings_destroy(&s);
}

static void signing_secrets_stand_in_a_file_a_line_each(void **state)
{
    static const char file[] = "# newest first\n\nwhsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"
                               "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\n";
    static const char bad[] = "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\nwhsec_sesame\n";
    char text[256];

    (void)state;
    write_secret("pw", file, sizeof(file) - 1);
    (void)snprintf(text, sizeof(text), "target: {secrets_file: %s/pw}\n", secret_dir);
    struct settings *s = read_good(text);
    assert_int_equal(s->target_secrets.count, 2);
    assert_string_equal(s->target_secrets.items[0], "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_string_equal(s->target_secrets.items[1], "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB");
    settings_destroy(&s);
    write_secret("pw", bad, sizeof(bad) - 1);
    expect_mistake(text, "t:1: target.secrets_file: its line 2 is no secret");
    expect_no_word(text, "sesame");
    expect_no_word("target: {secrets: [whsec_sesame]}", "sesame");
    write_secret("pw", "# none\n", 7);
    expect_mistake(text, "t:1: target.secrets_file: holds no secret");
}

static void bad_secrets_are_told_without_being_shown(void **state)
{
    static char large[2000];
    char text[128];

    (void)state;
    (void)snprintf(text, sizeof(text), "target: {password_file: %s/pw}\n", secret_dir);
    write_secret("pw", "\n", 1);
    expect_mistake(text, "is empty");
    write_secret("pw", "a\0b", 3);
    expect_mistake(text, "no text");
    write_secret("pw", "a\xff", 2);
    expect_mistake(text, "no text");
    memset(large, 'x', sizeof(large));
    write_secret("pw", large, sizeof(large));
    expect_mistake(text, "not a password");
    expect_no_word("store: {url: 'ftp://u:sesame@h'}", "sesame");
    expect_no_word("target: {url: 'http://u:sesame@h'}", "sesame");
    expect_no_word("target: {password: '***'}", "'***'");
}

static void systemds_state_directory_is_the_default(void **state)
{
    (void)state;
    assert_int_equal(setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1), 0);
    struct settings *s = read_good("");
    assert_string_equal(s->state_dir, "/var/lib/a");
    settings_destroy(&s);
    s = read_good("state_dir: /x");
    assert_string_equal(s->state_dir, "/x");
    settings_destroy(&s);
    assert_int_equal(unsetenv("STATE_DIRECTORY"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_is_all_defaults),
        cmocka_unit_test(without_a_file_it_runs),
        cmocka_unit_test(the_built_in_prompt_is_always_there),
        cmocka_unit_test(a_declaration_replaces_the_built_in_prompt),
        cmocka_unit_test(kinds_take_over_the_limits_they_leave_out),
        cmocka_unit_test(a_look_up_takes_a_status_or_a_list),
        cmocka_unit_test(values_are_read_in_every_notation),
        cmocka_unit_test(listening_beyond_loopback_needs_tokens),
        cmocka_unit_test(passwords_come_from_files_and_credentials),
        cmocka_unit_test(a_credential_that_only_the_service_gets_is_a_warning_for_who_only_looks),
        cmocka_unit_test(signing_secrets_stand_in_a_file_a_line_each),
        cmocka_unit_test(bad_secrets_are_told_without_being_shown),
        cmocka_unit_test(systemds_state_directory_is_the_default),
    };
    return cmocka_run_group_tests(tests, make_secret_dir, remove_secret_dir);
}
