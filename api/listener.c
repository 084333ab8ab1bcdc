/* The library's own loop is run by ours: when its epoll descriptor is readable, when its time limit
 * is over, and once per turn after answers were made. It is never run from within a callback of its
 * own. */
#include "api/listener.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "api/epoll_filter.h"
#include "common/access/credentials.h"
#include "common/base/listen_address.h"
#include "common/base/log.h"

/* TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only. No finite-field
 * Diffie-Hellman: a stranger can make a server compute it for next to nothing. */
#define TLS_PRIORITIES                                                                             \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:"      \
    "+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:-GROUP-ALL:+GROUP-X25519:"        \
    "+GROUP-SECP256R1:+GROUP-SECP384R1:-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:%SERVER_PRECEDENCE"

struct listener {
    struct listeners *all;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    int fd, epoll_fd;
};

struct listeners {
    struct listener_options options;
    struct listener items[INHERIT_LISTEN_MAX];
    uint32_t count;
    uv_check_t check; /* runs the library once per turn after answers were made */
    uv_idle_t idle;   /* keeps that turn from sleeping */
    bool is_due;      /* answers were made */
    bool wants_client_certificate;
};

/* ---- running the library ---- */

static void on_timer(uv_timer_t *timer);

/* What is due at once waits for the loop's next turn: a timer of 0 that is started anew from its
 * own callback runs again in the same turn (libuv 1.44), and nothing else would. */
static void arm(struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;

    if (MHD_get_timeout(listener->daemon, &timeout_ms) != MHD_YES) {
        uv_timer_stop(&listener->timer);
    } else if (timeout_ms == 0) {
        uv_timer_stop(&listener->timer);
        listeners_run_soon(listener->all);
    } else {
        uv_timer_start(&listener->timer, on_timer, timeout_ms, 0);
    }
}

static void run(struct listener *listener)
{
    MHD_run(listener->daemon);
    arm(listener);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    run(timer->data);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* only there so that the loop does not sleep while answers wait */
}

static void on_check(uv_check_t *check)
{
    struct listeners *listeners = check->data;

    if (!listeners->is_due) {
        return;
    }
    listeners->is_due = false;
    uv_idle_stop(&listeners->idle);
    for (uint32_t i = 0; i < listeners->count; i++) {
        run(&listeners->items[i]);
    }
}

void listeners_run_soon(struct listeners *listeners)
{
    if (!listeners->is_due) {
        listeners->is_due = true;
        uv_idle_start(&listeners->idle, on_idle);
    }
}

/* ---- TLS ---- */

struct gnutls_session_int *listener_tls(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    return info ? info->tls_session : NULL;
}

/* The library asks for a client's certificate but neither insists on one nor looks at it. */
static void demand_client_certificate(struct gnutls_session_int *tls)
{
    static char client_auth[] = GNUTLS_KP_TLS_WWW_CLIENT;
    static gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                            .data = (unsigned char *)client_auth};

    gnutls_certificate_server_set_request(tls, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert2(tls, &purpose, 1, 0);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    const struct listeners *listeners = cls;
    struct gnutls_session_int *tls = listener_tls(connection);

    if (tls && what == MHD_CONNECTION_NOTIFY_STARTED) {
        const gnutls_datum_t protocol = {(unsigned char *)(uintptr_t) "http/1.1", 8};

        /* A client that speaks other protocols only is told so. */
        (void)gnutls_alpn_set_protocols(tls, &protocol, 1, GNUTLS_ALPN_MANDATORY);
        if (listeners->wants_client_certificate) {
            demand_client_certificate(tls);
        }
    }
    listeners->options.on_connection(listeners->options.arg, connection, socket_context, what);
}

/* ---- start and end ---- */

static struct MHD_Daemon *start_daemon(struct listeners *listeners, int fd, bool is_tls)
{
    const struct listener_options *o = &listeners->options;
    const struct credentials *credentials = o->credentials;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, credentials->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, credentials->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {credentials->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
         credentials->client_ca},
        {MHD_OPTION_END, 0, NULL},
    };
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    return MHD_start_daemon(
        flags | (is_tls ? MHD_USE_TLS : 0U), 0, o->may_connect, o->arg, o->on_request, o->arg,
        MHD_OPTION_EXTERNAL_LOGGER, o->on_log, o->arg, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, o->connection_limit, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, o->connection_memory, MHD_OPTION_NOTIFY_COMPLETED,
        o->on_completed, o->arg, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listeners,
        MHD_OPTION_URI_LOG_CALLBACK, o->on_first_line, o->arg, MHD_OPTION_UNESCAPE_CALLBACK,
        o->keep_path, o->arg, is_tls ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls, MHD_OPTION_END);
}

int listeners_add(struct listeners *listeners, int fd, bool is_for_all)
{
    struct listener *listener = &listeners->items[listeners->count];
    struct listen_address address = {0};
    /* Whoever made the socket, we or a service manager. */
    const bool is_known = listen_address_of_socket(fd, &address) == 0;
    const bool is_unix = is_known && address.address.ss_family == AF_UNIX;

    if (is_for_all && !(is_known && address.is_local)) {
        log_error("other machines could call this API without a token: not serving this socket",
                  "fd", LOG_I64(fd), "mend",
                  "give token_file, or let it listen on 127.0.0.1, [::1] or unix: only");
        return -EACCES;
    }
    const bool is_tls = listeners->options.credentials->certificate && !is_unix;

    if (is_tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        log_error("this system's libmicrohttpd was built without TLS", "mend",
                  "install one with it, or put a proxy in front that ends TLS and leave out "
                  "tls.certificate");
        return -ENOTSUP;
    }
    *listener = (struct listener){.all = listeners, .fd = fd};
    listener->daemon = start_daemon(listeners, fd, is_tls);
    if (!listener->daemon) {
        return -EIO;
    }
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    if (!info || epoll_filter_add(info->epoll_fd) < 0) {
        MHD_stop_daemon(listener->daemon);
        return -EIO;
    }
    listener->epoll_fd = info->epoll_fd;
    uv_poll_init(listeners->options.loop, &listener->poll, info->epoll_fd);
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
    uv_timer_init(listeners->options.loop, &listener->timer);
    listener->timer.data = listener;
    listeners->count++;
    return 0;
}

int listeners_create(const struct listener_options *options, struct listeners **ret)
{
    struct listeners *listeners = calloc(1, sizeof(*listeners));

    if (!listeners) {
        return -ENOMEM;
    }
    listeners->options = *options;
    listeners->wants_client_certificate = options->credentials->client_ca;
    uv_check_init(options->loop, &listeners->check);
    listeners->check.data = listeners;
    uv_check_start(&listeners->check, on_check);
    uv_idle_init(options->loop, &listeners->idle);
    *ret = listeners;
    return 0;
}

void listeners_quiesce(struct listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        MHD_quiesce_daemon(listeners->items[i].daemon);
    }
}

void listeners_close_sockets(struct listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (listeners->items[i].fd >= 0) {
            close(listeners->items[i].fd);
            listeners->items[i].fd = -1;
        }
    }
}

void listeners_close(struct listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct listener *listener = &listeners->items[i];

        epoll_filter_remove(listener->epoll_fd);
        uv_close((uv_handle_t *)&listener->poll, NULL);
        uv_close((uv_handle_t *)&listener->timer, NULL);
        MHD_stop_daemon(listener->daemon);
    }
    uv_close((uv_handle_t *)&listeners->check, NULL);
    uv_close((uv_handle_t *)&listeners->idle, NULL);
}

void listeners_destroy(struct listeners **listeners)
{
    free(*listeners);
    *listeners = NULL;
}
