/* What every driver is: one function over one input. libFuzzer calls it; so does replay.c, on the
 * corpus. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A property that must hold for every input: said, and then a finding. */
#define MUST_HOLD(claim)                                                                           \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #claim);             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The input as a string of its own, cut at its first NUL as every string is; free() it. */
static inline char *fuzz_string(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1);

    MUST_HOLD(text);
    if (len > 0) {
        memcpy(text, bytes, len);
    }
    text[len] = '\0';
    return text;
}

#endif
