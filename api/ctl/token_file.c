/* Reads a token, and only from a file that nobody else could have read or written. */
#include "api/ctl/token_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TOKEN_MAX 4096
#define BLANKS    " \t\r\n"

/* What a header's value may hold. */
static bool is_sendable(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < 0x21 || text[i] > 0x7e) {
            return false;
        }
    }
    return len > 0;
}

static const char *read_line(FILE *file, char **ret)
{
    char text[TOKEN_MAX];
    const size_t read = fread(text, 1, sizeof(text) - 1, file);

    text[read] = '\0';
    const char *start = text + strspn(text, BLANKS);
    const size_t len = strcspn(start, BLANKS);

    if (ferror(file) || !feof(file) || strlen(text) != read ||
        start[len + strspn(start + len, BLANKS)] != '\0' || !is_sendable(start, len)) {
        return "must hold one line, the token";
    }
    *ret = strndup(start, len);
    return *ret ? NULL : "cannot be kept: out of memory";
}

const char *token_file_read(const char *path, char **ret)
{
    static char reason[256];
    FILE *file = fopen(path, "re");
    struct stat st;
    const char *why;

    if (!file || fstat(fileno(file), &st) < 0) {
        snprintf(reason, sizeof(reason), "cannot be read: %s", strerror(errno));
        why = reason;
    } else if (st.st_mode & S_IRWXO) {
        why = "is open to every user: take that away (chmod o-rwx), and have the token replaced if "
              "others may have read it";
    } else if (st.st_mode & S_IWGRP) {
        why = "can be written by its group: take that away (chmod g-w)";
    } else {
        why = read_line(file, ret);
    }
    if (file) {
        (void)fclose(file);
    }
    return why;
}
