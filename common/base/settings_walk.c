/* Walks a mapping of the document tree by a table of rows. Goes on after each mistake, so that all
 * are told at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings_private.h"

#define PATH_BYTES 128
#define LIST_MAX   256
#define KEYS_MAX   500

/* One level of the walk. `section` stands before the keys ("store."), without the walk's prefix. */
struct level {
    const struct settings_walk *walk;
    yaml_node_t *mapping;
    const char *section;
};

static yaml_node_t *node_of(const struct settings_walk *walk, int index)
{
    return yaml_document_get_node(walk->source->document, index);
}

static void complain(const struct settings_walk *walk, const yaml_node_t *node, const char *path,
                     const char *reason)
{
    char full[2 * PATH_BYTES];

    (void)snprintf(full, sizeof(full), "%s%s", walk->prefix, path);
    settings_complain(walk->source, settings_node_line(node), full, "%s", reason);
}

static const char *scalar_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value; /* libyaml ends it with a NUL */
}

/* Whether the node is one usable text; says why not. */
static bool is_text(const struct settings_walk *walk, const yaml_node_t *node, const char *path)
{
    if (node->type != YAML_SCALAR_NODE) {
        complain(walk, node, path, "must be a single value here");
        return false;
    }
    if (settings_node_is_null(node)) {
        complain(walk, node, path, "has no value (leave the line out to get the default)");
        return false;
    }
    if (memchr(node->data.scalar.value, '\0', node->data.scalar.length)) {
        complain(walk, node, path, "holds a NUL character");
        return false;
    }
    return true;
}

/* Takes a parsed value over, or tells what is wrong with it. */
static void take_result(const struct settings_walk *walk, const yaml_node_t *node, const char *path,
                        int err, const char *reason)
{
    if (err == -EINVAL) {
        complain(walk, node, path, reason);
    } else if (err < 0) {
        walk->source->err = err;
    }
}

static void read_scalar(const struct settings_walk *walk, const struct setting_row *row,
                        const yaml_node_t *node)
{
    char reason[320] = "";

    if (!is_text(walk, node, row->path)) {
        return;
    }
    int err = settings_value_parse(row, scalar_text(node), setting_field(row, walk->base), reason,
                                   sizeof(reason));
    take_result(walk, node, row->path, err, reason);
}

static void read_list(const struct settings_walk *walk, const struct setting_row *row,
                      const yaml_node_t *node)
{
    const char *items[LIST_MAX];
    char reason[320] = "";
    size_t count = 0;

    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *element = node_of(walk, *item);

        if (count == LIST_MAX) {
            complain(walk, node, row->path, "has too many elements");
            return;
        }
        if (!is_text(walk, element, row->path)) {
            return;
        }
        items[count++] = scalar_text(element);
    }
    int err = settings_value_parse_items(row, items, count, setting_field(row, walk->base), reason,
                                         sizeof(reason));
    take_result(walk, node, row->path, err, reason);
}

/* {replicas: n}, the only mapping that is a value. */
static void read_durability(const struct settings_walk *walk, const struct setting_row *row,
                            const yaml_node_t *node)
{
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    const yaml_node_t *key = pair < node->data.mapping.pairs.top ? node_of(walk, pair->key) : NULL;
    char text[64], reason[320] = "";

    if (!key || pair + 1 != node->data.mapping.pairs.top || key->type != YAML_SCALAR_NODE ||
        strcmp(scalar_text(key), "replicas") != 0) {
        complain(walk, node, row->path, "is none of fsync, everysec, memory, {replicas: n}");
        return;
    }
    const yaml_node_t *value = node_of(walk, pair->value);
    if (!is_text(walk, value, row->path)) {
        return;
    }
    (void)snprintf(text, sizeof(text), "replicas: %s", scalar_text(value)); /* cut: refused then */
    int err =
        settings_value_parse(row, text, setting_field(row, walk->base), reason, sizeof(reason));
    take_result(walk, value, row->path, err, reason);
}

static void read_row(const struct settings_walk *walk, const struct setting_row *row,
                     const yaml_node_t *key, const yaml_node_t *node)
{
    walk->lines[row - walk->rows] = settings_node_line(key);
    if (node->type == YAML_MAPPING_NODE && row->type == TYPE_DURABILITY) {
        read_durability(walk, row, node);
    } else if (node->type == YAML_SEQUENCE_NODE &&
               (row->type == TYPE_TEXTS || row->type == TYPE_STATUS_LIST)) {
        read_list(walk, row, node);
    } else {
        read_scalar(walk, row, node);
    }
}

static const struct setting_row *find_row(const struct settings_walk *walk, const char *path)
{
    for (size_t i = 0; i < walk->row_count; i++) {
        if (strcmp(walk->rows[i].path, path) == 0) {
            return &walk->rows[i];
        }
    }
    return NULL;
}

static bool is_section(const struct settings_walk *walk, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < walk->row_count; i++) {
        if (strncmp(walk->rows[i].path, path, len) == 0 && walk->rows[i].path[len] == '.') {
            return true;
        }
    }
    return false;
}

/* Rows whose last part is `word`, in whatever section, as "a or b": the key may only stand in the
 * wrong place. */
static bool find_elsewhere(const struct settings_walk *walk, const char *word, char *out,
                           size_t cap)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < walk->row_count && n < cap; i++) {
        const char *dot = strrchr(walk->rows[i].path, '.');

        if (strcmp(dot ? dot + 1 : walk->rows[i].path, word) == 0) {
            n +=
                (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? " or " : "", walk->rows[i].path);
        }
    }
    return n > 0;
}

/* `store.url: …` on the top level, where `store:` and an indented `url:` is meant. */
static bool is_dotted(const struct level *level, const char *word)
{
    char head[PATH_BYTES];
    size_t len = strcspn(word, ".");

    if (level->section[0] || !word[len] || len >= sizeof(head)) {
        return false;
    }
    memcpy(head, word, len);
    head[len] = '\0';
    return is_section(level->walk, head);
}

static void complain_unknown(const struct level *level, const yaml_node_t *key, const char *path)
{
    const struct settings_walk *walk = level->walk;
    const char *word = path + strlen(level->section);
    size_t section_len = strlen(level->section);
    struct settings_guess guess = {.name = ""};
    char reason[320], elsewhere[160];

    for (size_t i = 0; i < walk->row_count; i++) {
        const char *rest = walk->rows[i].path + section_len;

        if (strncmp(walk->rows[i].path, level->section, section_len) == 0) {
            settings_guess_try(&guess, word, rest, strcspn(rest, "."));
        }
    }
    if (walk->ret_kinds && section_len == 0) {
        settings_guess_try(&guess, word, "kinds", 5);
    }
    if (is_dotted(level, word)) {
        (void)snprintf(reason, sizeof(reason),
                       "a dot is no nesting: write `%.*s:` and below it, indented, `%s:`",
                       (int)strcspn(word, "."), word, word + strcspn(word, ".") + 1);
    } else if (find_elsewhere(walk, word, elsewhere, sizeof(elsewhere))) {
        (void)snprintf(reason, sizeof(reason), "unknown key here; did you mean %s?", elsewhere);
    } else if (guess.name[0]) {
        (void)snprintf(reason, sizeof(reason), "unknown key; did you mean %s%s?", level->section,
                       guess.name);
    } else {
        (void)snprintf(reason, sizeof(reason), "unknown key");
    }
    complain(walk, key, path, reason);
}

static void walk_level(const struct level *level);

static void walk_section(const struct level *level, yaml_node_t *value, const char *path)
{
    char section[PATH_BYTES + 1];

    if (settings_node_is_null(value)) {
        return; /* a heading whose lines are all commented out */
    }
    if (value->type != YAML_MAPPING_NODE) {
        complain(level->walk, value, path, "must be a mapping (its keys indented below it)");
        return;
    }
    (void)snprintf(section, sizeof(section), "%s.", path);
    walk_level(&(struct level){level->walk, value, section});
}

/* The line of an earlier pair of the same mapping with the same key; 0: none. */
static size_t earlier_line(const struct level *level, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = node_of(level->walk, pair->key);

    for (const yaml_node_pair_t *p = level->mapping->data.mapping.pairs.start; p < pair; p++) {
        const yaml_node_t *other = node_of(level->walk, p->key);

        if (other->type == YAML_SCALAR_NODE &&
            other->data.scalar.length == key->data.scalar.length &&
            memcmp(other->data.scalar.value, key->data.scalar.value, key->data.scalar.length) ==
                0) {
            return settings_node_line(other);
        }
    }
    return 0;
}

static void walk_pair(const struct level *level, const yaml_node_pair_t *pair)
{
    const struct settings_walk *walk = level->walk;
    yaml_node_t *key = node_of(walk, pair->key);
    yaml_node_t *value = node_of(walk, pair->value);
    char path[PATH_BYTES], reason[96];

    if (key->type != YAML_SCALAR_NODE) {
        complain(walk, key, level->section, "a key must be a single word");
        return;
    }
    struct settings_shown shown = settings_show(scalar_text(key), key->data.scalar.length);
    int len = snprintf(path, sizeof(path), "%s%s", level->section, scalar_text(key));
    if (len < 0 || (size_t)len >= sizeof(path) ||
        strlen(scalar_text(key)) != key->data.scalar.length || strchr(shown.text, '?')) {
        (void)snprintf(path, sizeof(path), "%s%s", level->section, shown.text);
        complain(walk, key, path, "unknown key");
        return;
    }
    size_t earlier = earlier_line(level, pair);
    if (earlier > 0) {
        (void)snprintf(reason, sizeof(reason), "stands here again, first on line %zu", earlier);
        complain(walk, key, path, reason);
        return;
    }
    const struct setting_row *row = find_row(walk, path);
    if (row && !strchr(scalar_text(key), '.')) {
        read_row(walk, row, key, value);
    } else if (is_section(walk, path) && !strchr(scalar_text(key), '.')) {
        walk_section(level, value, path);
    } else if (walk->ret_kinds && strcmp(path, "kinds") == 0) {
        *walk->ret_kinds = value;
    } else {
        complain_unknown(level, key, path);
    }
}

static void walk_level(const struct level *level)
{
    if (level->mapping->data.mapping.pairs.top - level->mapping->data.mapping.pairs.start >
        KEYS_MAX) { /* each is compared with all before it */
        complain(level->walk, level->mapping, level->section, "has too many keys");
        return;
    }
    for (const yaml_node_pair_t *pair = level->mapping->data.mapping.pairs.start;
         pair < level->mapping->data.mapping.pairs.top; pair++) {
        walk_pair(level, pair);
    }
}

void settings_walk(const struct settings_walk *walk, yaml_node_t *mapping)
{
    walk_level(&(struct level){walk, mapping, ""});
}

int settings_set_defaults(const struct setting_row *rows, size_t row_count, void *base,
                          const struct settings *settings)
{
    char reason[320];

    for (size_t i = 0; i < row_count; i++) {
        const struct setting_row *row = &rows[i];

        if (row->inherits != SETTING_COUNT) {
            settings_value_copy(row->type,
                                setting_const_field(&setting_rows[row->inherits], settings),
                                setting_field(row, base));
            continue;
        }
        /* A default that its own row refuses is found by the first test: -EINVAL here is our
         * mistake. */
        int err =
            settings_value_parse(row, row->def, setting_field(row, base), reason, sizeof(reason));
        if (err < 0) {
            return err;
        }
    }
    return 0;
}

void settings_free_rows(const struct setting_row *rows, size_t row_count, void *base)
{
    for (size_t i = 0; i < row_count; i++) {
        settings_value_free(rows[i].type, setting_field(&rows[i], base));
    }
}
