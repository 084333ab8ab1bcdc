/* Connects, asks, shows or explains. */
#include "api/ctl/asking.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "api/ctl/token_file.h"
#include "common/base/clock.h"
#include "common/base/err.h"

#define CALL_MS      60000
#define DETAIL_MAX   ((size_t)64 * 1024)
#define LONG_CALL_MS (15 * 60000)

int asking_open(struct asking *ret, const struct options *options)
{
    const char *mistake = NULL;
    AUTO_FREE char *token = NULL;

    *ret = (struct asking){.options = options};
    if (options->token_file) {
        const char *why = token_file_read(options->token_file, &token);

        if (why) {
            fprintf(stderr, "outboxctl: the token file %s (OUTBOXCTL_TOKEN_FILE) %s\n",
                    options->token_file, why);
            return EXIT_CODE_USAGE;
        }
    }
    ret->client = http_client_create(options->server, token, &options->tls, &mistake);
    if (!ret->client) {
        fprintf(stderr, "outboxctl: \"%s\": %s\n", options->server, mistake);
        return EXIT_CODE_USAGE;
    }
    return EXIT_CODE_OK;
}

void asking_close(struct asking *asking)
{
    http_client_destroy(&asking->client);
}

void output_problem(const struct options *options, const char *code, const char *title,
                    const char *detail)
{
    json_t *problem =
        option_is_set(options, OPTION_JSON)
            ? json_pack("{s:s, s:s, s:s}", "code", code, "title", title, "detail", detail)
            : NULL;
    AUTO_FREE char *text = problem ? json_dumps(problem, JSON_COMPACT) : NULL;

    if (text) {
        puts(text);
    }
    json_decref(problem);
}

int asking_explain_silence(const struct asking *asking)
{
    const struct options *options = asking->options;
    const bool is_named = option_is_set(options, OPTION_SERVER);
    const char *mistake = http_client_mistake(asking->client);

    fprintf(stderr,
            "outboxctl: no answer from %s: %s\n"
            "Is outboxd running, and is this its `listen` address? %s --server URL or "
            "OUTBOXCTL_SERVER names another; `outboxctl doctor` looks for what is wrong.\n",
            options->server, mistake,
            is_named                                               ? "--server says so;"
            : strcmp(options->server, OPTIONS_DEFAULT_SERVER) == 0 ? "It is the default;"
                                                                   : "OUTBOXCTL_SERVER says so;");
    output_problem(options, "unreachable", "No answer from the server", mistake);
    return EXIT_CODE_UNREACHABLE;
}

int asking_try(struct asking *asking, const struct call *call, struct http_answer *ret)
{
    http_client_set_limits(asking->client,
                           asking->limit_ms > 0 ? asking->limit_ms
                           : call->is_long      ? LONG_CALL_MS
                                                : CALL_MS,
                           0);
    return http_client_call(asking->client, call->method, call->path.bytes,
                            (struct span){call->body.bytes, call->body.len}, ret);
}

int asking_call(struct asking *asking, const struct call *call, struct http_answer *ret)
{
    struct http_answer answer;

    if (call->path.failed || call->body.failed) {
        fputs("outboxctl: the message is too long\n", stderr);
        return EXIT_CODE_USAGE;
    }
    if (asking_try(asking, call, &answer) < 0) {
        return asking_explain_silence(asking);
    }
    if (answer.status >= 200 && answer.status < 300) {
        *ret = answer;
        return EXIT_CODE_OK;
    }
    return asking_explain_refusal(asking, &answer);
}

int asking_explain_refusal(const struct asking *asking, struct http_answer *answer)
{
    json_t *root = answer_parse(answer);

    if (!json_is_object(root)) {
        output_problem(asking->options, "not_outboxd", "The answer is no problem document",
                       "Is that an outboxd?");
    } else if (option_is_set(asking->options, OPTION_JSON)) {
        answer_pass_through(answer);
    }
    json_decref(root);
    const int result = answer_explain(answer, asking->options->server);

    http_answer_done(answer);
    return result;
}

int asking_explain_nonsense(const struct asking *asking)
{
    fprintf(stderr, "outboxctl: the answer of %s is not one of outboxd's\n",
            asking->options->server);
    output_problem(asking->options, "not_outboxd", "The answer is not one of outboxd's",
                   asking->options->server);
    return EXIT_CODE_UNREACHABLE;
}

void asking_explain(const struct asking *asking, const char *code, const char *title,
                    const char *subject, const char *status, const char *advice)
{
    struct buf detail;

    buf_init(&detail, DETAIL_MAX);
    print_safe(&detail, span_of(subject));
    (void)buf_append_str(&detail, " is ");
    print_safe(&detail, span_of(status[0] ? status : "unknown"));
    fprintf(stderr, "outboxctl: %s: %s [%s]\n%s\n", title, detail.bytes ? detail.bytes : "", code,
            advice);
    output_problem(asking->options, code, title, detail.bytes ? detail.bytes : "");
    buf_done(&detail);
}

int output_write(const struct buf *out)
{
    if (out->failed) {
        fputs("outboxctl: out of memory\n", stderr);
        return EXIT_CODE_FAILED;
    }
    if ((out->len > 0 && fwrite(out->bytes, 1, out->len, stdout) != out->len) ||
        fflush(stdout) != 0) {
        perror("outboxctl: standard output");
        return EXIT_CODE_FAILED;
    }
    return EXIT_CODE_OK;
}

int asking_show(struct asking *asking, const struct call *call, answer_print_fn *print)
{
    const struct answer_view view = {.now_ms = clock_wall_ms(),
                                     .is_coloured = style_is_wanted(asking->options)};
    struct http_answer answer;
    int result = asking_call(asking, call, &answer);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    if (option_is_set(asking->options, OPTION_JSON)) {
        answer_pass_through(&answer);
    } else if (answer_print(&answer, print, &view) < 0) {
        result = asking_explain_nonsense(asking);
    }
    http_answer_done(&answer);
    if (result == EXIT_CODE_OK && fflush(stdout) != 0) {
        perror("outboxctl: standard output");
        result = EXIT_CODE_FAILED;
    }
    return result;
}

int asking_run(const struct options *options, call_make_fn *make, answer_print_fn *print)
{
    struct asking asking;
    struct call call;

    call_init(&call);
    int result = make(options, &call);

    if (result == EXIT_CODE_OK) {
        result = asking_open(&asking, options);
        if (result == EXIT_CODE_OK) {
            result = asking_show(&asking, &call, print);
            asking_close(&asking);
        }
    }
    call_done(&call);
    return result;
}
