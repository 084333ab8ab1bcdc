/* Results of look-ups. */
#include "worker/lookup.h"

#include <stdarg.h>
#include <stdio.h>

struct lookup_result lookup_result_make(enum lookup_verdict verdict, const char *format, ...)
{
    struct lookup_result result = {.verdict = verdict, .via = VIA_VERIFICATION, .is_reached = true};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(result.message, sizeof(result.message), format, args);
    va_end(args);
    return result;
}
