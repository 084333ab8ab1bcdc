/* The event streams of this process: one reader of the store for all of them (event_tail), one ring
 * of recent events, and the open streams (event_reader). Asks the store for nothing while nobody
 * listens. Loop thread only. Contract §7, "Events". */
#ifndef API_EVENT_HUB_H
#define API_EVENT_HUB_H

struct api;
struct event_hub;

/* 0 or -errno. Connects to the store only when the first reader comes. */
int event_hub_create(struct api *api, struct event_hub **ret);
/* All streams end, at the next complete event where the client takes it; those that do not take it
 * are cut a moment later. New readers are refused. */
void event_hub_drain(struct event_hub *hub);
/* Closes handles and the connection; no reader is left. NULL is fine. */
void event_hub_close(struct event_hub *hub);
/* Frees; after the loop has ended. */
void event_hub_destroy(struct event_hub **hub);

#endif
