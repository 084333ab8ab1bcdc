/* What the doctor says of facts: each thing that may be wrong alone, in a world that is fine else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "api/ctl/doctor/facts.h"
#include "api/ctl/doctor/findings.h"
#include "api/ctl/doctor/listen_url.h"
#include "build_config.h"
#include "common/core/buf.h"

static struct settings *settings; /* the defaults */

static int load_defaults(void **state)
{
    struct settings_report report;

    (void)state;
    settings_report_init(&report);
    const int err = settings_parse("defaults", "", 0, &settings, &report);

    settings_report_done(&report);
    return err;
}

static int drop_defaults(void **state)
{
    (void)state;
    settings_destroy(&settings);
    return 0;
}

/* A machine on which all is well. */
static struct facts healthy(void)
{
    struct facts facts = {
        .config_path = "/etc/outboxd/outboxd.yaml",
        .settings = settings,
        .state_mode = S_IFDIR | 0750,
        .is_state_writable = true,
        .space_bytes = UINT64_C(1) << 40,
        .inodes = 1000000,
        .has_inodes = true,
        .is_embedded = true,
        .is_store_local = true,
        .store_result = STORE_OK,
        .store = {.name = "valkey",
                  .version = "8.0.1",
                  .aof_enabled = true,
                  .appendfsync = "always",
                  .maxmemory_policy = "noeviction",
                  .aof_last_write_ok = true,
                  .aof_last_rewrite_ok = true,
                  .used_memory_bytes = 1 << 20},
        .has_store_clock = true,
        .store_ahead_ms = 1,
        .is_clock_known = true,
        .is_clock_synced = true,
        .file_limit = 1000000,
        .somaxconn = 4096,
        .overcommit = 1,
        .hugepages = "madvise",
        .shm_space_bytes = INT64_C(1) << 30,
        .server = "http://127.0.0.1:7780",
        .is_server_asked = true,
        .is_server_there = true,
        .is_server_ready = true,
        .server_version = OUTBOXD_VERSION,
        .restarts = 0,
        .processes = {{"api", "ready", 11, 20, 100000, false},
                      {"worker", "ready", 12, 20, 100000, false}},
        .process_count = 2,
    };

    snprintf(facts.store_url, sizeof(facts.store_url), "unix:///s/store.sock");
    return facts;
}

static void judge(const struct facts *facts, struct findings *ret)
{
    static rule_fn *const rules[CHECK_COUNT] = {
#define CHECK(id, rule, name) rule_##rule,
#include "api/ctl/doctor/checks.def"
    };

    findings_init(ret);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        ret->check = (enum check_id)i;
        rules[i](facts, ret);
    }
}

/* The findings that are neither fine nor a note: one, of that check and level, with what to do. */
static void assert_ill(const struct facts *facts, enum check_id check, enum finding_level level)
{
    struct findings findings;
    size_t ill = 0;

    judge(facts, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        const struct finding *finding = &findings.all[i];

        if (finding->level >= FINDING_WARNING) {
            if (finding->check != check || finding->level != level || !finding->todo) {
                fail_msg("%s: %s %s", check_name(check), check_name(finding->check),
                         finding->found);
            }
            ill++;
        }
    }
    if (ill != 1) {
        fail_msg("%s: %zu findings", check_name(check), ill);
    }
    findings_done(&findings);
}

static void nothing_is_wrong_with_a_healthy_machine(void **state)
{
    const struct facts facts = healthy();
    struct findings findings;

    (void)state;
    judge(&facts, &findings);
    assert_int_equal(findings_count(&findings, FINDING_WARNING), 0);
    assert_int_equal(findings_count(&findings, FINDING_FAILURE), 0);
    /* Every check says something: none is silent about what it looked at. */
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        bool is_told = i == CHECK_CONFIG_SECRETS; /* there are none */

        for (size_t k = 0; k < findings.count; k++) {
            is_told = is_told || findings.all[k].check == (enum check_id)i;
        }
        if (!is_told) {
            fail_msg("%s says nothing", check_name((enum check_id)i));
        }
    }
    findings_done(&findings);
}

static void each_illness_is_found_alone(void **state)
{
    (void)state;
#define ILL(check, level, ...)                                                                     \
    {                                                                                              \
        struct facts facts = healthy();                                                            \
        __VA_ARGS__;                                                                               \
        assert_ill(&facts, CHECK_##check, FINDING_##level);                                        \
    }
    ILL(STATE_ACCESS, FAILURE, facts.state_err = -EACCES)
    ILL(STATE_ACCESS, FAILURE, facts.state_mode = S_IFDIR | 0777)
    ILL(STATE_ACCESS, FAILURE, facts.state_mode = S_IFREG | 0640)
    ILL(STATE_SPACE, FAILURE, facts.space_bytes = 1000)
    ILL(STATE_SPACE, WARNING, facts.space_bytes = UINT64_C(500) << 20)
    ILL(STATE_INODES, FAILURE, facts.inodes = 1)
    ILL(STATE_INODES, WARNING, facts.inodes = 5000)
    ILL(STORE_REACHABLE, FAILURE, facts.store_result = STORE_AWAY)
    ILL(STORE_REACHABLE, FAILURE, facts.store_result = STORE_NOAUTH)
    ILL(STORE_REACHABLE, WARNING, facts.store.is_loading = true)
    ILL(STORE_VERSION, FAILURE, snprintf(facts.store.version, 32, "6.2.0"))
    ILL(STORE_DURABILITY, FAILURE, facts.store.aof_enabled = false)
    ILL(STORE_DURABILITY, FAILURE, snprintf(facts.store.appendfsync, 16, "everysec"))
    ILL(STORE_DURABILITY, FAILURE, snprintf(facts.store.maxmemory_policy, 32, "allkeys-lru"))
    ILL(STORE_DURABILITY, FAILURE, facts.store.is_replica = true)
    ILL(STORE_WRITES, FAILURE, facts.store.aof_last_write_ok = false)
    ILL(STORE_WRITES, WARNING, facts.store.aof_last_rewrite_ok = false)
    ILL(STORE_MEMORY, FAILURE, facts.store.max_memory_bytes = 1 << 20)
    ILL(STORE_MEMORY, WARNING, facts.store.max_memory_bytes = (1 << 20) + (1 << 17))
    ILL(CLOCK_SYNC, WARNING, facts.is_clock_synced = false)
    ILL(CLOCK_STEPS, WARNING, facts.clock_step_ms = -3600000)
    ILL(CLOCK_STORE, WARNING, facts.store_ahead_ms = -5000)
    ILL(LIMIT_FILES, WARNING, facts.processes[0].file_limit = 1024)
    ILL(LIMIT_FILES, WARNING, facts.processes[1].file_limit = 1024)
    ILL(LIMIT_BACKLOG, WARNING, facts.somaxconn = 128)
    ILL(MEMORY_SHM, WARNING, facts.shm_space_bytes = 1 << 20)
    ILL(MEMORY_OVERCOMMIT, WARNING, facts.overcommit = 0)
    ILL(MEMORY_HUGEPAGES, WARNING, snprintf(facts.hugepages, 32, "always"))
    ILL(SERVER_READY, FAILURE, facts.is_server_ready = false)
    ILL(SERVER_READY, FAILURE, snprintf(facts.degraded, 1024, "worker in slot 4 died 3 times"))
    ILL(SERVER_READY, WARNING, facts.is_server_there = false)
    ILL(SERVER_VERSION, WARNING, snprintf(facts.server_version, 64, "0.0.1"))
    ILL(SERVER_VERSION, WARNING, facts.processes[1].is_program_replaced = true)
    ILL(SERVER_PROCESSES, FAILURE, facts.processes[1].heartbeat_age_ms = 60000)
    ILL(SERVER_PROCESSES, WARNING, facts.restarts = 2)
    ILL(SERVER_ENTRIES, WARNING, facts.failed_entries = 1)
    ILL(SERVER_ENTRIES, WARNING, facts.oldest_open_age_s = 86400)
#undef ILL
}

static void files_that_others_can_read_or_write_are_failures(void **state)
{
    static const struct {
        bool is_secret;
        int err;
        mode_t mode;
        bool is_fine;
    } rows[] = {
        {true, -EACCES, 0600, true}, /* of another user, as it should be */
        {true, 0, 0600, true},       {true, 0, 0640, true},   {true, 0, 0644, false},
        {false, 0, 0644, true},      {false, 0, 0646, false}, {true, -ENOENT, 0, false},
        {true, -EACCES, 0, true}, /* within a folder of another user */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct facts facts = healthy();

        facts.files[facts.file_count++] = (struct file_fact){.what = "tls.key",
                                                             .path = "/f",
                                                             .is_secret = rows[i].is_secret,
                                                             .err = rows[i].err,
                                                             .mode = rows[i].mode};
        if (rows[i].is_fine) {
            struct findings findings;

            judge(&facts, &findings);
            assert_int_equal(findings_count(&findings, FINDING_FAILURE), 0);
            findings_done(&findings);
        } else {
            assert_ill(&facts, CHECK_CONFIG_SECRETS, FINDING_FAILURE);
        }
    }
}

static void without_a_server_the_machine_is_looked_at_all_the_same(void **state)
{
    struct facts facts = healthy();

    (void)state;
    facts.is_server_there = facts.is_server_ready = false;
    facts.process_count = 0;
    facts.store_result = STORE_AWAY; /* the embedded one stops with outboxd */
    facts.failed_entries = -1;
    facts.restarts = -1;
    facts.server_version[0] = '\0';
    assert_ill(&facts, CHECK_SERVER_READY, FINDING_WARNING);
    facts.file_limit = 1024;
    facts.store_result = STORE_OK;
    facts.is_server_there = facts.is_server_ready = true;
    assert_ill(&facts, CHECK_LIMIT_FILES, FINDING_WARNING);
    facts.file_limit = -1;
    facts.shm_space_bytes = 1 << 20;
    assert_ill(&facts, CHECK_MEMORY_SHM, FINDING_FAILURE);
}

static void each_mistake_of_the_configuration_is_a_finding(void **state)
{
    struct facts facts = healthy();
    struct findings findings;

    (void)state;
    facts.settings = NULL;
    settings_report_init(&facts.report);
    (void)buf_append_str(&facts.report.errors, "f:1: a: b\nf:2: c: d\n");
    judge(&facts, &findings);
    assert_int_equal(findings_count(&findings, FINDING_FAILURE), 2);
    assert_string_equal(findings.all[0].found, "f:1: a: b");
    assert_string_equal(findings.all[1].found, "f:2: c: d");
    findings_done(&findings);
    settings_report_done(&facts.report);
}

static void findings_are_lines_or_json(void **state)
{
    struct findings findings;
    struct buf out;

    (void)state;
    findings_init(&findings);
    findings.check = CHECK_STORE_VERSION;
    findings_add(&findings, FINDING_OK, NULL, "valkey %d", 8);
    findings.check = CHECK_CLOCK_SYNC;
    findings_add(&findings, FINDING_WARNING, "Do this and that.", "not \033set");
    buf_init(&out, 10000);
    findings_print(&findings, 47, false, &out);
    assert_string_equal(out.bytes, "ok       store.version      valkey 8\n"
                                   "warning  clock.sync         not ?set\n"
                                   "                            -> Do this and\n"
                                   "                               that.\n"
                                   "\n0 failures, 1 warning\n");
    buf_reset(&out);
    findings_print_json(&findings, &out);
    assert_string_equal(out.bytes,
                        "{\"result\":\"warnings\",\"checks\":["
                        "{\"check\":\"store.version\",\"level\":\"ok\",\"found\":\"valkey 8\"},"
                        "{\"check\":\"clock.sync\",\"level\":\"warning\",\"found\":\"not ?set\","
                        "\"do\":\"Do this and that.\"}]}\n");
    buf_done(&out);
    findings_done(&findings);
}

static void a_listening_address_is_reached_by_a_url(void **state)
{
    static const struct {
        const char *address;
        bool is_tls;
        const char *url;
    } rows[] = {
        {"127.0.0.1:7780", false, "http://127.0.0.1:7780"},
        {"0.0.0.0:80", true, "https://127.0.0.1:80"},
        {"[::]:80", false, "http://[::1]:80"},
        {"[fe80::1]:80", false, "http://[fe80::1]:80"},
        {"unix:/run/o.sock", true, "unix:/run/o.sock"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char url[64];

        listen_url(rows[i].address, rows[i].is_tls, url, sizeof(url));
        assert_string_equal(url, rows[i].url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_wrong_with_a_healthy_machine),
        cmocka_unit_test(each_illness_is_found_alone),
        cmocka_unit_test(files_that_others_can_read_or_write_are_failures),
        cmocka_unit_test(without_a_server_the_machine_is_looked_at_all_the_same),
        cmocka_unit_test(each_mistake_of_the_configuration_is_a_finding),
        cmocka_unit_test(findings_are_lines_or_json),
        cmocka_unit_test(a_listening_address_is_reached_by_a_url),
    };

    return cmocka_run_group_tests(tests, load_defaults, drop_defaults);
}
