/* Bodies of people's operations: never a crash; what is taken is within its limits, and what is
 * refused for a reason says it. The first byte of an input says whose body the rest is. */
#include "api/edit_form.h"
#include "api/target_form.h"
#include "api/workspace_form.h"
#include "tests/fuzz/fuzz.h"
#include "worker/target.h"

#define TEXT_MAX 4096

static void read_edit(struct span text)
{
    struct edit_form form;

    if (edit_form_read(text, TEXT_MAX, &form) == PROBLEM_NONE) {
        const struct span parts[] = {form.patch.text, form.patch.model, form.patch.payload};

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            MUST_HOLD(parts[i].len == 0 || (parts[i].ptr >= text.ptr &&
                                            parts[i].ptr + parts[i].len <= text.ptr + text.len));
        }
    }
    edit_form_done(&form);
}

static void read_confirm(struct span text)
{
    struct confirm_form form;

    if (confirm_form_read(text, &form) == PROBLEM_NONE) {
        MUST_HOLD((form.entry_id.len > 0) != (form.session.len > 0));
        MUST_HOLD(form.session.len == 0 || form.client_message_id.len > 0);
    }
    confirm_form_done(&form);
}

static const char *closed(const char *url, void *arg)
{
    (void)url;
    (void)arg;
    return "closed";
}

/* What the API stores the worker can read, and no password is shown. */
static void read_target(struct span text)
{
    const struct target fallback = {0};
    struct json_body body;
    char *stored = NULL;

    if (target_form_read(text, &body, &stored) == PROBLEM_NONE) {
        struct json_t *owner = NULL;
        struct target target;
        struct buf out;

        MUST_HOLD(target_read(span_of(stored), &fallback, span_of("w"), &target, &owner) == 0);
        buf_init(&out, 1U << 20);
        MUST_HOLD(target_form_show(span_of(stored), closed, NULL, &out));
        MUST_HOLD(!out.failed);
        buf_done(&out);
        json_decref(owner);
    }
    free(stored);
    json_body_done(&body);
}

static void read_park(struct span text)
{
    struct span reason = {0};
    struct json_body body;

    if (park_form_read(text, &body, &reason) == PROBLEM_NONE) {
        MUST_HOLD(reason.len <= PARK_REASON_MAX);
    }
    json_body_done(&body);
}

static void read_sweep(struct span text)
{
    enum sweep_what what = SWEEP_WHAT_COUNT;
    struct json_body body;

    if (sweep_form_read(text, &body, &what) == PROBLEM_NONE) {
        MUST_HOLD(what < SWEEP_WHAT_COUNT);
    } else {
        MUST_HOLD(memchr(body.detail, '\0', sizeof(body.detail)));
    }
    json_body_done(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct {
        char letter;
        void (*read)(struct span text);
    } forms[] = {{'e', read_edit},
                 {'c', read_confirm},
                 {'t', read_target},
                 {'p', read_park},
                 {'s', read_sweep}};

    for (size_t i = 0; len > 0 && i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (bytes[0] == (uint8_t)forms[i].letter) {
            forms[i].read((struct span){(const char *)bytes + 1, len - 1});
        }
    }
    return 0;
}
