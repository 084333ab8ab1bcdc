/* Two or three requests, one verdict (ledger_rows.h). Row 0 stands for no attempt: nobody is asked.
 */
#include "worker/ledger_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/ledger_request.h"
#include "worker/ledger_rows.h"
#include "worker/transfer.h"
#include "worker/worker.h"

struct lookup;

struct question {
    struct lookup *lookup;
    struct http_request_text text;
    enum ledger_row row;
};

struct lookup {
    struct question last, next, beyond;
    bool has_beyond;
    int outstanding;
    int64_t asked_mono_ms;
    char failure[160]; /* of a question without an answer, for people */
    lookup_done_cb *done;
    void *arg;
};

static struct lookup_result result_of(const struct lookup *lookup)
{
    static const struct {
        const char *code, *message;
    } words[] = {
        [LOOKUP_DELIVERED] = {"", "the ledger says that the target has it"},
        [LOOKUP_ABSENT] = {"absent", "the ledger has no row of it that is not over"},
        [LOOKUP_REFUSED] = {"ledger_failed", "the ledger says that the attempt has failed"},
        [LOOKUP_PRIOR_PENDING] = {"", "the target still owns the previous attempt"},
        [LOOKUP_INCONCLUSIVE] = {"inconclusive", "the ledger's rows cannot be read"},
        [LOOKUP_BROKEN] = {"", ""},
    };
    const enum lookup_verdict both = ledger_rows_verdict(lookup->last.row, lookup->next.row);
    const enum lookup_verdict verdict =
        lookup->has_beyond ? ledger_rows_with_beyond(both, lookup->beyond.row) : both;
    const char *failure = verdict == LOOKUP_INCONCLUSIVE ? lookup->failure : "";
    struct lookup_result result = lookup_result_make(verdict, "%s%s%s", words[verdict].message,
                                                     failure[0] ? ": " : "", failure);

    snprintf(result.code, sizeof(result.code), "%s", words[verdict].code);
    result.via = VIA_LEDGER;
    result.is_reached = verdict != LOOKUP_INCONCLUSIVE;
    result.asked_mono_ms = lookup->asked_mono_ms;
    return result;
}

static void lookup_free(struct lookup *lookup)
{
    http_request_text_done(&lookup->last.text);
    http_request_text_done(&lookup->next.text);
    http_request_text_done(&lookup->beyond.text);
    free(lookup);
}

static void note_failure(struct lookup *lookup, const struct transfer_result *answer)
{
    if (answer->status == 0) {
        snprintf(lookup->failure, sizeof(lookup->failure), "%.140s", answer->failure);
    } else {
        snprintf(lookup->failure, sizeof(lookup->failure), "it answered %d", answer->status);
    }
}

static void on_answer(const struct transfer_result *answer, void *arg)
{
    struct question *question = arg;
    struct lookup *lookup = question->lookup;

    question->row = ledger_answer_read(answer->status, answer->body);
    if (question->row == LEDGER_ROW_UNREAD) {
        note_failure(lookup, answer);
    }
    if (--lookup->outstanding > 0) {
        return;
    }
    const struct lookup_result result = result_of(lookup);

    lookup->done(&result, lookup->arg);
    lookup_free(lookup);
}

static int ask(struct worker *worker, const struct lookup_subject *subject,
               struct question *question, uint64_t row)
{
    const struct ledger_address address = {&subject->target, worker->settings->ledger_path};
    struct transfer_request request;

    if (row == 0) {
        question->row = LEDGER_ROW_ABSENT;
        return 0;
    }
    int err =
        ledger_request_status(&address, subject->entry, row,
                              worker->settings->ledger_lookup_timeout, &question->text, &request);

    if (err == 0) {
        err = transfer_start(worker->transfers, &request, NULL, on_answer, question);
    }
    question->lookup->outstanding += err == 0;
    return err;
}

int ledger_look_up(struct worker *worker, const struct lookup_subject *subject,
                   lookup_done_cb *done, void *arg)
{
    const uint64_t last = ledger_last_row(subject->entry, subject->attempts);
    struct lookup *lookup = calloc(1, sizeof(*lookup));

    if (!lookup) {
        return -ENOMEM;
    }
    *lookup = (struct lookup){
        .last = {.lookup = lookup, .row = LEDGER_ROW_UNREAD},
        .next = {.lookup = lookup, .row = LEDGER_ROW_UNREAD},
        .beyond = {.lookup = lookup, .row = LEDGER_ROW_UNREAD},
        .has_beyond =
            subject->status != STATUS_ERROR && subject->attempts + 1 == subject->kind->max_attempts,
        .asked_mono_ms = clock_mono_ms(),
        .done = done,
        .arg = arg,
    };
    http_request_text_init(&lookup->last.text);
    http_request_text_init(&lookup->next.text);
    http_request_text_init(&lookup->beyond.text);
    int err = ask(worker, subject, &lookup->next, last + 1);

    if (err == 0) {
        /* One that can't be asked stays unread: nothing follows from it. */
        (void)ask(worker, subject, &lookup->last, last);
        if (lookup->has_beyond) {
            (void)ask(worker, subject, &lookup->beyond, last + 2);
        }
        return 0;
    }
    if (err == -EINVAL) {
        const char *problem = lookup->next.text.problem;
        const struct lookup_result result = lookup_result_make(
            LOOKUP_BROKEN, "%s", problem[0] ? problem : "the look-up cannot be built");

        done(&result, arg);
        err = 0;
    }
    lookup_free(lookup);
    return err;
}
