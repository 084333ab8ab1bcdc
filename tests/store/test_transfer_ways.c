/* Where a request may go, on real connections: whatever a URL looks like and a name resolves to, a
 * denied address sees not even a connection; nothing in the environment or a redirect leads
 * elsewhere. Names under .test are resolved by this program itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "common/base/settings.h"
#include "worker/address_rules.h"
#include "worker/transfer.h"

#define HEAD_MAX 4096

/* ---- a server that answers each connection's one request ---- */

struct server {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t mutex;
    unsigned connections;
    char head[HEAD_MAX]; /* of the last request */
    const char *answer;
};

static const char plain_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

static size_t read_head(int fd, char *head)
{
    size_t len = 0;

    head[0] = '\0';
    while (!strstr(head, "\r\n\r\n") && len < HEAD_MAX - 1) {
        const ssize_t got = read(fd, head + len, HEAD_MAX - 1 - len);

        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        head[len] = '\0';
    }
    return len;
}

static void *serve(void *arg)
{
    struct server *server = arg;
    int fd;

    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        char head[HEAD_MAX];

        pthread_mutex_lock(&server->mutex);
        server->connections++;
        pthread_mutex_unlock(&server->mutex);
        if (read_head(fd, head) > 0) {
            pthread_mutex_lock(&server->mutex);
            memcpy(server->head, head, sizeof(head));
            pthread_mutex_unlock(&server->mutex);
            (void)!send(fd, server->answer, strlen(server->answer), MSG_NOSIGNAL);
        }
        close(fd);
    }
    return NULL;
}

/* On every address of this machine, IPv4 and IPv6: what is not refused arrives. */
static struct server *server_start(void)
{
    struct server *server = calloc(1, sizeof(*server));
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    socklen_t len = sizeof(address);
    const int off = 0;

    assert_non_null(server);
    server->answer = plain_answer;
    server->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(setsockopt(server->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 64), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin6_port);
    pthread_mutex_init(&server->mutex, NULL);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
    return server;
}

static void server_stop(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

static unsigned connections_of(struct server *server)
{
    pthread_mutex_lock(&server->mutex);
    const unsigned count = server->connections;
    pthread_mutex_unlock(&server->mutex);
    return count;
}

/* ---- names: what the next resolutions of any name under .test give ---- */

static const char *resolutions[4]; /* addresses, separated by blanks */
static unsigned resolved;

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    getaddrinfo_fn *real;
    const size_t len = node ? strlen(node) : 0;
    char addresses[128], *rest = addresses;

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo"); /* as dlsym(3) shows it */
    if (len < 5 || strcmp(node + len - 5, ".test") != 0) {
        return real(node, service, hints, ret);
    }
    struct addrinfo **end = ret;

    snprintf(addresses, sizeof(addresses), "%s", resolutions[resolved++ % 4]);
    *ret = NULL;
    for (char *one = strsep(&rest, " "); one; one = strsep(&rest, " ")) {
        const int err = real(one, service, hints, end);

        if (err != 0) {
            return err;
        }
        while (*end) {
            end = &(*end)->ai_next;
        }
    }
    return 0;
}

/* ---- requests ---- */

static uv_loop_t loop;

struct answer {
    bool is_done, is_refused_address, is_started, is_complete;
    int status;
    char failure[256];
};

static void on_done(const struct transfer_result *result, void *arg)
{
    struct answer *answer = arg;

    answer->is_done = true;
    answer->is_refused_address = result->is_refused_address;
    answer->is_started = result->is_started;
    answer->is_complete = result->is_complete;
    answer->status = result->status;
    snprintf(answer->failure, sizeof(answer->failure), "%s", result->failure);
}

static struct transfers *transfers_with(const struct address_rules *rules)
{
    const struct transfer_limits limits = {
        .connect_timeout_ms = 5000, .max_response_bytes = 65536, .max_connections = 4};
    struct transfers *transfers = NULL;

    assert_int_equal(transfers_create(&loop, &limits, rules, &transfers), 0);
    return transfers;
}

/* By a worker that has asked nobody yet: no name is remembered, no connection kept. */
static struct answer get(const char *url, const struct address_rules *rules)
{
    struct transfers *transfers = transfers_with(rules);
    const struct transfer_request request = {.method = "GET", .url = url, .timeout_ms = 10000};
    struct answer answer = {0};

    assert_int_equal(transfer_start(transfers, &request, NULL, on_done, &answer), 0);
    while (!answer.is_done) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    transfers_destroy(&transfers);
    uv_run(&loop, UV_RUN_DEFAULT);
    return answer;
}

static struct address_rules *rules_that_deny(const char *const *deny, size_t count)
{
    const struct text_list none = {0};
    const struct text_list list = {(char **)(uintptr_t)deny, count};
    struct address_rules *rules = NULL;
    const char *bad = NULL;

    assert_int_equal(address_rules_create(&none, &list, &rules, &bad), 0);
    return rules;
}

static const char *const loopback[] = {"127.0.0.0/8", "::1/128"};

/* Containers often have none. */
static bool has_ipv6_loopback(void)
{
    const struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                         .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool has = bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

    close(fd);
    return has;
}

static void a_denied_address_sees_no_connection_however_it_is_spelt(void **state)
{
    static const char *const hosts[] = {
        "127.0.0.1", "2130706433",         "0177.0.0.1", "0x7f.1",    "127.1",
        "localhost", "[::ffff:127.0.0.1]", "[::1]",      "name.test",
    };
    struct server *server = server_start();
    struct address_rules *denying = rules_that_deny(loopback, 2);
    struct address_rules *open = rules_that_deny(NULL, 0);
    char url[128];

    (void)state;
    resolutions[0] = resolutions[1] = resolutions[2] = resolutions[3] = "127.0.0.1 ::1";
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        const unsigned before = connections_of(server);

        if (strcmp(hosts[i], "[::1]") == 0 && !has_ipv6_loopback()) {
            continue;
        }
        snprintf(url, sizeof(url), "http://%s:%d/", hosts[i], server->port);
        const struct answer refused = get(url, denying);

        if (!refused.is_refused_address || refused.is_started || connections_of(server) != before) {
            fail_msg("%s: %s", url, refused.failure);
        }
        const struct answer through = get(url, open);

        if (through.status != 200 || connections_of(server) != before + 1) {
            fail_msg("%s: this row proves nothing: %s", url, through.failure);
        }
    }
    address_rules_destroy(&denying);
    address_rules_destroy(&open);
    server_stop(server);
}

static void the_unspecified_address_sees_no_connection_by_any_rule(void **state)
{
    static const char *const hosts[] = {"0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]", "none.test"};
    struct server *server = server_start();
    struct address_rules *open = rules_that_deny(NULL, 0);
    char url[128];

    (void)state;
    resolutions[0] = resolutions[1] = resolutions[2] = resolutions[3] = "0.0.0.0";
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        snprintf(url, sizeof(url), "http://%s:%d/", hosts[i], server->port);
        const struct answer answer = get(url, open);

        if (!answer.is_refused_address) {
            fail_msg("%s: %d %s", url, answer.status, answer.failure);
        }
    }
    assert_int_equal(connections_of(server), 0);
    address_rules_destroy(&open);
    server_stop(server);
}

static void of_several_addresses_one_that_is_permitted_is_taken(void **state)
{
    static const char *const deny[] = {"127.0.0.2", "::1"};
    struct server *server = server_start();
    struct address_rules *rules = rules_that_deny(deny, 2);
    char url[128];

    (void)state;
    resolved = 0;
    resolutions[0] = "::1 127.0.0.2 127.0.0.1";
    snprintf(url, sizeof(url), "http://several.test:%d/", server->port);
    const struct answer answer = get(url, rules);

    assert_int_equal(answer.status, 200);
    assert_false(answer.is_refused_address);
    assert_int_equal(connections_of(server), 1);
    address_rules_destroy(&rules);
    server_stop(server);
}

/* DNS rebinding: what counts is the address of this connection, not one that was looked up before.
 */
static void a_name_that_leads_elsewhere_the_next_time_is_judged_anew(void **state)
{
    static const char *const deny[] = {"127.0.0.2"};
    struct server *server = server_start();
    struct address_rules *rules = rules_that_deny(deny, 1);
    char url[128];

    (void)state;
    resolved = 0;
    resolutions[0] = "127.0.0.1";
    resolutions[1] = "127.0.0.2";
    snprintf(url, sizeof(url), "http://rebind.test:%d/", server->port);
    assert_int_equal(get(url, rules).status, 200);
    assert_true(get(url, rules).is_refused_address);
    assert_int_equal(resolved, 2);
    assert_int_equal(connections_of(server), 1);
    address_rules_destroy(&rules);
    server_stop(server);
}

static void a_permitted_address_that_does_not_answer_is_no_refusal(void **state)
{
    static const char *const deny[] = {"127.0.0.2"};
    struct server *server = server_start();
    struct address_rules *rules = rules_that_deny(deny, 1);
    char url[128];

    (void)state;
    resolved = 0;
    resolutions[0] = "127.0.0.2 127.0.0.1";
    snprintf(url, sizeof(url), "http://gone.test:%d/", server->port);
    server_stop(server);
    const struct answer answer = get(url, rules);

    assert_false(answer.is_refused_address);
    assert_false(answer.is_started);
    assert_int_equal(answer.status, 0);
    address_rules_destroy(&rules);
}

static void nothing_in_the_environment_leads_elsewhere_or_adds_credentials(void **state)
{
    static const char *const names[] = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                        "HTTPS_PROXY", "all_proxy",  "ALL_PROXY"};
    struct server *server = server_start();
    struct server *proxy = server_start();
    struct address_rules *open = rules_that_deny(NULL, 0);
    char url[128], home[] = "/tmp/outboxd-test.XXXXXX", netrc[64];

    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(netrc, sizeof(netrc), "%s/.netrc", home);
    FILE *file = fopen(netrc, "we");
    assert_non_null(file);
    fprintf(file, "machine 127.0.0.1 login user password sesame\ndefault login user password x\n");
    assert_int_equal(fclose(file), 0);
    setenv("HOME", home, 1);
    setenv("NETRC", netrc, 1);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", proxy->port);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv(names[i], url, 1);
    }
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/straight", server->port);
    assert_int_equal(get(url, open).status, 200);
    assert_int_equal(connections_of(server), 1);
    assert_int_equal(connections_of(proxy), 0);
    assert_int_equal(strncmp(server->head, "GET /straight HTTP/1.1\r\n", 24), 0);
    assert_null(strcasestr(server->head, "authorization"));
    assert_null(strcasestr(server->head, "accept-encoding"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
    unsetenv("NETRC");
    unlink(netrc);
    rmdir(home);
    address_rules_destroy(&open);
    server_stop(server);
    server_stop(proxy);
}

static void a_redirect_is_an_answer_and_not_followed(void **state)
{
    struct server *server = server_start();
    struct server *elsewhere = server_start();
    struct address_rules *open = rules_that_deny(NULL, 0);
    char url[128], redirect[256];

    (void)state;
    snprintf(redirect, sizeof(redirect),
             "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\nRefresh: 0; "
             "url=http://127.0.0.1:%d/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
             elsewhere->port, elsewhere->port);
    server->answer = redirect;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server->port);
    assert_int_equal(get(url, open).status, 302);
    assert_int_equal(connections_of(server), 1);
    assert_int_equal(connections_of(elsewhere), 0);
    address_rules_destroy(&open);
    server_stop(server);
    server_stop(elsewhere);
}

static void an_answer_ends_where_it_says_so_whatever_stands_around_its_body(void **state)
{
    static const char *const whole[] = {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n"
        "2\r\n{}\r\n0\r\nSum: 1\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    };
    static const char *const cut[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    };
    struct server *server = server_start();
    struct address_rules *open = rules_that_deny(NULL, 0);
    char url[128];

    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server->port);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        server->answer = whole[i];
        const struct answer answer = get(url, open);

        if (answer.status != 200 || !answer.is_complete) {
            fail_msg("whole %zu: %d %s", i, answer.status, answer.failure);
        }
    }
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        server->answer = cut[i];
        if (get(url, open).is_complete) {
            fail_msg("cut %zu", i);
        }
    }
    address_rules_destroy(&open);
    server_stop(server);
}

/* `count` times `line` between a head and an end. */
static char *repeated(const char *head, const char *line, size_t count, const char *end)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    assert_non_null(file);
    fputs(head, file);
    for (size_t i = 0; i < count; i++) {
        fputs(line, file);
    }
    fputs(end, file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void an_answer_beyond_a_limit_is_cut_and_its_status_holds_if_it_came(void **state)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    static const struct {
        const char *head, *line;
        size_t count;
        const char *end;
        int status;
        const char *failure; /* "": none */
    } rows[] = {
        {ok, "A: b\r\n", 500, "\r\n", 200, ""},
        {ok, "A: b\r\n", 600, "\r\n", 200, "too many headers"},
        {ok, "A: 0123456789012345678901234567890123456789\r\n", 2000, "\r\n", 200,
         "too many headers"},
        {"", "HTTP/1.1 103 Early Hints\r\n\r\n", 200, "HTTP/1.1 200 OK\r\n\r\n", 200, ""},
        {"", "HTTP/1.1 103 Early Hints\r\n\r\n", 600, "HTTP/1.1 200 OK\r\n\r\n", 0,
         "too many headers"},
        {"HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef", 4096, "", 200, ""},
        {"HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef", 4096, "x", 200, "max_response_bytes"},
    };
    char *texts[sizeof(rows) / sizeof(rows[0])]; /* the server may be at one for longer than we */
    struct server *server = server_start();
    struct address_rules *open = rules_that_deny(NULL, 0);
    char url[128];

    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server->port);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        texts[i] = repeated(rows[i].head, rows[i].line, rows[i].count, rows[i].end);
        server->answer = texts[i];
        const struct answer answer = get(url, open);

        if (answer.status != rows[i].status || answer.is_complete != !rows[i].failure[0] ||
            !strstr(answer.failure, rows[i].failure)) {
            fail_msg("row %zu: %d %s", i, answer.status, answer.failure);
        }
    }
    address_rules_destroy(&open);
    server_stop(server);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        free(texts[i]);
    }
}

static void what_is_no_http_url_without_credentials_is_not_started(void **state)
{
    static const char *const urls[] = {
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1:1/_x",
        "dict://127.0.0.1:1/d:x",
        "ldap://127.0.0.1/",
        "smb://127.0.0.1/x",
        "telnet://127.0.0.1:1/",
        "scp://127.0.0.1/",
        "tftp://127.0.0.1/x",
        "http://u:p@127.0.0.1/",
        "http://u@127.0.0.1/",
        "https://:p@127.0.0.1/",
        "http://127.0.0.1:99999",
        "http://[::1/",
        "http://a b/",
        "http://127.0.0.1:1x/",
        "",
    };
    struct address_rules *open = rules_that_deny(NULL, 0);
    struct transfers *transfers = transfers_with(open);
    struct answer answer = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        const struct transfer_request request = {
            .method = "GET", .url = urls[i], .timeout_ms = 1000};

        if (transfer_start(transfers, &request, NULL, on_done, &answer) != -EINVAL) {
            fail_msg("%s", urls[i]);
        }
    }
    transfers_destroy(&transfers);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(answer.is_done);
    address_rules_destroy(&open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_denied_address_sees_no_connection_however_it_is_spelt),
        cmocka_unit_test(the_unspecified_address_sees_no_connection_by_any_rule),
        cmocka_unit_test(of_several_addresses_one_that_is_permitted_is_taken),
        cmocka_unit_test(a_name_that_leads_elsewhere_the_next_time_is_judged_anew),
        cmocka_unit_test(a_permitted_address_that_does_not_answer_is_no_refusal),
        cmocka_unit_test(nothing_in_the_environment_leads_elsewhere_or_adds_credentials),
        cmocka_unit_test(a_redirect_is_an_answer_and_not_followed),
        cmocka_unit_test(an_answer_ends_where_it_says_so_whatever_stands_around_its_body),
        cmocka_unit_test(an_answer_beyond_a_limit_is_cut_and_its_status_holds_if_it_came),
        cmocka_unit_test(what_is_no_http_url_without_credentials_is_not_started),
    };

    uv_loop_init(&loop);
    const int failed = cmocka_run_group_tests_name("ways of a transfer", tests, NULL, NULL);

    return failed + (uv_loop_close(&loop) < 0);
}
