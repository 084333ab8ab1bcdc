/* Files that options name, "-" for standard input. */
#ifndef API_CTL_READ_FILE_H
#define API_CTL_READ_FILE_H

#include <stdbool.h>

struct buf;

/* Appends all of it, at most the buffer's maximum. False: why has been said on stderr. */
bool read_file(const char *path, struct buf *ret);

#endif
