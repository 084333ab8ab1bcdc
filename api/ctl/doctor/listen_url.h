/* How to reach what listens at an address. Pure. */
#ifndef API_CTL_DOCTOR_LISTEN_URL_H
#define API_CTL_DOCTOR_LISTEN_URL_H

#include <stdbool.h>
#include <stddef.h>

/* `address` as in the setting `listen`; one that means every address of the machine is reached by
 * its loopback. A result that does not fit is cut. */
void listen_url(const char *address, bool is_tls, char *out, size_t cap);

#endif
