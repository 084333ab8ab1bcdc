/* Files that the configuration names for their contents: passwords, hashes of tokens, keys. Read
 * once, when the configuration is read, so that a missing one is told then and children need no
 * access to them. */
#ifndef COMMON_BASE_NAMED_FILE_H
#define COMMON_BASE_NAMED_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct named_file_mistake {
    char text[256 + 4096]; /* for people; it names the file */
};

/* Reads all of it. `name` is a path (begins with / or .), else a credential of systemd
 * (LoadCredential=), which stands in $CREDENTIALS_DIRECTORY. On success *ret is the caller's
 * (secret: wipe it, then free) and a NUL follows its *ret_len bytes. `what` it should be ("a
 * password") is for the mistake. -EINVAL with a mistake told (not to be read, or longer than `max`
 * bytes), or -ENOMEM. */
int named_file_read(const char *name, const char *what, size_t max, char **ret, size_t *ret_len,
                    struct named_file_mistake *ret_mistake);
/* Whether it is a credential of systemd, which only the service itself can see. */
bool named_file_is_credential(const char *name);
/* The path that `name` stands for, for messages: at most `cap` bytes; `name` itself where it stands
 * for none. */
void named_file_path(const char *name, char *path, size_t cap);
/* Wipes and frees; NULL is fine. */
void named_file_forget(char *text, size_t len);

#endif
