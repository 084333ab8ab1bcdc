/* Texts to and from JSON. */
#include "common/access/credentials.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    size_t offset;
} members[] = {
    {"tokens", offsetof(struct credentials, tokens)},
    {"certificate", offsetof(struct credentials, certificate)},
    {"key", offsetof(struct credentials, key)},
    {"clientCA", offsetof(struct credentials, client_ca)},
};

#define MEMBER_COUNT (sizeof(members) / sizeof(members[0]))

static char **text_at(struct credentials *credentials, size_t i)
{
    return (char **)(void *)((char *)credentials + members[i].offset);
}

static const char *text_of(const struct credentials *credentials, size_t i)
{
    return *(char *const *)(const void *)((const char *)credentials + members[i].offset);
}

void credentials_done(struct credentials *credentials)
{
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        char **text = text_at(credentials, i);

        if (*text) {
            explicit_bzero(*text, strlen(*text));
            free(*text);
            *text = NULL;
        }
    }
}

char *credentials_print(const struct credentials *credentials)
{
    json_t *object = json_object();
    char *text = NULL;
    int err = object ? 0 : -1;

    for (size_t i = 0; i < MEMBER_COUNT && err == 0; i++) {
        if (text_of(credentials, i)) {
            err =
                json_object_set_new(object, members[i].name, json_string(text_of(credentials, i)));
        }
    }
    if (err == 0) {
        text = json_dumps(object, JSON_COMPACT);
    }
    json_decref(object);
    return text;
}

int credentials_parse(struct span text, struct credentials *ret)
{
    json_t *object = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
    struct credentials read = {0};
    int err = json_is_object(object) ? 0 : -EINVAL;

    for (size_t i = 0; i < MEMBER_COUNT && err == 0; i++) {
        const json_t *member = json_object_get(object, members[i].name);

        if (member && !json_is_string(member)) {
            err = -EINVAL;
        } else if (member) {
            *text_at(&read, i) = strdup(json_string_value(member));
            err = text_of(&read, i) ? 0 : -ENOMEM;
        }
    }
    json_decref(object);
    if (err < 0) {
        credentials_done(&read);
        return err;
    }
    *ret = read;
    return 0;
}

int credentials_read(int fd, struct credentials *ret)
{
    struct stat stat;
    size_t len = 0;

    if (fstat(fd, &stat) < 0) {
        return -errno;
    }
    if (stat.st_size <= 0 || (unsigned long long)stat.st_size > CREDENTIALS_TEXT_MAX) {
        return -EINVAL;
    }
    const size_t size = (size_t)stat.st_size;
    char *text = malloc(size);
    int err = text ? 0 : -ENOMEM;

    while (err == 0 && len < size) {
        const ssize_t got = pread(fd, text + len, size - len, (off_t)len);

        if (got < 0 && errno != EINTR) {
            err = -errno;
        } else if (got == 0) {
            err = -EINVAL;
        }
        len += got > 0 ? (size_t)got : 0;
    }
    err = err == 0 ? credentials_parse((struct span){text, size}, ret) : err;
    if (text) {
        explicit_bzero(text, size);
    }
    free(text);
    return err;
}
