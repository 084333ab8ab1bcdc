/* The two ways of looking a prompt up. */
#include "worker/opencode_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/core/buf.h"
#include "common/core/keys.h"
#include "worker/opencode_answer.h"
#include "worker/opencode_ids.h"
#include "worker/opencode_request.h"
#include "worker/transfer.h"
#include "worker/worker.h"

#define URL_MAX        8192
#define CURSOR_MAX     1024
#define PAGE_MESSAGES  500
#define SCAN_MESSAGES  (40 * PAGE_MESSAGES) /* beyond: inconclusive */
#define PAGE_BYTES_MAX (64U << 20)
#define SKEW_MS        120000 /* the target's clock against the store's */

struct lookup {
    struct worker *worker;
    const struct lookup_subject *subject;
    lookup_done_cb *done;
    void *arg;
    struct buf url;
    struct opencode_ids ids;
    int64_t asked_mono_ms, deadline_mono_ms;
    /* the scan */
    struct opencode_search search;
    size_t page_limit, seen;
    char cursor[CURSOR_MAX]; /* "" : the newest page */
};

static void end(struct lookup *lookup, struct lookup_result result)
{
    static const char *const codes[] = {
        [LOOKUP_ABSENT] = "absent", [LOOKUP_INCONCLUSIVE] = "inconclusive", [LOOKUP_BROKEN] = ""};
    const char *code = codes[result.verdict] ? codes[result.verdict] : "";

    snprintf(result.code, sizeof(result.code), "%s", code);
    result.asked_mono_ms = lookup->asked_mono_ms;
    lookup->done(&result, lookup->arg);
    buf_done(&lookup->url);
    free(lookup);
}

/* What any answer but the expected one means. */
static struct lookup_result no_proof(const struct transfer_result *answer)
{
    struct lookup_result result;

    if (answer->status > 0) {
        return lookup_result_make(LOOKUP_INCONCLUSIVE,
                                  "the look-up answered %d%s, which proves nothing", answer->status,
                                  answer->is_complete ? "" : " and was cut");
    }
    result = lookup_result_make(LOOKUP_INCONCLUSIVE, "the look-up failed: %.200s", answer->failure);
    result.is_reached = answer->is_started;
    return result;
}

static int ask(struct lookup *lookup, const char *rest, transfer_done_cb *answered)
{
    const struct lookup_subject *subject = lookup->subject;
    const int64_t left = lookup->deadline_mono_ms - clock_mono_ms();

    buf_reset(&lookup->url);
    const int err =
        opencode_message_url(&subject->target, subject->entry->session, rest, &lookup->url);
    struct transfer_request request =
        opencode_get(&subject->target, lookup->url.bytes, left > 1 ? left : 1);

    request.max_response_bytes = PAGE_BYTES_MAX;
    request.is_lookup = true;
    return err == 0 ? transfer_start(lookup->worker->transfers, &request, NULL, answered, lookup)
                    : err;
}

/* ---- by ID ---- */

static void on_message(const struct transfer_result *answer, void *arg)
{
    struct lookup *lookup = arg;
    const enum opencode_message message =
        answer->is_complete
            ? opencode_read_message(answer->status, answer->body, lookup->ids.message)
            : OPENCODE_MESSAGE_UNKNOWN;

    switch (message) {
    case OPENCODE_MESSAGE_STORED:
        end(lookup, lookup_result_make(LOOKUP_DELIVERED, "the agent has it"));
        return;
    case OPENCODE_MESSAGE_EMPTY:
        end(lookup,
            lookup_result_make(LOOKUP_ABSENT, "the agent has the message without its text"));
        return;
    case OPENCODE_MESSAGE_NOT_THERE:
        end(lookup, lookup_result_make(LOOKUP_ABSENT, "the agent proved that it has not got it"));
        return;
    case OPENCODE_MESSAGE_UNKNOWN:
        break;
    }
    end(lookup, no_proof(answer));
}

static int ask_message(struct lookup *lookup)
{
    char rest[OPENCODE_ID_LEN + 2];

    snprintf(rest, sizeof(rest), "/%s", lookup->ids.message);
    return ask(lookup, rest, on_message);
}

/* ---- the transcript ---- */

static int ask_page(struct lookup *lookup);

/* The page did not fit: fewer messages at once, from the same place. */
static bool ask_smaller_page(struct lookup *lookup, const struct transfer_result *answer)
{
    if (!answer->is_too_long || lookup->page_limit == 1) {
        return false;
    }
    lookup->page_limit = lookup->page_limit > 5 ? lookup->page_limit / 5 : 1;
    return ask_page(lookup) == 0;
}

/* Where the next page begins. False: there is none. */
static bool take_cursor(struct lookup *lookup, const char *cursor)
{
    const int64_t len =
        cursor ? percent_encode(cursor, strlen(cursor), lookup->cursor, sizeof(lookup->cursor)) : 0;

    return len > 0 && len < (int64_t)sizeof(lookup->cursor);
}

static struct lookup_result scan_result(struct lookup *lookup, const struct opencode_page *page,
                                        const struct transfer_result *answer, bool *ret_goes_on)
{
    const bool has_cursor = answer->next_cursor && answer->next_cursor[0];

    *ret_goes_on = false;
    if (page->is_found) {
        return lookup_result_make(LOOKUP_DELIVERED, "the transcript has it");
    }
    if (!page->is_readable) {
        return no_proof(answer);
    }
    lookup->seen += page->count;
    /* A full page without a cursor may come from a version that knows no pages: no end is proven.
     */
    if (page->is_past_start || (!has_cursor && page->count < lookup->page_limit)) {
        if (lookup->search.has_passed_one && !lookup->search.has_met_until) {
            return lookup_result_make(LOOKUP_INCONCLUSIVE,
                                      "the transcript has such a message, and not the one any more "
                                      "that tells whose it is");
        }
        return lookup_result_make(LOOKUP_ABSENT,
                                  "the transcript proves that the agent has not got it");
    }
    if (lookup->seen < SCAN_MESSAGES && clock_mono_ms() < lookup->deadline_mono_ms &&
        take_cursor(lookup, answer->next_cursor)) {
        *ret_goes_on = true;
    }
    return lookup_result_make(LOOKUP_INCONCLUSIVE,
                              "the newest %zu messages of the transcript prove nothing",
                              lookup->seen);
}

static void on_page(const struct transfer_result *answer, void *arg)
{
    struct lookup *lookup = arg;
    bool goes_on = false;

    if (ask_smaller_page(lookup, answer)) {
        return;
    }
    if (answer->status != 200 || !answer->is_complete) {
        end(lookup, no_proof(answer));
        return;
    }
    const struct opencode_page page = opencode_read_page(answer->body, &lookup->search);
    const struct lookup_result result = scan_result(lookup, &page, answer, &goes_on);

    if (!goes_on || ask_page(lookup) < 0) {
        end(lookup, result);
    }
}

static int ask_page(struct lookup *lookup)
{
    char rest[CURSOR_MAX + 64];

    snprintf(rest, sizeof(rest), "?limit=%zu%s%s", lookup->page_limit,
             lookup->cursor[0] ? "&before=" : "", lookup->cursor);
    return ask(lookup, rest, on_page);
}

/* Start of the send window. A claim for sending has moved lastAttemptAt already. */
static int64_t window_start_ms(const struct lookup_subject *subject)
{
    const struct entry *entry = subject->entry;
    const int64_t start =
        subject->status == STATUS_DELIVERING ? entry->first_claim_at_ms : entry->last_attempt_at_ms;

    return start > 0 ? start : entry->accepted_at_ms;
}

/* ---- */

int opencode_look_up(struct worker *worker, const struct lookup_subject *subject,
                     lookup_done_cb *done, void *arg)
{
    const struct entry *entry = subject->entry;
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    int err = -ENOMEM;

    if (!lookup) {
        return err;
    }
    *lookup = (struct lookup){
        .worker = worker,
        .subject = subject,
        .done = done,
        .arg = arg,
        .asked_mono_ms = clock_mono_ms(),
        .deadline_mono_ms = clock_mono_ms() + worker->settings->verify_timeout,
        .search = {.text = entry->body.text,
                   .not_before_ms = window_start_ms(subject) - SKEW_MS,
                   .baseline = entry->baseline,
                   .until = entry->until},
        .page_limit = PAGE_MESSAGES,
    };
    buf_init(&lookup->url, URL_MAX);
    if (entry->baseline.len > 0) {
        err = ask_page(lookup);
    } else if (opencode_ids_of(entry->id, &lookup->ids) == 0) {
        err = ask_message(lookup);
    } else {
        err = -EINVAL;
    }
    if (err == -ENOMEM) {
        buf_done(&lookup->url);
        free(lookup);
        return err;
    }
    if (err < 0) {
        end(lookup, lookup_result_make(LOOKUP_BROKEN, "no agent can be asked: %s",
                                       subject->target.url ? "the entry's ID or the URL is none"
                                                           : "no target is configured"));
    }
    return 0;
}
