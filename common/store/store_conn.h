/* One connection to the store: hiredis async on a libuv loop. Connects (TCP, Unix socket, AUTH,
 * SELECT), connects again with backoff, loads its scripts and again after NOSCRIPT, pipelines,
 * bounds what is outstanding, and turns every condition of the store into an `enum store_result`.
 * Holds no decisions. Contract §2; style "Libraries". */
#ifndef COMMON_STORE_STORE_CONN_H
#define COMMON_STORE_STORE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"

struct uv_loop_s;
struct redisReply;
struct store_conn;
struct store_script; /* embedded at build time: scripts.h */

enum store_result {
#define STORE_RESULT(id, name, help) STORE_##id,
#include "common/store/store_result.def"
    STORE_RESULT_COUNT,
};
const char *store_result_name(enum store_result result);
/* The sentence for people, from the table. */
const char *store_result_help(enum store_result result);
/* Reads the code word out of an error reply, anywhere in its head: scripts and proxies wrap them
 * ("ERR Error running script … -READONLY …", "ERR … script: …, @user_script: 5: OOM command not
 * allowed"). Pure. */
enum store_result store_result_from_error(const char *text, size_t len);

struct store_conn_options {
    const char *url; /* unix:///path[?db=N], valkey://[user[:password]@]host[:port][/db], redis://…;
                        copied */
    const char *password;     /* overrides the URL's; may be NULL; copied */
    uint32_t max_outstanding; /* calls without answer; beyond: STORE_FULL */
    int64_t connect_timeout_ms;
    int64_t command_timeout_ms; /* 0: none. An answer that is late drops the connection */
    int64_t reconnect_min_ms, reconnect_max_ms; /* backoff with jitter between tries */
    /* Told on the loop thread whenever the connection becomes usable (handshake done) or is lost,
     * and while it is down when the reason for that changes (not at each try). May close the
     * connection. May be NULL. */
    void (*on_state)(struct store_conn *conn, bool is_up, enum store_result why, void *arg);
    void *arg;
};

/* Whether a URL can be used at all: 0, or -EINVAL with a reason for people in `ret_reason` (static
 * string). */
int store_url_check(const char *url, const char **ret_reason);

/* Starts connecting; never blocks (host names are resolved off the loop). 0 or -errno. */
int store_conn_open(struct uv_loop_s *loop, const struct store_conn_options *options,
                    struct store_conn **ret);
/* Asynchronous: all outstanding calls get STORE_CUT, then `closed` runs once and the memory is
 * gone. NULL is fine. */
void store_conn_close(struct store_conn *conn, void (*closed)(void *arg), void *arg);
bool store_conn_is_up(const struct store_conn *conn);
uint32_t store_conn_outstanding(const struct store_conn *conn);

/* `reply` is NULL unless STORE_OK (or STORE_ERROR, then the error reply); it is dead once the
 * callback returns. A callback runs exactly once per call, on the loop thread, never before the
 * call returned. */
typedef void store_reply_cb(enum store_result result, const struct redisReply *reply, void *arg);

/* A plain command. Never fails: trouble arrives in the callback (also AWAY, FULL, and -ENOMEM as
 * FULL). */
void store_conn_command(struct store_conn *conn, size_t argc, const struct span *argv,
                        store_reply_cb *cb, void *arg);
/* EVALSHA with one key. `replicas` > 0: the answer counts only once WAIT reported that many
 * replicas, else STORE_NOT_DURABLE (sent in one pipeline with the script). NOSCRIPT loads the
 * script and repeats, invisibly. */
void store_conn_eval(struct store_conn *conn, const struct store_script *script, struct span key,
                     size_t argc, const struct span *argv, uint32_t replicas, store_reply_cb *cb,
                     void *arg);

#endif
