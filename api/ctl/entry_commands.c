/* Retry, dismiss, remove, edit, confirm: what people do to entries. */
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/run.h"

#include <stdio.h>

/* ---- several entries, one after the other ---- */

typedef int entry_fn(struct asking *asking, const char *id);

/* All are tried, whatever becomes of one; the first failure is the exit code. With nobody there, or
 * wrong usage, the rest would fare no better. */
static int each_entry(const struct options *options, entry_fn *fn)
{
    struct asking asking;
    int result = asking_open(&asking, options);

    for (int i = 1; result != EXIT_CODE_USAGE && options_argument(options, i); i++) {
        const int one = fn(&asking, options_argument(options, i));

        result = result == EXIT_CODE_OK ? one : result;
        if (one == EXIT_CODE_UNREACHABLE || one == EXIT_CODE_USAGE) {
            break;
        }
    }
    asking_close(&asking);
    return result;
}

static int ask_about(struct asking *asking, const char *method, const char *id, const char *behind,
                     answer_print_fn *print)
{
    struct call call;

    call_init(&call);
    int result = call_entry(asking->options, method, id, behind, &call);

    if (result == EXIT_CODE_OK) {
        result = asking_show(asking, &call, print);
    }
    call_done(&call);
    return result;
}

static int retry_one(struct asking *asking, const char *id)
{
    return ask_about(asking, "POST", id, "/retry", answer_print_retried);
}

int command_retry(const struct options *options)
{
    return each_entry(options, retry_one);
}

static int remove_one(struct asking *asking, const char *id)
{
    return ask_about(asking, "DELETE", id, "", answer_print_changed);
}

int command_remove(const struct options *options)
{
    return each_entry(options, remove_one);
}

/* ---- dismiss ---- */

/* Whether it has failed, or was given up before (which a repeat may say again). */
static int check_failed(struct asking *asking, const char *id)
{
    struct http_answer answer;
    struct call call;

    call_init(&call);
    int result = call_entry(asking->options, "GET", id, "", &call);

    if (result == EXIT_CODE_OK) {
        result = asking_call(asking, &call, &answer);
    }
    call_done(&call);
    if (result != EXIT_CODE_OK) {
        return result;
    }
    json_t *root = answer_parse(&answer);
    const char *status = answer_text(root, "status");

    http_answer_done(&answer);
    if (strcmp(status, "error") != 0 && strcmp(status, "discarded") != 0) {
        asking_explain(asking, "not_failed", "Only an entry that failed is dismissed", id, status,
                       "`outboxctl remove` takes any other out, whatever its status.");
        result = EXIT_CODE_CONFLICT;
    }
    json_decref(root);
    return result;
}

static int dismiss_one(struct asking *asking, const char *id)
{
    const int result = check_failed(asking, id);

    return result == EXIT_CODE_OK ? remove_one(asking, id) : result;
}

int command_dismiss(const struct options *options)
{
    return each_entry(options, dismiss_one);
}

/* ---- edit ---- */

static int make_edit(const struct options *options, struct call *call)
{
    const char *text = option_text(options, OPTION_TEXT);
    const char *text_file = option_text(options, OPTION_TEXT_FILE);
    const char *payload_file = option_text(options, OPTION_PAYLOAD_FILE);
    const int result = call_entry(options, "PATCH", options_argument(options, 1), "", call);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    if (text && text_file) {
        options_complain(options, "--text and --text-file are two texts");
        return EXIT_CODE_USAGE;
    }
    if (payload_file && option_is_set(options, OPTION_PAYLOAD)) {
        options_complain(options, "--payload and --payload-file are two payloads");
        return EXIT_CODE_USAGE;
    }
    if ((text && !call_add_text(options, call, "text", text)) ||
        (text_file && !call_add_text_file(options, call, "text", text_file)) ||
        !call_add_json_option(options, call, "payload", OPTION_PAYLOAD) ||
        (payload_file && !call_add_json_file(options, call, "payload", payload_file)) ||
        !call_add_json_option(options, call, "model", OPTION_MODEL)) {
        return EXIT_CODE_USAGE;
    }
    if (call->body.len == 0) {
        options_complain(options, "edit needs --text, --text-file, --payload, --payload-file or "
                                  "--model");
        return EXIT_CODE_USAGE;
    }
    call_end_body(call);
    return EXIT_CODE_OK;
}

int command_edit(const struct options *options)
{
    return asking_run(options, make_edit, answer_print_changed);
}

/* ---- confirm ---- */

/* By entry ID, or by session and clientMessageID. */
static int make_confirm(const struct options *options, struct call *call)
{
    const char *who = options_argument(options, 1);
    const char *client_message_id = options_argument(options, 2);
    const int result = call_workspace(options, "POST", "/confirm", call);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    if ((client_message_id && !name_is_session(options, who)) ||
        !call_add_text(options, call, client_message_id ? "sessionID" : "entryID", who) ||
        (client_message_id &&
         !call_add_text(options, call, "clientMessageID", client_message_id)) ||
        !call_add_json_option(options, call, "result", OPTION_RESULT)) {
        return EXIT_CODE_USAGE;
    }
    call_end_body(call);
    return EXIT_CODE_OK;
}

int command_confirm(const struct options *options)
{
    return asking_run(options, make_confirm, answer_print_members);
}
