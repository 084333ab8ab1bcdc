/* `show`: an entry, what the entries that it waits for are, and the events of its journey. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/event_line.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/journey.h"
#include "api/ctl/print.h"
#include "api/ctl/run.h"
#include "api/ctl/style.h"
#include "common/base/clock.h"
#include "common/base/err.h"

#define OTHERS_MAX 20 /* of a long list the first */
#define TEXT_MAX   ((size_t)512 * 1024 * 1024)

/* ---- what others are ---- */

static void look_at_other(struct asking *asking, const char *id, json_t *others)
{
    struct http_answer answer;
    struct call call;

    call_init(&call);
    if (call_entry(asking->options, "GET", id, "", &call) == EXIT_CODE_OK &&
        asking_try(asking, &call, &answer) == 0) {
        json_t *root = answer.status == 200 ? answer_parse(&answer) : NULL;

        if (root) {
            json_object_set_new(others, id, json_string(answer_text(root, "status")));
        }
        json_decref(root);
        http_answer_done(&answer);
    }
    call_done(&call);
}

static json_t *look_at_others(struct asking *asking, const json_t *entry)
{
    json_t *others = json_object();
    const json_t *id;
    size_t i;

    json_array_foreach(json_object_get(entry, "dependsOn"), i, id)
    {
        if (i < OTHERS_MAX && json_string_value(id)) {
            look_at_other(asking, json_string_value(id), others);
        }
    }
    return others;
}

/* ---- showing ---- */

static void add_journey(const struct journey *journey, const struct answer_view *view,
                        struct buf *out)
{
    const json_t *event;
    int64_t previous_ms = 0;
    size_t i;

    (void)buf_append_str(out, "\n");
    style_add(out, STYLE_TITLE, view->is_coloured, span_of("Journey"));
    (void)buf_append_str(out, "\n");
    if (journey->note[0]) {
        (void)buf_appendf(out, "  (%s)\n", journey->note);
    }
    json_array_foreach(journey->events, i, event)
    {
        event_line_journey(event, previous_ms, view, out);
        (void)print_parse_time(answer_text(event, "at"), &previous_ms);
    }
}

/* What a person can do about it. */
static void add_advice(const char *workspace, const json_t *entry, struct buf *out)
{
    const char *id = answer_text(entry, "id"), *status = answer_text(entry, "status");

    if (strcmp(status, "error") == 0) {
        (void)buf_appendf(out, "\nSend it again: outboxctl retry %s %s\n", workspace, id);
        (void)buf_appendf(out, "Give it up:    outboxctl dismiss %s %s\n", workspace, id);
    } else if (strcmp(status, "parked") == 0) {
        (void)buf_appendf(out, "\nLet all that was parked go on: outboxctl unpark %s\n", workspace);
    }
}

static int show_text(struct asking *asking, const struct http_answer *answer, const json_t *root)
{
    const char *workspace = options_argument(asking->options, 0);
    struct answer_view view = {
        .now_ms = clock_wall_ms(),
        .is_coloured = style_is_wanted(asking->options),
        .others = look_at_others(asking, root),
    };
    struct journey journey;
    struct buf out;
    int result;

    buf_init(&out, TEXT_MAX);
    if (answer_print_entry(root, (struct span){answer->body.bytes, answer->body.len}, &view,
                           &out) == -EINVAL) {
        result = asking_explain_nonsense(asking);
    } else {
        journey_read(asking, workspace, root, &journey);
        add_journey(&journey, &view, &out);
        journey_done(&journey);
        add_advice(workspace, root, &out);
        result = output_write(&out);
    }
    buf_done(&out);
    json_decref((json_t *)(uintptr_t)view.others);
    return result;
}

/* The entry as it came, with the journey as its last member if it is wanted. */
static int show_json(struct asking *asking, const struct http_answer *answer, const json_t *root)
{
    const char *end = memrchr(answer->body.bytes, '}', answer->body.len);
    struct journey journey;
    struct buf out;

    if (!option_is_set(asking->options, OPTION_JOURNEY)) {
        answer_pass_through(answer);
        return EXIT_CODE_OK;
    }
    journey_read(asking, options_argument(asking->options, 0), root, &journey);
    AUTO_FREE char *events = json_dumps(journey.events, JSON_COMPACT);

    buf_init(&out, TEXT_MAX);
    (void)buf_append(&out, answer->body.bytes, (size_t)(end - answer->body.bytes));
    (void)buf_appendf(&out, ",\"journey\":%s}\n", events ? events : "[]");
    journey_done(&journey);
    const int result = output_write(&out);

    buf_done(&out);
    return result;
}

static int show(struct asking *asking)
{
    struct http_answer answer;
    struct call call;

    call_init(&call);
    int result =
        call_entry(asking->options, "GET", options_argument(asking->options, 1), "", &call);

    if (result == EXIT_CODE_OK) {
        result = asking_call(asking, &call, &answer);
    }
    call_done(&call);
    if (result != EXIT_CODE_OK) {
        return result;
    }
    json_t *root = answer_parse(&answer);

    if (!answer_text(root, "id")[0]) {
        result = asking_explain_nonsense(asking);
    } else {
        result = option_is_set(asking->options, OPTION_JSON) ? show_json(asking, &answer, root)
                                                             : show_text(asking, &answer, root);
    }
    json_decref(root);
    http_answer_done(&answer);
    return result;
}

int command_show(const struct options *options)
{
    struct asking asking;
    int result = asking_open(&asking, options);

    if (result == EXIT_CODE_OK) {
        result = show(&asking);
        asking_close(&asking);
    }
    return result;
}
