/* The options that never differ. */
#include "worker/curl_options.h"

#include <string.h>

#include "worker/transfer.h"

#define IDLE_CONNECTION_S                                                                          \
    5L /* one that was idle for longer may be dead: not used again (contract §4) */
/* Held for every transfer in flight; answers are small, longer ones take a few reads more. */
#define READ_BUFFER  4096L
#define WRITE_BUFFER 16384L
#define PROTOCOLS    "http,https"

static void set_ways(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, PROTOCOLS);
    curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
}

static void set_http(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L); /* a small answer stays small */
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);            /* as the template made it */
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "outboxd");
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, READ_BUFFER);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, WRITE_BUFFER);
}

static void set_tls(CURL *easy, const char *ca_file)
{
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* or later */
    if (ca_file) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* instead of the system's, not beside them */
    }
}

void curl_options_set(CURL *easy, const struct transfer_limits *limits)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    set_ways(easy);
    set_http(easy);
    set_tls(easy, limits->ca_file);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_CONNECTION_S);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)limits->connect_timeout_ms);
}

static bool has_our_scheme(CURLU *parsed)
{
    char *scheme = NULL;
    const bool is_ours = curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                         (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);

    curl_free(scheme);
    return is_ours;
}

bool curl_options_accept_url(const char *url)
{
    CURLU *parsed = curl_url();
    const bool is_accepted = parsed &&
                             curl_url_set(parsed, CURLUPART_URL, url,
                                          CURLU_DISALLOW_USER | CURLU_PATH_AS_IS) == CURLUE_OK &&
                             has_our_scheme(parsed);

    curl_url_cleanup(parsed);
    return is_accepted;
}
