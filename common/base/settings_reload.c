/* What a running daemon takes over from a new configuration, and what it can't. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings_private.h"

#define CONFIG_MAX (4U << 20)
#define VALUE_MAX  (1U << 20)

static int clone_texts(const struct text_list *from, struct text_list *to)
{
    struct text_list copy = {.items = calloc(from->count + 1, sizeof(char *))};

    if (!copy.items) {
        return -ENOMEM;
    }
    for (; copy.count < from->count; copy.count++) {
        copy.items[copy.count] = strdup(from->items[copy.count]);
        if (!copy.items[copy.count]) {
            settings_value_free(TYPE_TEXTS, &copy);
            return -ENOMEM;
        }
    }
    settings_value_free(TYPE_TEXTS, to);
    *to = copy;
    return 0;
}

static int clone_text(const char *from, char **to)
{
    char *copy = from ? strdup(from) : NULL;

    if (from && !copy) {
        return -ENOMEM;
    }
    free(*to);
    *to = copy;
    return 0;
}

static size_t size_of(enum setting_type type)
{
    switch (type) {
    case TYPE_DURATION:
        return sizeof(setting_DURATION);
    case TYPE_SIZE:
        return sizeof(setting_SIZE);
    case TYPE_COUNT:
        return sizeof(setting_COUNT);
    case TYPE_BOOL:
        return sizeof(setting_BOOL);
    case TYPE_STATUS_LIST:
        return sizeof(setting_STATUS_LIST);
    case TYPE_DURABILITY:
        return sizeof(setting_DURABILITY);
    case TYPE_LOG_LEVEL:
        return sizeof(setting_LOG_LEVEL);
    case TYPE_LOG_FORMAT:
        return sizeof(setting_LOG_FORMAT);
    case TYPE_JITTER:
        return sizeof(setting_JITTER);
    case TYPE_EXECUTOR:
        return sizeof(setting_EXECUTOR);
    case TYPE_ORDERING:
        return sizeof(setting_ORDERING);
    case TYPE_ON_AMBIGUOUS:
        return sizeof(setting_ON_AMBIGUOUS);
    case TYPE_TEXT:
    case TYPE_TEXTS:
        break; /* have memory of their own */
    }
    return 0;
}

static int clone(enum setting_type type, const void *from, void *to)
{
    if (type == TYPE_TEXT) {
        return clone_text(*(char *const *)from, to);
    }
    if (type == TYPE_TEXTS) {
        return clone_texts(from, to);
    }
    memcpy(to, from, size_of(type));
    return 0;
}

/* 1: the same text, 0: not, -ENOMEM. */
static int is_same(const struct setting_row *row, const struct settings *a,
                   const struct settings *b)
{
    struct buf left, right;

    buf_init(&left, VALUE_MAX);
    buf_init(&right, VALUE_MAX);
    int err = settings_value_print(row->type, setting_const_field(row, a), &left);
    err = err == 0 ? settings_value_print(row->type, setting_const_field(row, b), &right) : err;
    const int same = left.len == right.len && memcmp(left.bytes, right.bytes, left.len) == 0;
    buf_done(&left);
    buf_done(&right);
    return err < 0 ? err : same;
}

int settings_keep_running(struct settings *fresh, const struct settings *configured,
                          const struct settings *running, struct buf *ret_left)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting_row *row = &setting_rows[i];

        if (row->flags & FLAG_RELOAD) {
            continue;
        }
        const int same = is_same(row, fresh, configured);
        int err = same < 0 ? same : 0;
        if (same == 0) {
            err = buf_appendf(ret_left, "%s%s", ret_left->len > 0 ? ", " : "", row->path);
        }
        if (err == 0) {
            err = clone(row->type, setting_const_field(row, running), setting_field(row, fresh));
        }
        if (err < 0) {
            return err;
        }
    }
    return settings_let_strangers_in(fresh) ? -EACCES : 0;
}

int settings_copy(const struct settings *settings, struct settings **ret)
{
    struct settings_report report;
    struct buf text;

    buf_init(&text, CONFIG_MAX);
    settings_report_init(&report);
    int err = settings_print(settings, true, &text);
    err = err == 0 ? settings_parse("copy", text.bytes, text.len, ret, &report) : err;
    if (text.bytes) {
        explicit_bzero(text.bytes, text.len); /* secrets */
    }
    buf_done(&text);
    settings_report_done(&report);
    return err < 0 ? -ENOMEM : 0; /* what was printed reads back */
}
