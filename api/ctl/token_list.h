/* A server's token file as `outboxctl token` changes it: one change at a time, each whole or not at
 * all, whoever else is at it. */
#ifndef API_CTL_TOKEN_LIST_H
#define API_CTL_TOKEN_LIST_H

#include <stdbool.h>

#include "common/core/buf.h"
#include "common/core/span.h"

struct token_list {
    const char *path;
    int fd;          /* locked */
    struct buf text; /* what stands in it */
};

enum token_list_use {
    TOKEN_LIST_READ,   /* to look, or to take a line out */
    TOKEN_LIST_APPEND, /* where there is none, one is made that its owner and the group of its
                          folder may read */
};
/* Opens and locks it, and reads it. False: why has been said on stderr. */
bool token_list_open(struct token_list *list, const char *path, enum token_list_use use);
void token_list_close(struct token_list *list);
/* Adds a line at its end. It is on disk on return. False: said on stderr, nothing was changed. */
bool token_list_append(struct token_list *list, struct span line);
/* Puts another file of the same owner and mode in its place: all lines but that one (the first is
 * 1). False: said on stderr, nothing was changed. */
bool token_list_remove(struct token_list *list, size_t line);

#endif
