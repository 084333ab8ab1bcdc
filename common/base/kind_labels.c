/* A register of names: appended to, never changed. */
#include "common/base/kind_labels.h"

#include <stdint.h>
#include <string.h>

static void append(struct kind_labels *labels, const char *name, size_t len)
{
    char *text = labels->texts[labels->count];

    memcpy(text, name, len);
    text[len] = '\0';
    labels->names[labels->count++] = text;
}

static size_t find(const struct kind_labels *labels, const char *name)
{
    size_t place = 0;

    while (place < labels->count && strcmp(labels->texts[place], name) != 0) {
        place++;
    }
    return place;
}

void kind_labels_parse(struct kind_labels *ret, const char *text)
{
    *ret = (struct kind_labels){.count = 0};
    while (*text && ret->count < KIND_COUNT_MAX) {
        const size_t len = strcspn(text, ",");

        if (len > 0 && len <= KIND_LABEL_MAX) {
            append(ret, text, len);
        }
        text += len + (text[len] == ',');
    }
}

void kind_labels_add(struct kind_labels *labels, const struct settings *settings)
{
    for (size_t i = 0; i < settings->kind_count && labels->count < KIND_COUNT_MAX; i++) {
        const char *name = settings->kinds[i].name;
        const size_t len = strlen(name);

        if (find(labels, name) == labels->count && len <= KIND_LABEL_MAX) {
            append(labels, name, len);
        }
    }
}

void kind_labels_apply(const struct kind_labels *labels, struct settings *settings)
{
    for (size_t i = 0; i < settings->kind_count; i++) {
        const size_t place = find(labels, settings->kinds[i].name);

        settings->kinds[i].place = place < labels->count ? (uint32_t)place : UINT32_MAX;
    }
}

void kind_labels_print(const struct kind_labels *labels, char ret[KIND_LABELS_TEXT_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < labels->count; i++) {
        const size_t len = strlen(labels->texts[i]);

        if (i > 0) {
            ret[used++] = ',';
        }
        memcpy(ret + used, labels->texts[i], len);
        used += len;
    }
    ret[used] = '\0'; /* fits: a comma or the NUL for each name */
}
