/* Reads a file to its end. */
#include "api/ctl/read_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/core/buf.h"

bool read_file(const char *path, struct buf *ret)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    char room[65536];
    size_t len;

    if (!file) {
        fprintf(stderr, "outboxctl: cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    while ((len = fread(room, 1, sizeof(room), file)) > 0 && !ret->failed) {
        (void)buf_append(ret, room, len);
    }
    const int err = ferror(file) ? errno : 0;

    if (!is_stdin) {
        (void)fclose(file);
    }
    if (err != 0) {
        fprintf(stderr, "outboxctl: cannot read %s: %s\n", path, strerror(err));
    } else if (ret->failed) {
        fprintf(stderr, "outboxctl: %s is too long: at most %zu bytes are read\n", path, ret->max);
    }
    return err == 0 && !ret->failed;
}
