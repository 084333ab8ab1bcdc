/* A stranger's accept body: never a crash; what is taken lies within what was sent. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/accept_form.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct accept_source source = {.body = {(const char *)bytes, len},
                                         .max_text_bytes = 100000};
    struct accept_form form;

    if (accept_form_read(&source, &form) == PROBLEM_NONE && form.body.payload.len > 0 &&
        (form.body.payload.ptr < source.body.ptr ||
         form.body.payload.ptr + form.body.payload.len > source.body.ptr + len)) {
        abort();
    }
    accept_form_done(&form);
    return 0;
}
