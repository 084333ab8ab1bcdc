/* `send`: the same request, with the same clientMessageID, until the server has the message. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "api/ctl/run.h"
#include "api/ctl/send_policy.h"
#include "api/ctl/style.h"
#include "common/base/clock.h"

#define ID_BYTES    16
#define ID_TEXT_MAX (2 * ID_BYTES + 8)
#define TRY_MS      60000
#define TEXT_ROOM   ((size_t)64 * 1024)

struct sending {
    struct asking asking;
    const struct options *options;
    struct call call;
    const char *client_message_id;
    char made_id[ID_TEXT_MAX];
    int64_t deadline_ms; /* monotonic; INT64_MAX: none */
    enum send_trouble told;
};

/* ---- the request ---- */

static int make_id(struct sending *sending)
{
    unsigned char random[ID_BYTES];
    int len = snprintf(sending->made_id, sizeof(sending->made_id), "ctl-");

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        perror("outboxctl: no random numbers");
        return EXIT_CODE_FAILED;
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        len += snprintf(sending->made_id + len, sizeof(sending->made_id) - (size_t)len, "%02x",
                        random[i]);
    }
    sending->client_message_id = sending->made_id;
    return EXIT_CODE_OK;
}

static const char *mistake_of(const struct options *options)
{
    const char *text = options_argument(options, 2);
    const bool has_text_file = option_is_set(options, OPTION_TEXT_FILE);
    const bool has_payload = option_is_set(options, OPTION_PAYLOAD);
    const bool has_payload_file = option_is_set(options, OPTION_PAYLOAD_FILE);

    if (option_is_set(options, OPTION_ID) && option_text(options, OPTION_ID)[0] == '\0') {
        return "--id must not be empty: without a clientMessageID no repeat is safe";
    }
    if (text && has_text_file) {
        return "TEXT and --text-file are two texts";
    }
    if (has_payload && has_payload_file) {
        return "--payload and --payload-file are two payloads";
    }
    if (!text && !has_text_file && !has_payload && !has_payload_file) {
        return "send needs a TEXT (- reads standard input), --text-file, or --kind with --payload";
    }
    if ((has_payload || has_payload_file) && !option_is_set(options, OPTION_KIND)) {
        return "a payload needs --kind";
    }
    if (!options_argument(options, 1) && !option_is_set(options, OPTION_KIND)) {
        return "send needs a SESSION, or --kind with a lane of its own";
    }
    return NULL;
}

/* IDs apart by commas. */
static bool add_depends_on(const struct options *options, struct call *call)
{
    const char *ids = option_text(options, OPTION_DEPENDS_ON);
    struct buf json;
    bool is_added = true;

    if (!ids) {
        return true;
    }
    buf_init(&json, TEXT_ROOM);
    for (const char *at = ids; is_added; at++) {
        const size_t len = strcspn(at, ",");

        is_added = len > 0 && strcspn(at, "\"\\") >= len;
        (void)buf_appendf(&json, "%s\"%.*s\"", at == ids ? "[" : ",", (int)len, at);
        at += len;
        if (*at == '\0') {
            break;
        }
    }
    (void)buf_append_str(&json, "]");
    if (!is_added || json.failed) {
        options_complain(options, "--depends-on needs entry IDs, apart by commas");
        is_added = false;
    }
    is_added =
        is_added && call_add_json(options, call, "dependsOn", (struct span){json.bytes, json.len});
    buf_done(&json);
    return is_added;
}

static bool add_optional_text(const struct options *options, struct call *call, const char *name,
                              const char *text)
{
    return !text || call_add_text(options, call, name, text);
}

static bool make_body(struct sending *sending)
{
    const struct options *options = sending->options;
    struct call *call = &sending->call;
    const char *text = options_argument(options, 2);
    const char *payload_file = option_text(options, OPTION_PAYLOAD_FILE);
    const bool is_stdin = text && strcmp(text, "-") == 0;
    const char *text_file = is_stdin ? "-" : option_text(options, OPTION_TEXT_FILE);

    return call_add_text(options, call, "clientMessageID", sending->client_message_id) &&
           add_optional_text(options, call, "userID", option_text(options, OPTION_USER)) &&
           add_optional_text(options, call, "kind", option_text(options, OPTION_KIND)) &&
           add_optional_text(options, call, "text", is_stdin ? NULL : text) &&
           (!text_file || call_add_text_file(options, call, "text", text_file)) &&
           call_add_json_option(options, call, "payload", OPTION_PAYLOAD) &&
           (!payload_file || call_add_json_file(options, call, "payload", payload_file)) &&
           call_add_json_option(options, call, "model", OPTION_MODEL) &&
           add_depends_on(options, call);
}

static int make_call(struct sending *sending)
{
    const struct options *options = sending->options;
    const char *mistake = mistake_of(options);

    if (mistake) {
        options_complain(options, "%s", mistake);
        return EXIT_CODE_USAGE;
    }
    sending->client_message_id = option_text(options, OPTION_ID);
    int result = sending->client_message_id ? EXIT_CODE_OK : make_id(sending);

    if (result == EXIT_CODE_OK) {
        result = options_argument(options, 1)
                     ? call_session(options, "POST", "/entries", &sending->call)
                     : call_workspace(options, "POST", "/entries", &sending->call);
    }
    if (result == EXIT_CODE_OK && !make_body(sending)) {
        result = EXIT_CODE_USAGE;
    }
    call_end_body(&sending->call);
    return result;
}

/* ---- sending it ---- */

static int64_t left_ms(const struct sending *sending)
{
    return sending->deadline_ms == INT64_MAX ? INT64_MAX : sending->deadline_ms - clock_mono_ms();
}

static void pause_for(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL); /* cut short by a signal: one try earlier */
}

/* Once for each kind of trouble, not for each try. */
static void tell(struct sending *sending, enum send_trouble trouble)
{
    if (sending->told == trouble) {
        return;
    }
    sending->told = trouble;
    fprintf(stderr, "outboxctl: not accepted yet: %s%s%s; trying again (clientMessageID %s)\n",
            send_trouble_text(trouble), trouble == SEND_UNREACHED ? ": " : "",
            trouble == SEND_UNREACHED ? http_client_mistake(sending->asking.client) : "",
            sending->client_message_id);
}

static int show(const struct sending *sending, struct http_answer *answer)
{
    json_t *root = answer_parse(answer);
    const char *id = answer_text(root, "id");
    struct buf out;
    int result = EXIT_CODE_OK;

    buf_init(&out, TEXT_ROOM);
    if (!id[0]) {
        result = asking_explain_nonsense(&sending->asking);
    } else if (option_is_set(sending->options, OPTION_JSON)) {
        answer_pass_through(answer);
    } else {
        send_write_outcome(answer->status, root, sending->client_message_id,
                           style_is_wanted(sending->options), &out);
        result = output_write(&out);
    }
    buf_done(&out);
    json_decref(root);
    http_answer_done(answer);
    return result;
}

/* The last try has failed, whatever `trouble` it was. */
static int give_up(const struct sending *sending, enum send_trouble trouble,
                   struct http_answer *answer)
{
    const int result = trouble == SEND_UNREACHED ? asking_explain_silence(&sending->asking)
                                                 : asking_explain_refusal(&sending->asking, answer);

    if (trouble != SEND_REFUSED) {
        fprintf(stderr,
                "It may or may not have been accepted: repeat the same command with --id %s, "
                "which makes that safe.\n",
                sending->client_message_id);
    }
    return result;
}

static int send_until_accepted(struct sending *sending)
{
    for (unsigned tries = 0;; tries++) {
        const int64_t left = left_ms(sending);
        struct http_answer answer = {0};

        http_client_set_limits(sending->asking.client,
                               left > 0 && left < TRY_MS ? (long)left : TRY_MS, 0);
        const int err = http_client_call(
            sending->asking.client, "POST", sending->call.path.bytes,
            (struct span){sending->call.body.bytes, sending->call.body.len}, &answer);
        const enum send_trouble trouble = err < 0 ? SEND_UNREACHED : send_judge(answer.status);

        if (trouble == SEND_NONE) {
            return show(sending, &answer);
        }
        const int64_t wait_ms = send_wait_ms(tries, err < 0 ? -1 : answer.retry_after_ms);

        if (trouble == SEND_REFUSED || wait_ms >= left_ms(sending)) {
            return give_up(sending, trouble, &answer);
        }
        if (err == 0) {
            http_answer_done(&answer);
        }
        tell(sending, trouble);
        pause_for(wait_ms);
    }
}

int command_send(const struct options *options)
{
    const int64_t timeout_ms = option_ms(options, OPTION_TIMEOUT, -1);
    struct sending sending = {.options = options, .told = SEND_NONE};

    call_init(&sending.call);
    int result = make_call(&sending);

    if (result == EXIT_CODE_OK && (sending.call.body.failed || sending.call.path.failed)) {
        fputs("outboxctl: the message is too long\n", stderr);
        result = EXIT_CODE_USAGE;
    }
    if (result == EXIT_CODE_OK) {
        result = asking_open(&sending.asking, options);
    }
    if (result == EXIT_CODE_OK) {
        sending.deadline_ms = timeout_ms < 0 ? INT64_MAX : clock_mono_ms() + timeout_ms;
        result = send_until_accepted(&sending);
    }
    asking_close(&sending.asking);
    call_done(&sending.call);
    return result;
}
