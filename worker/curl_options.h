/* What libcurl may do for any request of ours, whoever asks: nothing from the environment, no way
 * but straight to an http or https address, certificates checked. Contract §4, §11. */
#ifndef WORKER_CURL_OPTIONS_H
#define WORKER_CURL_OPTIONS_H

#include <curl/curl.h>
#include <stdbool.h>

struct transfer_limits;

/* On a handle that is new or was reset. */
void curl_options_set(CURL *easy, const struct transfer_limits *limits);
/* Whether libcurl would ask an http or https server for it, and no credentials stand in it. */
bool curl_options_accept_url(const char *url);

#endif
