/* The two requests that a ledger understands: Deliver and GetDeliveryStatus, Connect's unary JSON.
 * Nothing is sent here. Contract §4 `ledger`. */
#ifndef WORKER_LEDGER_REQUEST_H
#define WORKER_LEDGER_REQUEST_H

#include <stdint.h>

#include "common/store/entry.h"
#include "worker/http_request.h"

struct transfer_request;

/* Where a ledger is asked. Strings belong to the settings and the target. */
struct ledger_address {
    const struct target *target;
    const char *path; /* of the service: setting ledger.path */
};

/* The row of the entry's last counted attempt when `attempts` were counted: 0 is none. The next
 * attempt's row is the one after it. A person's retry raises the base, so that no row is used
 * twice. */
uint64_t ledger_last_row(const struct entry *entry, uint32_t attempts);

/* Both fill *ret (its strings live in `text`, the entry, the target). Return 0, or -EINVAL with
 * `text->problem`: final; -ENOMEM. `sends`: number of the request, for its header. */
int ledger_request_deliver(const struct ledger_address *address, const struct entry *entry,
                           uint64_t row, uint32_t sends, int64_t timeout_ms,
                           struct http_request_text *text, struct transfer_request *ret);
int ledger_request_status(const struct ledger_address *address, const struct entry *entry,
                          uint64_t row, int64_t timeout_ms, struct http_request_text *text,
                          struct transfer_request *ret);

#endif
