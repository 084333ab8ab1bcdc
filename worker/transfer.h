/* One HTTP request by libcurl, exactly one: no redirect, no proxy, no netrc, no hidden repeat on a
 * connection that died (contract §4, "No hidden re-send"). Knows no entry. Loop thread only. */
#ifndef WORKER_TRANSFER_H
#define WORKER_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"

struct uv_loop_s;
struct address_rules;
struct transfers;
struct transfer;

#define TRANSFER_HEADERS_MAX 16

struct transfer_request {
    const char *method, *url;                  /* copied */
    const char *headers[TRANSFER_HEADERS_MAX]; /* "Name: value"; copied */
    size_t header_count;
    struct span body; /* must live until `done` ran; sent if method is not GET or HEAD */
    const char *username,
        *password;      /* basic authentication if username is not NULL; must live until done */
    int64_t timeout_ms; /* for the whole */
    /* From the request's start to the first byte of an answer; 0: only the whole is limited. */
    int64_t first_byte_timeout_ms;
    /* For whoever observes (transfers_observe): whom it goes to and for whom it is. Must live until
     * done; NULL, empty: nobody's. */
    const char *target;
    struct span subject;
    bool is_lookup; /* asks about something, changes nothing */
    /* Asked when the connection is there and the request is about to be written, with
     * transfer_start's `arg`: may it still start? NULL: it may. */
    bool (*may_start)(void *arg);
    size_t max_response_bytes; /* 0: as the limits say */
};

struct transfer_result {
    bool is_started;         /* the connection was there and the request was about to be written */
    int status;              /* of the final answer; 0: none */
    bool is_complete;        /* its headers ended, and its body did as announced */
    bool is_too_long;        /* its body was longer than the limit, and is cut */
    bool is_refused_address; /* the address rules forbade it: not even connected */
    bool is_too_late;        /* may_start said no */
    struct span body;        /* at most the limit; alive during the callback */
    /* NULL if absent; alive during the callback. next_cursor: X-Next-Cursor */
    const char *content_type, *retry_after, *etag, *next_cursor;
    const char *failure; /* what went wrong, for people; "" if nothing did */
};
/* Runs once, in a later turn of the loop. The transfer is gone afterwards. */
typedef void transfer_done_cb(const struct transfer_result *result, void *arg);

struct transfer_limits {
    int64_t connect_timeout_ms;
    const char *ca_file; /* PEM; NULL: the system's; must live as long as the transfers */
    size_t max_response_bytes;
    uint32_t max_connections; /* kept open at most */
};
int transfers_create(struct uv_loop_s *loop, const struct transfer_limits *limits,
                     const struct address_rules *rules, struct transfers **ret);
/* No transfer may be running. */
void transfers_destroy(struct transfers **transfers);

/* Told of each transfer that ended, before its own callback. */
struct transfer_report {
    const char *target; /* of the request: never NULL */
    struct span subject;
    bool is_lookup;
    int64_t began_mono_ms;
    const struct transfer_result *result;
};
typedef void transfer_observer_cb(const struct transfer_report *report, void *arg);
void transfers_observe(struct transfers *transfers, transfer_observer_cb *observer, void *arg);

/* 0, or -ENOMEM, -EINVAL (the URL is none, or not one of ours). `started` runs when the request is
 * about to be written; may be NULL. */
int transfer_start(struct transfers *transfers, const struct transfer_request *request,
                   void (*started)(void *arg), transfer_done_cb *done, void *arg);

#endif
