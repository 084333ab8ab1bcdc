/* The listening sockets: one daemon of the HTTP library for each, run by the libuv loop. TLS on all
 * but Unix sockets where there is a certificate. Knows nothing of requests. Contract §7, §11. */
#ifndef API_LISTENER_H
#define API_LISTENER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/inherit.h"

struct credentials;
struct gnutls_session_int;
struct uv_loop_s;

struct listener_options {
    struct uv_loop_s *loop;
    const struct credentials *credentials; /* used by listeners_add only */
    unsigned connection_limit;             /* of each; beyond, clients wait in the kernel */
    size_t connection_memory;              /* bytes of each: a head has to fit */
    /* The library's callbacks, with `arg`. */
    MHD_AcceptPolicyCallback may_connect;
    void *(*on_first_line)(void *arg, const char *uri, struct MHD_Connection *connection);
    MHD_AccessHandlerCallback on_request;
    MHD_RequestCompletedCallback on_completed;
    MHD_NotifyConnectionCallback on_connection;
    MHD_LogCallback on_log;
    size_t (*keep_path)(void *arg, struct MHD_Connection *connection, char *text);
    void *arg;
};

struct listeners;

/* 0 or -ENOMEM. */
int listeners_create(const struct listener_options *options, struct listeners **ret);
/* Takes connections from now on. Owns `fd` from here on. -EACCES: other machines could connect and
 * `is_for_all` says that nothing keeps them out; -ENOTSUP: the library has no TLS; -EIO. */
int listeners_add(struct listeners *listeners, int fd, bool is_for_all);
/* Answers were made outside of the library's callbacks: it is run once, soon. */
void listeners_run_soon(struct listeners *listeners);
/* No connection is taken any more; the sockets stay open for others that share them. */
void listeners_quiesce(struct listeners *listeners);
void listeners_close_sockets(struct listeners *listeners);
/* Stops the library; handles close in the loop's next turns. */
void listeners_close(struct listeners *listeners);
void listeners_destroy(struct listeners **listeners);

/* The TLS session of a connection: NULL without TLS. */
struct gnutls_session_int *listener_tls(struct MHD_Connection *connection);

#endif
