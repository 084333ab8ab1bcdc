/* Takes a store's URL apart: unix:///path[?db=N], valkey://[user[:password]@]host[:port][/db],
 * redis://… the same; valkeys:// and rediss:// the same with TLS, and files for it behind a ?
 * (ca=FILE&certificate=FILE&key=FILE). Pure. TLS is refused where it is not built in. */
#include "common/store/store_url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/store/store_conn.h"
#include "common/store/store_tls.h"

#define DEFAULT_PORT "6379"
#define DB_MAX       9999

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A copy of a part with its %XX undone. NULL: out of memory, or (errno EINVAL) a broken or NUL
 * escape. */
static char *unescaped(const char *part, size_t len)
{
    char *copy = malloc(len + 1);
    size_t used = 0;

    if (!copy) {
        errno = ENOMEM;
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        if (part[i] != '%') {
            copy[used++] = part[i];
            continue;
        }
        int high = i + 2 < len ? hex_digit(part[i + 1]) : -1;
        int low = i + 2 < len ? hex_digit(part[i + 2]) : -1;

        if (high < 0 || low < 0 || high + low == 0) {
            free(copy);
            errno = EINVAL;
            return NULL;
        }
        copy[used++] = (char)(high * 16 + low);
        i += 2;
    }
    copy[used] = '\0';
    return copy;
}

static int take(const char *part, size_t len, char **ret, const char **reason)
{
    *ret = unescaped(part, len);
    if (*ret) {
        return 0;
    }
    if (errno == EINVAL) {
        *reason = "a % in it is not followed by two hex digits";
    }
    return -errno;
}

static int refuse(const char **reason, const char *why)
{
    *reason = why;
    return -EINVAL;
}

static int parse_db(const char *text, struct store_url *url, const char **reason)
{
    char *end;

    if (*text < '0' || *text > '9') {
        return refuse(reason, "the database is not a number");
    }
    errno = 0;
    unsigned long db = strtoul(text, &end, 10);

    if (errno != 0 || *end != '\0' || db > DB_MAX) {
        return refuse(reason, "the database is not a number of at most 9999");
    }
    url->db = (uint32_t)db;
    return 0;
}

static int parse_user(const char *text, size_t len, struct store_url *url, const char **reason)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon ? (size_t)(colon - text) : len;
    int err = 0;

    if (user_len > 0) {
        err = take(text, user_len, &url->user, reason);
    }
    if (err == 0 && colon) {
        err = take(colon + 1, len - user_len - 1, &url->password, reason);
    }
    return err;
}

static int parse_unix(const char *text, struct store_url *url, const char **reason)
{
    size_t user_len = strcspn(text, "/?");

    if (user_len > 0 && text[user_len - 1] == '@') { /* what store.password_file becomes */
        int err = parse_user(text, user_len - 1, url, reason);

        if (err < 0) {
            return err;
        }
        text += user_len;
    }
    const char *query = strchr(text, '?');
    size_t len = query ? (size_t)(query - text) : strlen(text);

    if (text[0] != '/' || len < 2) {
        return refuse(reason, "a Unix socket is written unix:///path/of/the/socket");
    }
    int err = take(text, len, &url->path, reason);

    if (err < 0) {
        return err;
    }
    if (strlen(url->path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return refuse(reason,
                      "the path of the Unix socket is longer than the system allows (107 bytes)");
    }
    if (!query) {
        return 0;
    }
    if (strncmp(query, "?db=", 4) != 0) {
        return refuse(reason, "only ?db=N may follow the path of the Unix socket");
    }
    return parse_db(query + 4, url, reason);
}

/* host, host:port, [v6], [v6]:port */
static int parse_host(const char *text, size_t len, struct store_url *url, const char **reason)
{
    const char *end = text + len;
    const char *host = text, *host_end, *port;

    if (len > 0 && *text == '[') {
        host++;
        host_end = memchr(text, ']', len);
        if (!host_end) {
            return refuse(reason, "the IPv6 address is not closed by ]");
        }
        port = host_end + 1;
    } else {
        host_end = memchr(text, ':', len);
        host_end = host_end ? host_end : end;
        port = host_end;
    }
    if (host == host_end) {
        return refuse(reason, "the host is missing");
    }
    if (port < end && (*port != ':' || port + 1 == end)) {
        return refuse(reason, "what follows the host is not a port");
    }
    int err = take(host, (size_t)(host_end - host), &url->host, reason);

    if (err < 0) {
        return err;
    }
    url->port = port < end ? strndup(port + 1, (size_t)(end - port - 1)) : strdup(DEFAULT_PORT);
    if (!url->port) {
        return -ENOMEM;
    }
    char *rest;
    long number = strtol(url->port, &rest, 10);

    if (*rest != '\0' || url->port[0] < '0' || url->port[0] > '9' || number < 1 || number > 65535) {
        return refuse(reason, "the port is not a number from 1 to 65535");
    }
    return 0;
}

static int parse_tcp(const char *text, struct store_url *url, const char **reason)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    const char *at = memrchr(text, '@', len);
    int err = 0;

    if (at) {
        err = parse_user(text, (size_t)(at - text), url, reason);
        len -= (size_t)(at - text) + 1;
        text = at + 1;
    }
    if (err == 0) {
        err = parse_host(text, len, url, reason);
    }
    if (err == 0 && slash && slash[1] != '\0') {
        err = parse_db(slash + 1, url, reason);
    }
    return err;
}

/* name=FILE, others behind &. */
static int parse_files(const char *query, struct store_url *url, const char **reason)
{
    const struct {
        const char *name;
        char **file;
    } rows[] = {{"ca=", &url->ca}, {"certificate=", &url->certificate}, {"key=", &url->key}};

    while (*query) {
        const size_t len = strcspn(query, "&");
        char **file = NULL;
        size_t name = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (strncmp(query, rows[i].name, strlen(rows[i].name)) == 0) {
                file = rows[i].file;
                name = strlen(rows[i].name);
            }
        }
        if (!file || *file || len == name) {
            return refuse(reason,
                          "behind its ? stands something else than ca=FILE, certificate=FILE and "
                          "key=FILE, each once, with & between them");
        }
        const int err = take(query + name, len - name, file, reason);

        if (err < 0) {
            return err;
        }
        query += len + (query[len] == '&');
    }
    return !url->certificate == !url->key ? 0 : refuse(reason, "certificate= and key= go together");
}

static int parse_tls(const char *text, struct store_url *url, const char **reason)
{
    const char *query = strchr(text, '?');
    char *rest = query ? strndup(text, (size_t)(query - text)) : strdup(text);

    if (!store_tls_is_built()) {
        free(rest);
        return refuse(reason, STORE_TLS_IS_MISSING);
    }
    if (!rest) {
        return -ENOMEM;
    }
    url->is_tls = true;
    int err = parse_tcp(rest, url, reason);

    explicit_bzero(rest, strlen(rest)); /* a password, perhaps */
    free(rest);
    return err == 0 && query ? parse_files(query + 1, url, reason) : err;
}

int store_url_parse(const char *text, struct store_url *ret, const char **ret_reason)
{
    static const struct {
        const char *scheme;
        int (*parse)(const char *text, struct store_url *url, const char **reason);
    } schemes[] = {
        {"unix://", parse_unix},   {"valkey://", parse_tcp}, {"redis://", parse_tcp},
        {"valkeys://", parse_tls}, {"rediss://", parse_tls},
    };
    const char *reason = "out of memory";

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].scheme);

        if (strncmp(text, schemes[i].scheme, len) != 0) {
            continue;
        }
        struct store_url url = {0};
        int err = schemes[i].parse(text + len, &url, &reason);

        if (err < 0) {
            store_url_done(&url);
            *ret_reason = reason;
            return err;
        }
        *ret = url;
        return 0;
    }
    return refuse(ret_reason, "it starts with none of unix://, valkey://, redis://, valkeys://");
}

void store_url_done(struct store_url *url)
{
    if (url->password) {
        explicit_bzero(url->password, strlen(url->password));
    }
    free(url->path);
    free(url->host);
    free(url->port);
    free(url->user);
    free(url->password);
    free(url->ca);
    free(url->certificate);
    free(url->key);
    *url = (struct store_url){0};
}

int store_url_check(const char *url, const char **ret_reason)
{
    struct store_url parsed;
    struct store_tls *tls = NULL;
    int err = store_url_parse(url, &parsed, ret_reason);

    if (err < 0) {
        return err;
    }
    err = parsed.is_tls ? store_tls_create(&parsed, &tls, ret_reason) : 0;
    store_tls_destroy(&tls);
    store_url_done(&parsed);
    return err;
}
