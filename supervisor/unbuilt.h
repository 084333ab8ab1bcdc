/* Settings that the contract names and this version does not carry out yet: refused, so that nobody
 * relies on what does not happen. Pure. */
#ifndef SUPERVISOR_UNBUILT_H
#define SUPERVISOR_UNBUILT_H

#include <stddef.h>

struct buf;
struct settings;

/* Appends a line for each such setting in use ("CONFIG: token_file: …"); returns how many. */
size_t unbuilt_settings(const char *config, const struct settings *settings, struct buf *lines);

#endif
