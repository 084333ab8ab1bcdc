/* `outboxctl events`: shows the events of a session, a workspace or everything as they happen, and
 * connects again where it was when the server goes away. */
#ifndef API_CTL_FOLLOW_H
#define API_CTL_FOLLOW_H

struct buf;
struct http_client;
struct options;
struct span;

/* Ends only when the server refuses, or cannot be reached at the start. Returns an enum exit_code.
 */
int follow_run(const struct options *options, struct http_client *client);
/* The line that a person sees of an event of outboxd's, with its line feed. `json`: its data. Pure;
 * 0, or -EINVAL for what is none. */
int follow_write_line(struct span name, struct span json, struct buf *out);

#endif
