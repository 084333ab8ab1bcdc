/* One value of one type: from text, from a list, back to text. Defaults and the file go through the
 * same functions. To add a type: a case in each switch here; the compiler names them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings_private.h"
#include "common/core/units.h"

#define TEXTS_MAX    64
#define REPLICAS_MAX 100

static const struct {
    enum setting_type type;
    int value;
    const char *word;
} words[] = {
#define SETTING_ENUM(type, value, word) {TYPE_##type, (value), (word)},
#include "common/base/settings_enums.def"
};
#define WORD_COUNT (sizeof(words) / sizeof(words[0]))

static int refuse(char *reason, size_t cap, const char *text, const char *why)
{
    (void)snprintf(reason, cap, "%s %s", settings_show(text, strlen(text)).text, why);
    return -EINVAL;
}

static const char *word_of(enum setting_type type, int value)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (words[i].type == type && words[i].value == value) {
            return words[i].word;
        }
    }
    return "invalid";
}

/* "must be one of error, warn, info, debug" with the nearest of them named. */
static int refuse_word(enum setting_type type, const char *text, char *reason, size_t cap)
{
    struct settings_guess guess = {.name = ""};
    char list[160] = "is none of";
    size_t n = strlen(list);

    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (words[i].type == type && n < sizeof(list)) {
            n += (size_t)snprintf(list + n, sizeof(list) - n, " %s,", words[i].word);
            settings_guess_try(&guess, text, words[i].word, strlen(words[i].word));
        }
    }
    list[(n < sizeof(list) ? n : sizeof(list)) - 1] = '\0'; /* the last comma */
    if (guess.name[0]) {
        (void)snprintf(reason, cap, "%s %s; did you mean %s?",
                       settings_show(text, strlen(text)).text, list, guess.name);
        return -EINVAL;
    }
    return refuse(reason, cap, text, list);
}

static int parse_word(enum setting_type type, const char *text, int *ret, char *reason, size_t cap)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (words[i].type == type && strcmp(words[i].word, text) == 0) {
            *ret = words[i].value;
            return 0;
        }
    }
    return refuse_word(type, text, reason, cap);
}

/* Digits only; -EINVAL or -ERANGE. */
static int parse_count(const char *text, uint32_t *ret)
{
    uint64_t value = 0;

    if (!*text) {
        return -EINVAL;
    }
    if (strspn(text, "0123456789") != strlen(text)) {
        return -EINVAL;
    }
    for (; *text; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > UINT32_MAX) {
            return -ERANGE;
        }
    }
    *ret = (uint32_t)value;
    return 0;
}

/* Any of the three number types as one comparable number. */
static int parse_number(enum setting_type type, const char *text, uint64_t *ret)
{
    int64_t ms = 0;
    uint32_t count = 0;
    int err;

    if (type == TYPE_DURATION) {
        err = units_parse_duration(text, &ms);
        *ret = (uint64_t)ms;
        return err;
    }
    if (type == TYPE_SIZE) {
        return units_parse_size(text, ret);
    }
    err = parse_count(text, &count);
    *ret = count;
    return err;
}

static int parse_ranged(const struct setting_row *row, const char *text, uint64_t *ret,
                        char *reason, size_t cap)
{
    const char *hint = row->type == TYPE_DURATION ? "is not a duration (use 250ms, 30s, 10m, 24h)"
                       : row->type == TYPE_SIZE   ? "is not a size (use 512, 100KB, 64KiB, 1MiB)"
                                                  : "is not a whole number";
    uint64_t value = 0, min = 0, max = UINT64_MAX;
    int err = parse_number(row->type, text, &value);

    if (err == -EINVAL) {
        return refuse(reason, cap, text, hint);
    }
    if ((*row->min && parse_number(row->type, row->min, &min) < 0) ||
        (*row->max && parse_number(row->type, row->max, &max) < 0)) {
        return refuse(reason, cap, text, "can't be checked: the table of settings is broken");
    }
    if (err < 0 || value < min || value > max) {
        char range[96];

        if (*row->max) {
            (void)snprintf(range, sizeof(range), "is not between %s and %s",
                           *row->min ? row->min : "0", row->max);
        } else {
            (void)snprintf(range, sizeof(range), "is too %s", err < 0 ? "large" : "small");
        }
        return refuse(reason, cap, text, range);
    }
    *ret = value;
    return 0;
}

static int parse_bool(const char *text, bool *ret, char *reason, size_t cap)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        return refuse(reason, cap, text, "is neither true nor false");
    }
    *ret = strcmp(text, "true") == 0;
    return 0;
}

static int parse_text(const char *text, char **field)
{
    char *copy = NULL;

    if (*text) { /* an empty text is an absent one */
        copy = strdup(text);
        if (!copy) {
            return -ENOMEM;
        }
    }
    free(*field);
    *field = copy;
    return 0;
}

static void free_texts(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct text_list){0};
}

static int parse_texts(const char *const *items, size_t count, struct text_list *field,
                       char *reason, size_t cap)
{
    struct text_list list = {0};

    if (count > TEXTS_MAX) {
        (void)snprintf(reason, cap, "has %zu elements, more than %d", count, TEXTS_MAX);
        return -EINVAL;
    }
    if (count > 0) {
        list.items = calloc(count, sizeof(*list.items));
        if (!list.items) {
            return -ENOMEM;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!*items[i]) {
            free_texts(&list);
            (void)snprintf(reason, cap, "element %zu is empty", i + 1);
            return -EINVAL;
        }
        list.items[i] = strdup(items[i]);
        if (!list.items[i]) {
            free_texts(&list);
            return -ENOMEM;
        }
        list.count++;
    }
    free_texts(field);
    *field = list;
    return 0;
}

static int parse_statuses(const char *const *items, size_t count, struct status_list *field,
                          char *reason, size_t cap)
{
    struct status_list list = {.count = 0};

    if (count > STATUS_LIST_MAX) {
        (void)snprintf(reason, cap, "has %zu statuses, more than %d", count, STATUS_LIST_MAX);
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t code = 0;

        if (parse_count(items[i], &code) < 0 || code < 100 || code > 599) {
            return refuse(reason, cap, items[i], "is not an HTTP status (100 to 599)");
        }
        for (size_t j = 0; j < list.count; j++) {
            if (list.codes[j] == code) {
                return refuse(reason, cap, items[i], "stands twice in the list");
            }
        }
        list.codes[list.count++] = (uint16_t)code;
    }
    *field = list;
    return 0;
}

static int parse_durability(const char *text, struct durability *field, char *reason, size_t cap)
{
    static const struct {
        const char *word;
        enum durability_level level;
    } levels[] = {
        {"fsync", DURABILITY_FSYNC},
        {"everysec", DURABILITY_EVERYSEC},
        {"memory", DURABILITY_MEMORY},
    };
    uint32_t replicas = 0;

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(text, levels[i].word) == 0) {
            *field = (struct durability){.level = levels[i].level};
            return 0;
        }
    }
    /* "replicas: 2" as one text: how the walk hands over {replicas: 2}. */
    if (strncmp(text, "replicas: ", 10) != 0) {
        return refuse(reason, cap, text, "is none of fsync, everysec, memory, {replicas: n}");
    }
    if (parse_count(text + 10, &replicas) < 0 || replicas < 1 || replicas > REPLICAS_MAX) {
        return refuse(reason, cap, text + 10, "is not a number of replicas (1 to 100)");
    }
    *field = (struct durability){.level = DURABILITY_REPLICAS, .replicas = replicas};
    return 0;
}

static char *trim(char *text)
{
    size_t len;

    text += strspn(text, " \t");
    len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t')) {
        text[--len] = '\0';
    }
    return text;
}

/* Splits "a, b, c" in place; returns how many, at most `max` (what is more is refused by the
 * count). */
static size_t split_at_commas(char *text, const char **items, size_t max)
{
    size_t count = 0;

    while (text && count < max) {
        char *comma = strchr(text, ',');

        if (comma) {
            *comma = '\0';
        }
        items[count++] = trim(text);
        text = comma ? comma + 1 : NULL;
    }
    return count;
}

static int parse_split(const struct setting_row *row, const char *text, void *field, char *reason,
                       size_t cap)
{
    const char *items[TEXTS_MAX + 1] = {NULL};
    size_t count = 0;

    if (!*text) {
        return settings_value_parse_items(row, items, 0, field, reason, cap);
    }
    char *copy = strdup(text);
    if (!copy) {
        return -ENOMEM;
    }
    count = split_at_commas(copy, items, TEXTS_MAX + 1);
    int err = settings_value_parse_items(row, items, count, field, reason, cap);
    free(copy);
    return err;
}

int settings_value_parse_items(const struct setting_row *row, const char *const *items,
                               size_t count, void *field, char *reason, size_t reason_cap)
{
    if (row->type == TYPE_TEXTS) {
        return parse_texts(items, count, field, reason, reason_cap);
    }
    if (row->type == TYPE_STATUS_LIST) {
        return parse_statuses(items, count, field, reason, reason_cap);
    }
    (void)snprintf(reason, reason_cap, "is a list; one value is wanted");
    return -EINVAL;
}

int settings_value_parse(const struct setting_row *row, const char *text, void *field, char *reason,
                         size_t reason_cap)
{
    uint64_t number = 0;
    int value = 0;
    int err;

    switch (row->type) {
    case TYPE_DURATION:
    case TYPE_SIZE:
    case TYPE_COUNT:
        err = parse_ranged(row, text, &number, reason, reason_cap);
        if (err == 0 && row->type == TYPE_DURATION) {
            *(int64_t *)field = (int64_t)number;
        } else if (err == 0 && row->type == TYPE_SIZE) {
            *(uint64_t *)field = number;
        } else if (err == 0) {
            *(uint32_t *)field = (uint32_t)number;
        }
        return err;
    case TYPE_BOOL:
        return parse_bool(text, field, reason, reason_cap);
    case TYPE_TEXT:
        if (!*text && *row->def) {
            (void)snprintf(reason, reason_cap, "must not be empty");
            return -EINVAL;
        }
        return parse_text(text, field);
    case TYPE_TEXTS:
    case TYPE_STATUS_LIST:
        return parse_split(row, text, field, reason, reason_cap);
    case TYPE_DURABILITY:
        return parse_durability(text, field, reason, reason_cap);
    case TYPE_LOG_LEVEL:
    case TYPE_LOG_FORMAT:
    case TYPE_JITTER:
    case TYPE_EXECUTOR:
    case TYPE_ORDERING:
    case TYPE_ON_AMBIGUOUS:
        err = parse_word(row->type, text, &value, reason, reason_cap);
        if (err == 0) {
            memcpy(field, &value, sizeof(value)); /* enums are ints: asserted below */
        }
        return err;
    }
    return -EINVAL;
}

_Static_assert(sizeof(enum log_level) == sizeof(int) && sizeof(enum log_format) == sizeof(int) &&
                   sizeof(enum jitter) == sizeof(int) && sizeof(enum executor_id) == sizeof(int) &&
                   sizeof(enum ordering) == sizeof(int) && sizeof(enum on_ambiguous) == sizeof(int),
               "settings of an enum type are written as int");

void settings_value_free(enum setting_type type, void *field)
{
    if (type == TYPE_TEXT) {
        free(*(char **)field);
        *(char **)field = NULL;
    } else if (type == TYPE_TEXTS) {
        free_texts(field);
    }
}

void settings_value_copy(enum setting_type type, const void *from, void *to)
{
    if (type == TYPE_DURATION) {
        memcpy(to, from, sizeof(int64_t));
    } else if (type == TYPE_COUNT) {
        memcpy(to, from, sizeof(uint32_t));
    }
}

static int print_texts(const struct text_list *list, struct buf *out)
{
    int err = buf_append_str(out, "[");

    for (size_t i = 0; err == 0 && i < list->count; i++) {
        err = i > 0 ? buf_append_str(out, ", ") : 0;
        if (err == 0) {
            err = settings_print_quoted(list->items[i], out);
        }
    }
    return err < 0 ? err : buf_append_str(out, "]");
}

static int print_statuses(const struct status_list *list, struct buf *out)
{
    int err = buf_append_str(out, "[");

    for (size_t i = 0; err == 0 && i < list->count; i++) {
        err = buf_appendf(out, "%s%u", i > 0 ? ", " : "", (unsigned)list->codes[i]);
    }
    return err < 0 ? err : buf_append_str(out, "]");
}

static int print_durability(const struct durability *durability, struct buf *out)
{
    switch (durability->level) {
    case DURABILITY_FSYNC:
        return buf_append_str(out, "fsync");
    case DURABILITY_EVERYSEC:
        return buf_append_str(out, "everysec");
    case DURABILITY_MEMORY:
        return buf_append_str(out, "memory");
    case DURABILITY_REPLICAS:
        return buf_appendf(out, "{replicas: %" PRIu32 "}", durability->replicas);
    }
    return -EINVAL;
}

int settings_value_print(enum setting_type type, const void *field, struct buf *out)
{
    char text[32];
    int value = 0;

    switch (type) {
    case TYPE_DURATION:
        units_format_duration(*(const int64_t *)field, text);
        return buf_append_str(out, text);
    case TYPE_SIZE:
        units_format_size(*(const uint64_t *)field, text);
        return buf_append_str(out, text);
    case TYPE_COUNT:
        return buf_appendf(out, "%" PRIu32, *(const uint32_t *)field);
    case TYPE_BOOL:
        return buf_append_str(out, *(const bool *)field ? "true" : "false");
    case TYPE_TEXT:
        return settings_print_quoted(*(char *const *)field ? *(char *const *)field : "", out);
    case TYPE_TEXTS:
        return print_texts(field, out);
    case TYPE_STATUS_LIST:
        return print_statuses(field, out);
    case TYPE_DURABILITY:
        return print_durability(field, out);
    case TYPE_LOG_LEVEL:
    case TYPE_LOG_FORMAT:
    case TYPE_JITTER:
    case TYPE_EXECUTOR:
    case TYPE_ORDERING:
    case TYPE_ON_AMBIGUOUS:
        memcpy(&value, field, sizeof(value));
        return buf_append_str(out, word_of(type, value));
    }
    return -EINVAL;
}
