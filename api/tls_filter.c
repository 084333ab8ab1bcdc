/* Stands in front of gnutls_handshake and gnutls_record_recv, for the HTTP library's calls.
 *
 * Why: with epoll, libmicrohttpd (0.9.75 and 1.0.1) takes a connection whose TLS handshake waits
 * for its client for one that can be read, and asks again and again without ever sleeping.
 * Measured: a single client that sends its first message and then nothing takes the whole
 * processor, and within libuv 1.44, whose timers of 0 then run for ever, the whole process. Only
 * gnutls_record_recv's "not now" makes it wait for the socket. So the handshake is done from within
 * that one: the library is told at once that it is over, and its first attempt to read carries it
 * on, as often as needed.
 *
 * The library offers no hook for that; but it calls GnuTLS through the dynamic linker, which finds
 * these. What the handshake sends fits into a new connection's socket buffer; if it ever did not,
 * the client would be cut at the time limit of its first request's head. */
#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#define WARNINGS_MAX 8 /* alerts that do not end a handshake */

typedef int handshake_fn(gnutls_session_t session);
typedef ssize_t recv_fn(gnutls_session_t session, void *bytes, size_t size);

static void *find(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (!function) {
        abort(); /* linked without GnuTLS: can't be */
    }
    return function;
}

int gnutls_handshake(gnutls_session_t session)
{
    (void)session;
    return GNUTLS_E_SUCCESS;
}

/* Ends it, and says why as the protocol has it: the library would only hang up. */
static ssize_t refuse(gnutls_session_t session, int err)
{
    (void)gnutls_alert_send_appropriate(session, err);
    return GNUTLS_E_INVALID_SESSION;
}

ssize_t gnutls_record_recv(gnutls_session_t session, void *bytes, size_t size)
{
    static handshake_fn *handshake;
    static recv_fn *record_recv;

    if (!handshake) {
        /* POSIX: a function's address fits into a pointer to void. */
        *(void **)&handshake = find("gnutls_handshake");
        *(void **)&record_recv = find("gnutls_record_recv");
    }
    const ssize_t got = record_recv(session, bytes, size);

    if (got != GNUTLS_E_UNAVAILABLE_DURING_HANDSHAKE) {
        return got;
    }
    int err = GNUTLS_E_AGAIN;

    for (unsigned i = 0; i < WARNINGS_MAX; i++) {
        err = handshake(session);
        if (err == GNUTLS_E_SUCCESS) {
            return record_recv(session, bytes, size);
        }
        if (err == GNUTLS_E_AGAIN || err == GNUTLS_E_INTERRUPTED) {
            return err;
        }
        if (gnutls_error_is_fatal(err)) {
            break;
        }
    }
    return refuse(session, err);
}
