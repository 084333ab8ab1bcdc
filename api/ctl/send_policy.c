/* Which answers are worth another try. */
#include "api/ctl/send_policy.h"

#include "api/ctl/answers.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "common/core/buf.h"

#define WAIT_MIN_MS 200
#define WAIT_MAX_MS 5000

enum send_trouble send_judge(long status)
{
    if (status == 200 || status == 202) {
        return SEND_NONE;
    }
    if (status == 429) {
        return SEND_FULL;
    }
    /* Too slow, too early, or something on the server's side: the same request may do next time. */
    return status == 408 || status == 425 || status >= 500 ? SEND_UNAVAILABLE : SEND_REFUSED;
}

const char *send_trouble_text(enum send_trouble trouble)
{
    switch (trouble) {
    case SEND_NONE:
        return "accepted";
    case SEND_UNREACHED:
        return "no answer";
    case SEND_UNAVAILABLE:
        return "the server or its store cannot take it now";
    case SEND_FULL:
        return "the session holds as many open entries as it may";
    case SEND_REFUSED:
        return "refused";
    }
    return "";
}

int64_t send_wait_ms(unsigned tries, int64_t retry_after_ms)
{
    int64_t wait_ms = WAIT_MIN_MS;

    for (unsigned i = 0; i < tries && wait_ms < WAIT_MAX_MS; i++) {
        wait_ms *= 2;
    }
    wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    return wait_ms > retry_after_ms ? wait_ms : retry_after_ms;
}

void send_write_outcome(long status, const json_t *answer, const char *client_message_id,
                        bool is_coloured, struct buf *out)
{
    print_safe(out, span_of(answer_text(answer, "id")));
    (void)buf_append_str(out, "  ");
    if (status == 200) {
        const struct span now = span_of(answer_text(answer, "entryStatus"));

        (void)buf_append_str(out, "accepted before (200), now ");
        style_add(out, style_of_status(now), is_coloured, now.len > 0 ? now : span_of("unknown"));
    } else {
        style_add(out, STYLE_GOOD, is_coloured, span_of("accepted"));
        (void)buf_append_str(out, " (202)");
    }
    (void)buf_append_str(out, "  clientMessageID ");
    print_safe(out, span_of(client_message_id));
    (void)buf_append_str(out, "\n");
}
