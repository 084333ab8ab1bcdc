/* What outboxctl makes of a server that answers anything: nothing of it commands a terminal, and
 * what it prints ends with its line. The first byte of an input says what the rest is. */
#include <jansson.h>

#include "api/ctl/answers.h"
#include "api/ctl/event_line.h"
#include "api/ctl/metrics_text.h"
#include "api/ctl/sse.h"
#include "api/ctl/status_answers.h"
#include "common/core/buf.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX (1U << 22)

static const struct answer_view plain = {.now_ms = 1733000000000};

static void must_be_harmless(const struct buf *out)
{
    for (size_t i = 0; i < out->len; i++) {
        const unsigned char c = (unsigned char)out->bytes[i];

        MUST_HOLD(c == '\n' || (c >= 0x20 && c != 0x7f));
    }
}

static void print_answer(answer_print_fn *print, struct span text)
{
    json_t *root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    struct buf out;

    buf_init(&out, OUT_MAX);
    if (root && print(root, text, &plain, &out) == 0) {
        must_be_harmless(&out);
    }
    buf_done(&out);
    json_decref(root);
}

static void on_event(const struct sse_event *event, void *arg)
{
    struct buf out;

    (void)arg;
    buf_init(&out, OUT_MAX);
    if (event_line_write(event->name, event->data, &plain, &out) == 0) {
        must_be_harmless(&out);
        MUST_HOLD(out.len > 0 && out.bytes[out.len - 1] == '\n');
    }
    buf_done(&out);
}

/* In two pieces: where a stream is cut makes no difference. */
static void read_stream(struct span text)
{
    const size_t half = text.len / 2;
    struct sse sse;

    sse_init(&sse, span_of("p1.2-3"), on_event, NULL);
    if (sse_feed(&sse, (struct span){text.ptr, half}) == 0) {
        (void)sse_feed(&sse, (struct span){text.ptr + half, text.len - half});
    }
    sse_restart(&sse);
    sse_done(&sse);
}

static void read_metrics(struct span text)
{
    struct span rest = text;
    struct metrics_sample sample;

    while (metrics_text_next(&rest, &sample)) {
        MUST_HOLD(sample.name.len > 0 && rest.len < text.len);
        (void)metrics_label(&sample, "status");
    }
}

/* The answer of /readyz, a NUL, that of /metrics. */
static void read_status(struct span text)
{
    const char *nul = text.len > 0 ? memchr(text.ptr, '\0', text.len) : NULL;
    const size_t first = nul ? (size_t)(nul - text.ptr) : text.len;
    json_t *ready = json_loadb(text.ptr, first, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    const struct span metrics = {nul ? nul + 1 : "", nul ? text.len - first - 1 : 0};
    struct buf out;

    buf_init(&out, OUT_MAX);
    if (ready) {
        json_t *state = status_make(ready, metrics);

        MUST_HOLD(state);
        status_print(state, "http://127.0.0.1:7780", &plain, &out);
        must_be_harmless(&out);
        json_decref(state);
    }
    buf_done(&out);
    json_decref(ready);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static answer_print_fn *const prints[] = {answer_print_retried, answer_print_changed,
                                              answer_print_members, answer_print_entry,
                                              answer_print_workspaces};
    const struct span rest = {(const char *)bytes + 1, len > 0 ? len - 1 : 0};

    if (len == 0) {
        return 0;
    }
    switch (bytes[0]) {
    case 's':
        read_stream(rest);
        break;
    case 'm':
        read_metrics(rest);
        break;
    case 'r':
        read_status(rest);
        break;
    default:
        if (bytes[0] >= '0' && bytes[0] < '0' + (int)(sizeof(prints) / sizeof(prints[0]))) {
            print_answer(prints[bytes[0] - '0'], rest);
        }
        break;
    }
    return 0;
}
