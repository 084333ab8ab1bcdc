/* What is printed reads back to the same struct; secrets are hidden unless asked for; the sample
 * file names everything. */
#include "tests/unit/settings_fixture.h"

#include <fcntl.h>

#include "common/base/settings_private.h"

static char *print(const struct settings *settings, bool with_secrets)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    assert_int_equal(settings_print(settings, with_secrets, &out), 0);
    char *text = buf_steal(&out, NULL);
    assert_non_null(text);
    buf_done(&out);
    return text;
}

static void assert_same_texts(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a) {
        assert_string_equal(a, b);
    }
}

static void assert_same_field(const struct setting_row *row, const void *base_a, const void *base_b)
{
    const void *a = setting_const_field(row, base_a);
    const void *b = setting_const_field(row, base_b);

    switch (row->type) {
    case TYPE_DURATION:
        assert_memory_equal(a, b, sizeof(int64_t));
        return;
    case TYPE_SIZE:
        assert_memory_equal(a, b, sizeof(uint64_t));
        return;
    case TYPE_BOOL:
        assert_memory_equal(a, b, sizeof(bool));
        return;
    case TYPE_TEXT:
        assert_same_texts(*(char *const *)a, *(char *const *)b);
        return;
    case TYPE_TEXTS: {
        const struct text_list *list_a = a, *list_b = b;

        assert_int_equal(list_a->count, list_b->count);
        for (size_t i = 0; i < list_a->count; i++) {
            assert_string_equal(list_a->items[i], list_b->items[i]);
        }
        return;
    }
    case TYPE_STATUS_LIST: {
        const struct status_list *list_a = a, *list_b = b;

        assert_int_equal(list_a->count, list_b->count);
        assert_memory_equal(list_a->codes, list_b->codes, list_a->count * sizeof(uint16_t));
        return;
    }
    case TYPE_DURABILITY: {
        const struct durability *level_a = a, *level_b = b;

        assert_int_equal(level_a->level, level_b->level);
        assert_int_equal(level_a->replicas, level_b->replicas);
        return;
    }
    case TYPE_COUNT:
    case TYPE_LOG_LEVEL:
    case TYPE_LOG_FORMAT:
    case TYPE_JITTER:
    case TYPE_EXECUTOR:
    case TYPE_ORDERING:
    case TYPE_ON_AMBIGUOUS:
        assert_memory_equal(a, b, sizeof(int));
        return;
    }
}

static void assert_same(const struct settings *a, const struct settings *b)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        assert_same_field(&setting_rows[i], a, b);
    }
    assert_int_equal(a->kind_count, b->kind_count);
    for (size_t k = 0; k < a->kind_count; k++) {
        for (size_t i = 0; i < KIND_ROW_COUNT; i++) {
            assert_same_field(&kind_rows[i], &a->kinds[k], &b->kinds[k]);
        }
    }
}

static void assert_round_trip(const char *text)
{
    struct settings *settings = read_good(text);
    char *printed = print(settings, true);
    struct settings *back = read_good(printed);
    char *again = print(back, true);

    assert_same(settings, back);
    assert_string_equal(printed, again);
    free(printed);
    free(again);
    settings_destroy(&settings);
    settings_destroy(&back);
}

static const char rich[] =
    "listen: ['127.0.0.1:1', '[::1]:2', 'unix:/run/a b,c.sock']\n"
    "state_dir: \"/var/lib/\\u00fc \\\"quoted\\\" \\\\ back\"\n"
    "node: n-1\nworkers: 3\n"
    "store: {url: 'valkey://user:p%40ss@db:6379/2', password_file: /nonexistent}\n"
    "durability: {replicas: 2}\n"
    "target: {url: 'https://h/base', username: u, password: \"a\\tb\\u2028\\u0085\\x7f\\uFEFF:# "
    "'\", "
    "password_file: /nonexistent, secrets: [whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA]}\n"
    "targets: {allow: [10.0.0.0/8], deny: [], rate: 7}\n"
    "tls: {certificate: /c, key: /k}\n"
    "log: {level: warn, format: json, file: '/l # x'}\n"
    "jitter: none\nmax_text_bytes: 65537\ndelivery_timeout: 1234ms\nlock_ttl: 47h\nretry_for: 0\n"
    "kinds:\n"
    "- {name: prompt, executor: opencode, timeout: 11m}\n"
    "- name: message.create\n"
    "  method: PUT\n"
    "  url: /t/{payload.thread_id}/m\n"
    "  body: \"{\\\"x\\\": \\\"{payload.a}\\\"}\\n\"\n"
    "  content_type: text/plain; charset=utf-8\n"
    "  lane: thread:{payload.thread_id}\n"
    "  idempotent: true\n"
    "  follow_up_edit: message.update\n"
    "  follow_up_remove: message.update\n"
    "- {name: message.update, url: /u, ordering: first-due, retry_backoff: 1s}\n"
    "- name: pay\n"
    "  executor: http\n"
    "  url: http://other/pay\n"
    "  on_ambiguous: error\n"
    "  verify: {url: '/p/{id}', method: HEAD, delivered: [200, 204], absent: 404}\n"
    "- {name: l, executor: ledger, on_ambiguous: retry}\n";

static void what_is_printed_reads_back_the_same(void **state)
{
    (void)state;
    assert_round_trip("");
    assert_round_trip(rich);
}

static void every_setting_is_printed(void **state)
{
    struct settings *settings = read_good(rich);
    char *printed = print(settings, false);

    (void)state;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *dot = strchr(setting_rows[i].path, '.');
        char line[96];

        (void)snprintf(line, sizeof(line), "%s%s: ", dot ? "  " : "",
                       dot ? dot + 1 : setting_rows[i].path);
        if (i == SETTING_target_password) {
            (void)snprintf(line, sizeof(line), "  # password: ");
        }
        if (!strstr(printed, line)) {
            print_error("not printed: %s\n", line);
        }
        assert_non_null(strstr(printed, line));
    }
    free(printed);
    settings_destroy(&settings);
}

static void secrets_are_hidden_unless_asked_for(void **state)
{
    struct settings *settings = read_good("target: {password: sesame, secrets: "
                                          "[whsec_sesameAAAAAAAAAAAAAAAAAAAAAAAAAA]}\n"
                                          "store: {url: 'valkey://user:sesame@db/1'}\n");
    char *hidden = print(settings, false);
    char *shown = print(settings, true);

    (void)state;
    assert_null(strstr(hidden, "sesame"));
    assert_non_null(strstr(hidden, "  password: \"***\"\n"));
    assert_non_null(strstr(hidden, "  secrets: \"***\"\n"));
    assert_non_null(strstr(shown, "  secrets: [\"whsec_sesameAAAAAAAAAAAAAAAAAAAAAAAAAA\"]\n"));
    assert_non_null(strstr(hidden, "  url: \"valkey://user:***@db/1\"\n"));
    assert_non_null(strstr(shown, "  password: \"sesame\"\n"));
    assert_non_null(strstr(shown, "  url: \"valkey://user:sesame@db/1\"\n"));
    expect_mistake(hidden, "mask"); /* what was hidden can't be taken for a password */
    free(hidden);
    free(shown);
    settings_destroy(&settings);
}

static void every_row_has_a_default_and_a_range_that_it_accepts_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting_row *row = &setting_rows[i];
        const char *const texts[] = {row->def, row->min, row->max};
        char reason[320] = "";
        struct settings settings = {0};

        for (size_t t = 0; t < 3; t++) {
            if (t == 0 || *texts[t]) {
                assert_int_equal(settings_value_parse(row, texts[t], setting_field(row, &settings),
                                                      reason, sizeof(reason)),
                                 0);
            }
        }
        settings_free_rows(row, 1, &settings);
        const char *dot = strchr(row->path, '.');
        assert_true(!dot || !strchr(dot + 1, '.')); /* the printer knows one level of sections */
        assert_true(strlen(row->help) > 3);
    }
}

/* Puts a real file in the place of the one that the sample names, so that it can be read. Same
 * length. */
static void use_password_file(char *text, char *file)
{
    static const char named[] = "/etc/outboxd/store.password";
    char *place = strstr(text, named);
    int fd = mkstemp(file);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    if (!place) {
        abort();
    }
    assert_int_equal(strlen(file), strlen(named));
    memcpy(place, file, strlen(file));
}

/* In the sample, "# " and a word is a comment; any other # hides a setting. */
static void the_sample_file_names_every_setting_and_is_good(void **state)
{
    static char sample[65536];
    const char *source = getenv("OUTBOXD_SOURCE");
    char path[4096];

    (void)state;
    if (!source) {
        skip(); /* run by hand: `meson test` says where the source is */
    }
    (void)snprintf(path, sizeof(path), "%s/deploy/outboxd.yaml.sample", source);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t len = read(fd, sample, sizeof(sample) - 1);
    close(fd);
    assert_true(len > 0);
    struct settings *as_it_is = read_good(sample);
    settings_destroy(&as_it_is);
    /* With every "#setting: value" switched on it must still be good, and name each setting. */
    static char on[65536];
    size_t n = 0;
    for (const char *p = sample; *p; p++) {
        bool is_off = *p == '#' && (p == sample || p[-1] == '\n') && p[1] != '\n' &&
                      (p[1] != ' ' || p[2] == ' ');

        if (!is_off) {
            on[n++] = *p;
        }
    }
    on[n] = '\0';
    char file[] = "/tmp/outboxd-test-pw.XXXXXX";
    use_password_file(on, file);
    struct settings *all = read_good(on);
    char *printed = print(all, true);
    struct settings *back = read_good(printed);
    (void)unlink(file);
    assert_same(all, back);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *dot = strchr(setting_rows[i].path, '.');
        char line[96];

        (void)snprintf(line, sizeof(line), "\n%s%s:", dot ? "  " : "",
                       dot ? dot + 1 : setting_rows[i].path);
        if (!strstr(on, line)) {
            print_error("not in the sample:%s\n", line);
        }
        assert_non_null(strstr(on, line));
    }
    for (size_t i = 0; i < KIND_ROW_COUNT; i++) {
        const char *dot = strchr(kind_rows[i].path, '.');
        char word[64];

        (void)snprintf(word, sizeof(word), "%s:", dot ? dot + 1 : kind_rows[i].path);
        if (!strstr(on, word)) {
            print_error("not in the sample: %s\n", word);
        }
        assert_non_null(strstr(on, word));
    }
    free(printed);
    settings_destroy(&all);
    settings_destroy(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_reads_back_the_same),
        cmocka_unit_test(every_setting_is_printed),
        cmocka_unit_test(secrets_are_hidden_unless_asked_for),
        cmocka_unit_test(every_row_has_a_default_and_a_range_that_it_accepts_itself),
        cmocka_unit_test(the_sample_file_names_every_setting_and_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
