/* Reads answers of Connect's unary JSON: bare ({"state":…}), or the same wrapped in `message`. */
#include "worker/ledger_answer.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    enum ledger_row row;
} states[] = {
    {"LEDGER_STATE_UNSPECIFIED", LEDGER_ROW_ABSENT},
    {"LEDGER_STATE_LEDGERED", LEDGER_ROW_LEDGERED},
    {"LEDGER_STATE_ADMITTED", LEDGER_ROW_COMPLETE},
    {"LEDGER_STATE_PROMOTED", LEDGER_ROW_COMPLETE},
    {"LEDGER_STATE_TURN_ENDED", LEDGER_ROW_COMPLETE},
    {"LEDGER_STATE_STALLED", LEDGER_ROW_COMPLETE},
    {"LEDGER_STATE_FAILED", LEDGER_ROW_FAILED},
};

static bool is_error(const json_t *object)
{
    return json_object_get(object, "code") || json_object_get(object, "error");
}

static enum ledger_row read_state(const json_t *object)
{
    const json_t *state = json_object_get(object, "state");

    if (!state || json_is_null(state)) {
        /* Connect leaves a member out where it has its default: no state is the unspecified one. An
         * error under a 2xx says nothing about the row. */
        return is_error(object) ? LEDGER_ROW_UNREAD : LEDGER_ROW_ABSENT;
    }
    for (size_t i = 0; json_is_string(state) && i < sizeof(states) / sizeof(states[0]); i++) {
        if (strcmp(json_string_value(state), states[i].name) == 0) {
            return states[i].row;
        }
    }
    return LEDGER_ROW_UNKNOWN;
}

static enum ledger_row read_row(const json_t *answer)
{
    const json_t *message = json_object_get(answer, "message");

    if (!json_is_object(answer)) {
        return LEDGER_ROW_UNREAD;
    }
    if (!json_object_get(answer, "state") && json_is_object(message)) {
        return read_state(message);
    }
    return read_state(answer);
}

static bool is_not_found(const json_t *answer)
{
    const char *code = json_string_value(json_object_get(answer, "code"));

    return code && strcmp(code, "not_found") == 0;
}

enum ledger_row ledger_answer_read(int status, struct span body)
{
    const bool is_fine = status >= 200 && status <= 299;
    json_t *answer = NULL;
    enum ledger_row row = LEDGER_ROW_UNREAD;

    if (is_fine || status == 404) {
        answer = json_loadb(body.ptr, body.len, 0, NULL);
    }
    if (answer && is_fine) {
        row = read_row(answer);
    } else if (answer && is_not_found(answer)) {
        row = LEDGER_ROW_ABSENT;
    }
    json_decref(answer);
    return row;
}
