/* Bridge between a hiredis context and a libuv loop. Holds no decisions: it tells hiredis when its
 * socket can be read or written, errors included, and the owner when the bridge is gone. Private to
 * common/store; loop thread only. */
#ifndef COMMON_STORE_STORE_UV_H
#define COMMON_STORE_STORE_UV_H

#include <stdbool.h>

struct redisAsyncContext;
struct uv_loop_s;

/* Attaches a fresh context, before its connect callback is set. From then on hiredis' own cleanup
 * takes the bridge down. is_tls: what is in the socket are no replies. on_stuck  the socket
 * reported an error that hiredis did not act on: the owner must free the context on_gone   the
 * bridge's memory is gone; runs in a later loop turn than the context's last callback 0 or -errno;
 * then nothing is attached and no callback runs. */
int store_uv_attach(struct redisAsyncContext *ac, struct uv_loop_s *loop, bool is_tls,
                    void (*on_stuck)(void *arg), void (*on_gone)(void *arg), void *arg);

#endif
