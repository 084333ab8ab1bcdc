/* The dashboard's files, built into the program (embed.py). */
#ifndef API_DASHBOARD_FILES_H
#define API_DASHBOARD_FILES_H

#include <stddef.h>

struct dashboard_file {
    const char *name, *content_type;
    const unsigned char *bytes;
    size_t len;
};

extern const struct dashboard_file dashboard_files[];
extern const unsigned dashboard_file_count;

#endif
