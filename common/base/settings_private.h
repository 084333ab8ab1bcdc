/* What the parts of the settings reader share: the rows of the two tables, values, mistakes. Only
 * common/base/settings*.c and their unit tests include this.
 *
 *   bytes --settings_yaml--> node tree --settings_walk--> struct settings --settings_checks,
 * _rules--> mistakes (one row at a time: settings_values)                                   */
#ifndef COMMON_BASE_SETTINGS_PRIVATE_H
#define COMMON_BASE_SETTINGS_PRIVATE_H

#include <yaml.h>

#include "common/base/settings.h"

#define SETTINGS_FILE_MAX  (1024u * 1024u)
#define SETTINGS_DEPTH_MAX 16
#define SETTINGS_ERROR_MAX 100 /* mistakes that are shown */

typedef enum executor_id setting_EXECUTOR;
typedef enum ordering setting_ORDERING;
typedef enum on_ambiguous setting_ON_AMBIGUOUS;
typedef struct status_list setting_STATUS_LIST;

enum setting_type {
    TYPE_DURATION,
    TYPE_SIZE,
    TYPE_COUNT,
    TYPE_BOOL,
    TYPE_TEXT,
    TYPE_TEXTS,
    TYPE_STATUS_LIST,
    TYPE_DURABILITY,
    TYPE_LOG_LEVEL, /* from here on: words of settings_enums.def */
    TYPE_LOG_FORMAT,
    TYPE_JITTER,
    TYPE_EXECUTOR,
    TYPE_ORDERING,
    TYPE_ON_AMBIGUOUS,
};

enum setting_flags {
    FLAG_RESTART = 0,
    FLAG_RELOAD = 1,
    FLAG_SECRET = 2,
    FLAG_RELOAD_SECRET = FLAG_RELOAD | FLAG_SECRET,
};

enum setting_id {
#define SETTING(field, path, type, def, min, max, flags, help) SETTING_##field,
#include "common/base/settings.def"
    SETTING_COUNT,
};

enum kind_row_id {
#define KIND_SETTING(id, field, path, type, def, min, max, help) KIND_ROW_##id,
#define KIND_LIMIT(id, field, path, type, setting, help)         KIND_ROW_##id,
#include "common/base/kinds.def"
    KIND_ROW_COUNT,
};

struct setting_row {
    const char *path; /* of the key, sections joined by dots */
    enum setting_type type;
    size_t offset; /* in struct settings, or in struct kind */
    const char *def, *min, *max;
    enum setting_flags flags;
    enum setting_id inherits; /* KIND_LIMIT: the top-level setting; else SETTING_COUNT */
    const char *help;
};
extern const struct setting_row setting_rows[SETTING_COUNT];
extern const struct setting_row kind_rows[KIND_ROW_COUNT];

static inline void *setting_field(const struct setting_row *row, void *base)
{
    return (char *)base + row->offset;
}

static inline const void *setting_const_field(const struct setting_row *row, const void *base)
{
    return (const char *)base + row->offset;
}

/* Where a mistake is, and where it is told. */
struct settings_source {
    const char *file;
    yaml_document_t *document;
    struct settings_report *report;
    int err; /* -ENOMEM sticks here; mistakes are counted in the report */
};

/* Lines on which something stands; 0: it does not stand in the file. */
struct settings_lines {
    size_t settings[SETTING_COUNT];
    size_t kind[KIND_COUNT_MAX];
    size_t kind_rows[KIND_COUNT_MAX][KIND_ROW_COUNT];
    size_t kind_place[KIND_COUNT_MAX]; /* its index in the file's list */
};

/* settings_report.c: "file:line: path: reason"; without line where line is 0, without path where it
 * is NULL. */
void settings_complain(struct settings_source *source, size_t line, const char *path,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
void settings_warn(struct settings_source *source, size_t line, const char *path,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A value for a message: at most 60 bytes, quoted, without control characters. */
struct settings_shown {
    char text[80];
};
struct settings_shown settings_show(const char *value, size_t len);
/* The name most like `word` so far: call for each candidate, start with {0}. */
struct settings_guess {
    char name[96];
    size_t distance;
};
void settings_guess_try(struct settings_guess *guess, const char *word, const char *candidate,
                        size_t candidate_len);

/* settings_yaml.c: one document, no anchors, aliases, tags or merges, not too deep. 0 and *ret
 * (yaml_document_delete it), or -EINVAL (told), -ENOMEM. */
int settings_yaml_load(struct settings_source *source, const char *bytes, size_t len,
                       yaml_document_t *ret);
size_t settings_node_line(const yaml_node_t *node);
/* A plain scalar that YAML reads as null: nothing, ~, null. */
bool settings_node_is_null(const yaml_node_t *node);

/* settings_values.c: one value from text. On success 0 and *field is overwritten (what it held is
 * freed); else -EINVAL and the reason (for people), or -ENOMEM. */
int settings_value_parse(const struct setting_row *row, const char *text, void *field, char *reason,
                         size_t reason_cap);
/* The same from a list. */
int settings_value_parse_items(const struct setting_row *row, const char *const *items,
                               size_t count, void *field, char *reason, size_t reason_cap);
void settings_value_free(enum setting_type type, void *field);
/* Copies the value of a type without memory of its own. */
void settings_value_copy(enum setting_type type, const void *from, void *to);
/* Appends the value as YAML reads it. */
int settings_value_print(enum setting_type type, const void *field, struct buf *out);
int settings_print_quoted(const char *text, struct buf *out);

/* settings_walk.c: fills `base` from a mapping by the rows; `prefix` stands before paths in
 * messages ("kinds[2]."). `lines` has one place per row. A key named `kinds` on the first level is
 * handed out if ret_kinds is not NULL. */
struct settings_walk {
    struct settings_source *source;
    const struct setting_row *rows;
    size_t row_count;
    void *base;
    size_t *lines;
    const char *prefix;
    yaml_node_t **ret_kinds;
};
void settings_walk(const struct settings_walk *walk, yaml_node_t *mapping);
/* Every row's default, for a zeroed `base`. KIND_LIMIT rows from `settings`. */
int settings_set_defaults(const struct setting_row *rows, size_t row_count, void *base,
                          const struct settings *settings);
void settings_free_rows(const struct setting_row *rows, size_t row_count, void *base);

/* settings_kinds.c: `node` may be NULL (no kinds in the file). */
void settings_read_kinds(struct settings_source *source, yaml_node_t *node,
                         struct settings *settings, struct settings_lines *lines);

/* settings_secrets.c: password files. settings_checks.c: single values. settings_rules.c: rules
 * over several. */
void settings_read_secrets(struct settings_source *source, struct settings *settings,
                           const struct settings_lines *lines);
void settings_check_values(struct settings_source *source, const struct settings *settings,
                           const struct settings_lines *lines);
/* Whether other machines could call the API without a token. */
bool settings_let_strangers_in(const struct settings *settings);
void settings_check_rules(struct settings_source *source, const struct settings *settings,
                          const struct settings_lines *lines);

#endif
