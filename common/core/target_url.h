/* What the URL of a target may look like: in the configuration and through the API. Pure.
 * Contract §11. */
#ifndef COMMON_CORE_TARGET_URL_H
#define COMMON_CORE_TARGET_URL_H

#include <stdbool.h>

#define TARGET_URL_MAX 2048

/* NULL if it may be one, else why not, for people ("does not begin with …"): http or https, a host,
 * no credentials, no blanks, no query and no fragment. Static string. */
const char *target_url_refusal(const char *url);
/* Whether something stands before an @ where its host is. `url` has a scheme. */
bool target_url_has_credentials(const char *url);

#endif
