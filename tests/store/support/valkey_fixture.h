/* A private Valkey for tests: its own folder, its own Unix socket (a TCP port if asked), killed
 * when the test ends in whatever way. Synchronous; for test programs only. Failures print why and
 * exit(1): a test without its server says nothing. The server is valkey-server, else redis-server,
 * or what OUTBOXD_TEST_SERVER names. */
#ifndef TESTS_STORE_SUPPORT_VALKEY_FIXTURE_H
#define TESTS_STORE_SUPPORT_VALKEY_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct redisReply;

enum valkey_fsync {
    VALKEY_FSYNC_ALWAYS,
    VALKEY_FSYNC_EVERYSEC,
    VALKEY_AOF_OFF,
};
struct valkey_options {
    enum valkey_fsync fsync;
    bool tcp;                       /* also on 127.0.0.1, a free port */
    const char *password;           /* requirepass; NULL: none */
    const char *const *extra;       /* further arguments ("--maxmemory", "1mb", NULL); NULL: none */
    const char *const *environment; /* further variables ("NAME=value", NULL); NULL: none */
};

struct valkey {
    char dir[64]; /* the server's folder: data, log, socket */
    char socket[96];
    char url[112];    /* unix:// URL of the socket, without password */
    char tcp_url[64]; /* valkey://127.0.0.1:port, empty without TCP */
    int port;         /* 0 without TCP */
    pid_t pid;        /* 0: not running */
    struct valkey_options options;
};

/* Starts a server in a new folder and waits until it answers. `options` NULL: all zero. Its strings
 * must outlive it. */
struct valkey *valkey_start(const struct valkey_options *options);
/* Kills the server with SIGKILL and removes its folder; accepts NULL, nulls the pointer. */
void valkey_stop(struct valkey **valkey);

/* SIGKILL, reaped. The folder stays. */
void valkey_kill(struct valkey *valkey);
/* SIGSTOP and SIGCONT: a server that is there and does not answer. */
void valkey_freeze(struct valkey *valkey);
void valkey_thaw(struct valkey *valkey);
/* Starts it again on the same folder, socket and port. */
void valkey_restart(struct valkey *valkey);
/* The same, but returns at once, while it may still be loading. */
void valkey_launch(struct valkey *valkey);

/* One command on a fresh connection, words as in redisCommand (%s, %b). The reply may be an error;
 * free it with freeReplyObject. NULL: not connected. */
struct redisReply *valkey_command(struct valkey *valkey, const char *format, ...);
/* For set-up: the command must answer without error. Returns the integer of an integer reply, else
 * 0. */
int64_t valkey_do(struct valkey *valkey, const char *format, ...);

#endif
