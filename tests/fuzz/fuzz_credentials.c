/* What the API inherits of files that the supervisor read: never a crash, and what is taken is
 * written as it was. */
#include "common/access/credentials.h"
#include "tests/fuzz/fuzz.h"

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct credentials first = {0}, second = {0};

    if (credentials_parse((struct span){(const char *)bytes, len}, &first) == 0) {
        char *text = credentials_print(&first);

        MUST_HOLD(text);
        MUST_HOLD(credentials_parse(span_of(text), &second) == 0);
        MUST_HOLD(is_same(first.tokens, second.tokens));
        MUST_HOLD(is_same(first.certificate, second.certificate));
        MUST_HOLD(is_same(first.key, second.key));
        MUST_HOLD(is_same(first.client_ca, second.client_ca));
        free(text);
    }
    credentials_done(&first);
    credentials_done(&second);
    return 0;
}
