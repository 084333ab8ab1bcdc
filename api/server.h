/* The HTTP server: libmicrohttpd on the libuv loop. Takes requests in, hands each to its route's
 * handler when it is complete, suspends it while the handler waits, sends the answer. Holds no
 * decisions about entries. Contract §7, "The server". */
#ifndef API_SERVER_H
#define API_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct api;
struct request;
struct server;

/* 0 or -errno. */
int server_create(struct api *api, struct server **ret);
/* Takes connections from now on. `fds`: listening sockets, inherited; owned by the server from here
 * on. Nothing once it drains. 0 or -errno. */
int server_listen(struct server *server, const int *fds, uint32_t count);
/* request.c: the request's answer stands in it. */
void server_answered(struct request *request);
/* A stream begins as a request's answer. */
void server_stream_begins(struct request *request);
/* A stream's bytes were handed out, or (`is_idle`) there are none: then its connection is suspended
 * until server_resume. Only from within the library's question for them. */
void server_streams(struct request *request, bool is_idle);
void server_resume(struct request *request);
/* Ends the request's connection as a client's own end would. */
void server_cut(struct request *request);
struct api *server_api(const struct server *server);
/* No connection is accepted any more (`close_listeners`: the sockets are closed too, so that
 * another can bind); answers say `Connection: close`; idle connections are cut after idle_ms;
 * `done` runs once nothing is left, or at the deadline. A second call may only shorten. */
void server_drain(struct server *server, bool close_listeners, int64_t idle_ms, int64_t deadline_ms,
                  void (*done)(void *arg), void *arg);
/* Stops the library; its handles close in the loop's next turns. NULL is fine. */
void server_close(struct server *server);
/* Frees; after the loop has ended. */
void server_destroy(struct server **server);
uint32_t server_connection_count(const struct server *server);

#endif
