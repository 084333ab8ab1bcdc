/* The look-up is the executor's, the decision sweep_step.h's, the change one script. */
#include "worker/sweep_entry.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/core/keys.h"
#include "common/store/store_sweep.h"
#include "worker/claim.h"
#include "worker/executor.h"
#include "worker/sweep_step.h"
#include "worker/worker.h"

struct swept {
    struct worker *worker;
    char workspace[WORKSPACE_ENC_MAX + 1];
    struct entry *entry; /* owned copy */
    struct json_t *target_owner;
    struct lookup_subject subject;
    struct sweep_subject rules;
    enum sweep_action action;
    bool has_answered;
    sweep_entry_done_cb *done;
    void *arg;
};

static void swept_free(struct swept *swept)
{
    json_decref(swept->target_owner);
    free(swept->entry);
    free(swept);
}

static void end(struct swept *swept)
{
    swept->done(swept->workspace, swept->has_answered, swept->arg);
    swept_free(swept);
}

static void count(const struct swept *swept, enum label_sweep_outcome outcome)
{
    metrics_add(swept->worker->metrics, METRIC_parked_sweep_outcomes_total, outcome, 1);
}

static enum label_sweep_outcome outcome_of(enum sweep_action action)
{
    switch (action) {
    case SWEEP_COMPLETE:
        return LABEL_SWEEP_OUTCOME_COMPLETED;
    case SWEEP_TO_PENDING:
    case SWEEP_TO_VERIFYING:
        return LABEL_SWEEP_OUTCOME_REARMED;
    case SWEEP_STAY:
        return LABEL_SWEEP_OUTCOME_STAYED;
    case SWEEP_NOTHING_KNOWN:
        break;
    }
    return LABEL_SWEEP_OUTCOME_INDETERMINATE;
}

static enum entry_status status_of(enum sweep_action action)
{
    switch (action) {
    case SWEEP_COMPLETE:
        return STATUS_ENDED;
    case SWEEP_TO_PENDING:
        return STATUS_PENDING;
    case SWEEP_TO_VERIFYING:
        return STATUS_VERIFYING;
    case SWEEP_STAY:
    case SWEEP_NOTHING_KNOWN:
        break;
    }
    return STATUS_ERROR;
}

static void on_settled(enum store_result result, bool yes, void *arg)
{
    struct swept *swept = arg;
    struct worker *worker = swept->worker;

    if (result != STORE_OK) {
        count(swept, LABEL_SWEEP_OUTCOME_INDETERMINATE); /* the next pass finds it as it is */
    } else if (!yes) {
        count(swept, LABEL_SWEEP_OUTCOME_STAYED); /* somebody else was there first */
    } else {
        count(swept, outcome_of(swept->action));
        if (!worker->is_draining) {
            scheduler_mark(worker->scheduler,
                           partition_of(swept->workspace, strlen(swept->workspace)));
        }
    }
    end(swept);
}

static void settle(struct swept *swept, const struct sweep_step *step, enum sent_via via)
{
    const struct sweep_settle_request request = {
        .workspace = span_of(swept->workspace),
        .id = swept->entry->id,
        .attempts = swept->entry->attempts,
        .sends = swept->entry->sends,
        .error_code = swept->entry->error_code,
        .to = status_of(step->action),
        .new_attempts = step->attempts,
        .via = via,
    };

    store_sweep_settle(swept->worker->store, &request, on_settled, swept);
}

static void on_looked_up(const struct lookup_result *result, void *arg)
{
    struct swept *swept = arg;
    const struct sweep_step step = sweep_step(&swept->rules, result->verdict);

    swept->action = step.action;
    swept->has_answered = step.action != SWEEP_NOTHING_KNOWN;
    if (swept->has_answered) {
        count(swept, LABEL_SWEEP_OUTCOME_VERIFIED);
    }
    if (status_of(step.action) != STATUS_ERROR || step.attempts != swept->entry->attempts) {
        settle(swept, &step, result->via);
        return;
    }
    count(swept, outcome_of(step.action));
    end(swept);
}

/* Whom to ask; NULL: nobody can tell any more, as the configuration is now. */
static const struct executor *executor_for(struct swept *swept, const struct swept_entry *entry)
{
    const struct worker *worker = swept->worker;
    struct lookup_subject *subject = &swept->subject;
    const struct span code = swept->entry->error_code;
    const struct executor *executor;

    subject->kind =
        settings_kind(worker->settings, swept->entry->body.kind.ptr, swept->entry->body.kind.len);
    if (!swept->entry->is_readable || !subject->kind || !kind_can_look_up(subject->kind) ||
        target_read(entry->target_conf, &worker->target, span_of(swept->workspace),
                    &subject->target, &swept->target_owner) < 0) {
        return NULL;
    }
    executor = executor_of(&subject->target, subject->kind);
    swept->rules = (struct sweep_subject){
        .is_ledger = executor->owns_attempts,
        .is_unverifiable = span_equal(code, span_of(error_code_name(CODE_UNVERIFIABLE))),
        .attempts = swept->entry->attempts,
        .max_attempts = subject->kind->max_attempts,
    };
    return swept->rules.is_ledger || swept->rules.is_unverifiable ? executor : NULL;
}

int sweep_entry_start(struct worker *worker, const struct swept_entry *entry,
                      sweep_entry_done_cb *done, void *arg)
{
    struct swept *swept = calloc(1, sizeof(*swept));
    struct entry *copy = swept ? entry_copy(&entry->entry) : NULL;
    const struct executor *executor;
    int err = -ENOMEM;

    if (!copy || entry->workspace.len >= sizeof(swept->workspace)) {
        free(copy);
        free(swept);
        return err;
    }
    swept->worker = worker;
    swept->entry = copy;
    swept->done = done;
    swept->arg = arg;
    memcpy(swept->workspace, entry->workspace.ptr, entry->workspace.len);
    executor = executor_for(swept, entry);
    if (!executor) {
        count(swept, LABEL_SWEEP_OUTCOME_INDETERMINATE);
        swept->has_answered = true; /* which says nothing about its target */
        end(swept);
        return 0;
    }
    swept->subject.workspace = span_of(swept->workspace);
    swept->subject.entry = copy;
    swept->subject.status = STATUS_ERROR;
    swept->subject.attempts = copy->attempts;
    err = executor->look_up(worker, &swept->subject, on_looked_up, swept);
    if (err < 0) {
        swept_free(swept);
    }
    return err;
}
