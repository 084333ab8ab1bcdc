/* libcurl, one request at a time: no redirects, no proxy, nothing from the environment, so that the
 * token goes to the named server and nowhere else. Answers are bounded. */
#include "api/ctl/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

#define CONNECT_SECONDS 10L
#define CALL_MS         60000L
#define SILENCE_SECONDS 120L /* of a stream: heartbeats come more often */
#define ANSWER_MAX      ((size_t)512 * 1024 * 1024)

struct http_client {
    CURL *curl;
    char *base; /* without a slash at its end */
    struct curl_slist *headers;
    char error[CURL_ERROR_SIZE];
    char mistake[CURL_ERROR_SIZE + 256];
    bool was_sent; /* libcurl had a connection and began to send */
    long call_ms, stream_ms;
};

static const char *const unix_prefix = "unix:";

static int on_request(void *arg, char *remote, char *local, int remote_port, int local_port)
{
    struct http_client *client = arg;

    (void)remote, (void)local, (void)remote_port, (void)local_port;
    client->was_sent = true;
    return CURL_PREREQFUNC_OK;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    return buf_append(arg, bytes, size * count) == 0 ? size * count : 0;
}

static bool add_header(struct http_client *client, const char *header)
{
    struct curl_slist *longer = curl_slist_append(client->headers, header);

    client->headers = longer ? longer : client->headers;
    return longer != NULL;
}

static bool add_token(struct http_client *client, const char *token)
{
    AUTO_FREE char *header = NULL;

    if (asprintf(&header, "Authorization: Bearer %s", token) < 0) {
        header = NULL; /* undefined after a failure */
        return false;
    }
    return add_header(client, header);
}

static char *base_of(const char *server)
{
    size_t len = strlen(server);

    if (strncmp(server, unix_prefix, strlen(unix_prefix)) == 0) {
        return strdup("http://localhost");
    }
    while (len > 0 && server[len - 1] == '/') {
        len--;
    }
    return strndup(server, len);
}

static bool is_server(const char *server)
{
    static const char *const prefixes[] = {"http://", "https://", "unix:"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        const size_t len = strlen(prefixes[i]);

        if (strncmp(server, prefixes[i], len) == 0 && server[len] != '\0') {
            return true;
        }
    }
    return false;
}

static void set_options(struct http_client *client, const char *server)
{
    CURL *curl = client->curl;

    if (strncmp(server, unix_prefix, strlen(unix_prefix)) == 0) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, server + strlen(unix_prefix));
    }
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L); /* a session may be called ".." */
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "outboxctl");
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, client);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
}

static void set_tls(CURL *curl, const struct http_tls *tls)
{
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls->ca) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, tls->ca);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* these, and not the system's beside them */
    }
    if (tls->certificate) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, tls->certificate);
    }
    if (tls->key) {
        curl_easy_setopt(curl, CURLOPT_SSLKEY, tls->key);
    }
}

struct http_client *http_client_create(const char *server, const char *token,
                                       const struct http_tls *tls, const char **mistake)
{
    if (!is_server(server)) {
        *mistake = "the server must be http://HOST:PORT, https://HOST:PORT or unix:PATH";
        return NULL;
    }
    struct http_client *client = calloc(1, sizeof(*client));

    *mistake = "out of memory";
    if (!client) {
        return NULL;
    }
    client->curl = curl_easy_init();
    client->base = base_of(server);
    if (!client->curl || !client->base || !add_header(client, "Expect:") ||
        !add_header(client, "Accept: application/json, application/problem+json") ||
        !add_header(client, "Content-Type: application/json") ||
        (token && !add_token(client, token))) {
        http_client_destroy(&client);
        return NULL;
    }
    set_options(client, server);
    set_tls(client->curl, tls);
    http_client_set_limits(client, CALL_MS, 0);
    return client;
}

void http_client_set_limits(struct http_client *client, long call_ms, long stream_ms)
{
    client->call_ms = call_ms;
    client->stream_ms = stream_ms;
}

void http_client_destroy(struct http_client **client)
{
    if (*client) {
        curl_easy_cleanup((*client)->curl);
        curl_slist_free_all((*client)->headers);
        free((*client)->base);
        free(*client);
        *client = NULL;
    }
}

static int64_t retry_after_ms(CURL *curl)
{
    curl_off_t seconds = 0;

    /* 0 stands for no such header, too; "at once" is what it means then. */
    return curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0
               ? (int64_t)seconds * 1000
               : -1;
}

int http_client_call(struct http_client *client, const char *method, const char *path,
                     struct span body, struct http_answer *ret)
{
    AUTO_FREE char *url = NULL;
    struct http_answer answer = {0};

    if (asprintf(&url, "%s%s", client->base, path) < 0) {
        url = NULL;
        snprintf(client->mistake, sizeof(client->mistake), "out of memory");
        return -EIO;
    }
    client->error[0] = '\0';
    client->was_sent = false;
    buf_init(&answer.body, ANSWER_MAX);
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &answer.body);
    if (body.len > 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        curl_easy_setopt(client->curl, CURLOPT_POST, 1L);
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, body.len > 0 ? body.ptr : "");
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    } else {
        curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, client->call_ms);
    const CURLcode code = curl_easy_perform(client->curl);

    if (code != CURLE_OK) {
        snprintf(client->mistake, sizeof(client->mistake), "%s",
                 client->error[0] ? client->error : curl_easy_strerror(code));
        buf_done(&answer.body);
        return -EIO;
    }
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &answer.status);
    answer.retry_after_ms = retry_after_ms(client->curl);
    *ret = answer;
    return 0;
}

struct stream {
    CURL *curl;
    struct http_answer answer;
    bool (*on_bytes)(struct span bytes, void *arg);
    void *arg;
};

static size_t on_stream(char *bytes, size_t size, size_t count, void *arg)
{
    struct stream *stream = arg;
    const size_t len = size * count;
    long status = 0;

    curl_easy_getinfo(stream->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        return buf_append(&stream->answer.body, bytes, len) == 0 ? len : 0;
    }
    return stream->on_bytes((struct span){bytes, len}, stream->arg) ? len : 0;
}

int http_client_stream(struct http_client *client, const char *path, const char *last_event_id,
                       bool (*on_bytes)(struct span bytes, void *arg), void *arg,
                       struct http_answer *ret)
{
    struct stream stream = {.curl = client->curl, .on_bytes = on_bytes, .arg = arg};
    struct curl_slist *headers = NULL;
    AUTO_FREE char *url = NULL, *last = NULL;

    if (asprintf(&url, "%s%s", client->base, path) < 0 ||
        asprintf(&last, "Last-Event-ID: %s", last_event_id ? last_event_id : "") < 0) {
        abort(); /* a small fixed object */
    }
    for (const struct curl_slist *at = client->headers; at; at = at->next) {
        headers = curl_slist_append(headers, at->data);
    }
    headers = last_event_id ? curl_slist_append(headers, last) : headers;
    client->error[0] = '\0';
    buf_init(&stream.answer.body, ANSWER_MAX);
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, "GET"); /* a call before left its own */
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &stream);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, client->stream_ms);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, SILENCE_SECONDS);
    const CURLcode code = curl_easy_perform(client->curl);

    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, 0L);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
        snprintf(client->mistake, sizeof(client->mistake), "%s",
                 client->error[0] ? client->error : curl_easy_strerror(code));
        buf_done(&stream.answer.body);
        return -EIO;
    }
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &stream.answer.status);
    *ret = stream.answer;
    return 0;
}

void http_answer_done(struct http_answer *answer)
{
    buf_done(&answer->body);
}

const char *http_client_mistake(const struct http_client *client)
{
    return client->mistake;
}

bool http_client_may_have_arrived(const struct http_client *client)
{
    return client->was_sent;
}
