/* libcurl's multi interface on a libuv loop. A bridge: sockets and one timer, no decisions. Loop
 * thread only. */
#ifndef WORKER_CURL_UV_H
#define WORKER_CURL_UV_H

#include <curl/curl.h>

struct uv_loop_s;
struct curl_uv;

/* Told once for each finished transfer; the handle is already out of the multi. May start new ones.
 * fd: of its connection, if that is kept for others; else CURL_SOCKET_BAD. */
typedef void curl_uv_done_cb(CURL *easy, CURLcode code, curl_socket_t fd, void *arg);

int curl_uv_create(struct uv_loop_s *loop, curl_uv_done_cb *done, void *arg, struct curl_uv **ret);
/* No transfer may run any more. Asynchronous; the memory goes with the last handle. */
void curl_uv_destroy(struct curl_uv **bridge);
/* Starts a transfer. 0 or -ENOMEM. */
int curl_uv_add(struct curl_uv *bridge, CURL *easy);
/* Ends one that runs as if its time were up: `done` runs within the call. Not from a callback of
 * libcurl. */
void curl_uv_give_up(struct curl_uv *bridge, CURL *easy);
CURLM *curl_uv_multi(struct curl_uv *bridge);

#endif
