/* A stranger's batch: never a crash; its lines are all of it but their ends, and those that are
 * taken name where they go. */
#include "api/accept_form.h"
#include "api/batch_lines.h"
#include "tests/fuzz/fuzz.h"

static void read_line(struct span line)
{
    const struct accept_source source = {.body = line, .max_text_bytes = 4096, .is_line = true};
    struct accept_form form;

    if (accept_form_read(&source, &form) == PROBLEM_NONE) {
        MUST_HOLD(workspace_name_is_valid(form.workspace.ptr, form.workspace.len));
        MUST_HOLD(!form.session.ptr || session_name_is_valid(form.session.ptr, form.session.len));
        MUST_HOLD(form.body.has_text || form.body.payload.len > 0);
    }
    accept_form_done(&form);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct span body = {(const char *)bytes, len};
    struct batch_lines lines = {body};
    const char *at = body.ptr;
    struct span line;
    size_t count = 0;

    while (batch_lines_next(&lines, &line)) {
        MUST_HOLD(line.ptr == at && line.ptr + line.len <= body.ptr + len);
        MUST_HOLD(line.len == 0 || !memchr(line.ptr, '\n', line.len));
        at = lines.rest.ptr;
        MUST_HOLD(at > line.ptr && (size_t)(at - line.ptr) <= line.len + 2);
        read_line(line);
        count++;
    }
    MUST_HOLD(at == body.ptr + len);
    MUST_HOLD(batch_lines_count(body, len + 1) == count);
    return 0;
}
