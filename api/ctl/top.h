/* `outboxctl top`: what happens now, from shared memory, frame by frame. */
#ifndef API_CTL_TOP_H
#define API_CTL_TOP_H

struct options;

/* Until the person or a signal ends it, or one frame. Returns an enum exit_code. */
int top_run(const struct options *options);

#endif
