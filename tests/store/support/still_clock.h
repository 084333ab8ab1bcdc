/* A wall clock for a test's server that stands still until the test moves it: what a script does
 * then depends on nothing but the store, and waits of hours are over when the test says so. */
#ifndef TESTS_STORE_SUPPORT_STILL_CLOCK_H
#define TESTS_STORE_SUPPORT_STILL_CLOCK_H

#include <stdint.h>

#define STILL_CLOCK_VARIABLE "OUTBOXD_STILL_CLOCK"

struct still_clock;

/* A failure ends the program. */
struct still_clock *still_clock_create(int64_t now_ms);
void still_clock_destroy(struct still_clock **clock);
/* For valkey_options.environment: a server started with it has this clock. */
const char *const *still_clock_environment(const struct still_clock *clock);

int64_t still_clock_ms(const struct still_clock *clock);
void still_clock_set_ms(struct still_clock *clock, int64_t now_ms);

#endif
