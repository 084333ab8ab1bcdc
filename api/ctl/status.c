/* `status`: readiness, what waits and which processes run, on one screen. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/run.h"
#include "api/ctl/status_answers.h"
#include "api/ctl/status_read.h"
#include "api/ctl/style.h"
#include "common/base/clock.h"
#include "common/base/err.h"

#define TEXT_MAX ((size_t)4 * 1024 * 1024)

/* NULL: why there is none has been told, and is in *ret_result. */
static json_t *read_state(struct asking *asking, int *ret_result)
{
    struct http_answer answer;
    json_t *state = NULL;

    switch (status_read(asking, &state, &answer)) {
    case 0:
        break;
    case -EPROTO:
        *ret_result = answer.status >= 200 && answer.status < 300
                          ? asking_explain_nonsense(asking)
                          : asking_explain_refusal(asking, &answer);
        http_answer_done(&answer);
        break;
    default:
        *ret_result = asking_explain_silence(asking);
    }
    return state;
}

static int show(const struct asking *asking, const json_t *state)
{
    const struct answer_view view = {.now_ms = clock_wall_ms(),
                                     .is_coloured = style_is_wanted(asking->options)};
    struct buf out;

    buf_init(&out, TEXT_MAX);
    if (option_is_set(asking->options, OPTION_JSON)) {
        AUTO_FREE char *text = json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(15));

        (void)buf_append_str(&out, text ? text : "{}");
        (void)buf_append_str(&out, "\n");
    } else {
        status_print(state, asking->options->server, &view, &out);
    }
    const int result = output_write(&out);

    buf_done(&out);
    return result;
}

int command_status(const struct options *options)
{
    struct asking asking;
    int result = asking_open(&asking, options);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    json_t *state = read_state(&asking, &result);

    if (state) {
        result = show(&asking, state);
        if (result == EXIT_CODE_OK && !json_is_true(json_object_get(state, "ready"))) {
            result = EXIT_CODE_FAILED;
        }
        json_decref(state);
    }
    asking_close(&asking);
    return result;
}
