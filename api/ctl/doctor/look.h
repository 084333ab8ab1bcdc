/* How the doctor gets its facts. Each fills in its part of `facts`; what cannot be had is left as
 * unknown, never an error of its own. They block for a few seconds at most. */
#ifndef API_CTL_DOCTOR_LOOK_H
#define API_CTL_DOCTOR_LOOK_H

#include "api/ctl/doctor/facts.h"

struct options;

/* First: the others ask for what it has read. `path` NULL: the usual file if it is there. */
void look_at_config(const char *path, const char *token_file, struct facts *facts);
void look_at_state_dir(struct facts *facts);
void look_at_store(struct facts *facts);
void look_at_clock(struct facts *facts);
void look_at_system(struct facts *facts);
/* Processes by shared memory, the rest by the API at facts->server. */
void look_at_processes(struct facts *facts);
void look_at_server(const struct options *options, struct facts *facts);

#endif
