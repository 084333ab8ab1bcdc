/* The scripts of common/scripts, embedded at build time by embed.py (which also computes their
 * SHA-1). */
#ifndef COMMON_STORE_SCRIPTS_H
#define COMMON_STORE_SCRIPTS_H

#include <stddef.h>

struct store_script {
    const char *name;
    const char *text;
    size_t text_len;
    char sha1[41];
};

/* In the order of scripts.def. */
enum script_id {
#define SCRIPT(id, name) SCRIPT_##id,
#include "common/store/scripts.def"
    SCRIPT_COUNT,
};

extern const struct store_script store_scripts[SCRIPT_COUNT];

#endif
