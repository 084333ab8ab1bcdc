/* The list `kinds`: one struct kind per element, the built-in `prompt` first unless the file
 * declares it. Runs after the top level was read, since kinds take over its limits. Contract §4. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings_private.h"

#define BUILT_IN_NAME      "prompt"
#define OPENCODE_SETTLE_MS 10000

static yaml_node_t *item_node(const struct settings_source *source, const yaml_node_t *list,
                              size_t i)
{
    return yaml_document_get_node(source->document, list->data.sequence.items.start[i]);
}

/* Whether an element of the list has `name: prompt`. */
static bool declares_built_in(const struct settings_source *source, const yaml_node_t *item)
{
    if (item->type != YAML_MAPPING_NODE) {
        return false;
    }
    for (const yaml_node_pair_t *pair = item->data.mapping.pairs.start;
         pair < item->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(source->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(source->document, pair->value);

        if (key->type == YAML_SCALAR_NODE && value->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value, "name") == 0 &&
            strcmp((const char *)value->data.scalar.value, BUILT_IN_NAME) == 0) {
            return true;
        }
    }
    return false;
}

static int set_text(char **field, const char *text)
{
    char *copy = strdup(text);

    if (!copy) {
        return -ENOMEM;
    }
    free(*field);
    *field = copy;
    return 0;
}

/* What is a default for some kinds only. `lines` say what the file wrote itself. */
static int set_special_defaults(struct kind *kind, const size_t *kind_lines,
                                const size_t *setting_lines)
{
    const bool is_built_in = kind->name && strcmp(kind->name, BUILT_IN_NAME) == 0;

    if (is_built_in && kind_lines[KIND_ROW_executor] == 0 && kind_lines[KIND_ROW_url] == 0) {
        kind->executor = EXECUTOR_OPENCODE;
    }
    if (kind->executor == EXECUTOR_OPENCODE && kind_lines[KIND_ROW_verify_settle] == 0 &&
        setting_lines[SETTING_verify_settle] == 0) {
        kind->verify_settle_ms = OPENCODE_SETTLE_MS;
    }
    if (!is_built_in) {
        return 0;
    }
    if (kind_lines[KIND_ROW_ordering] == 0) {
        kind->ordering = ORDERING_FIRST_DUE;
    }
    return kind->url || kind->executor != EXECUTOR_HTTP ? 0 : set_text(&kind->url, "/");
}

/* A fresh element at the end of settings->kinds. */
static struct kind *add_kind(struct settings_source *source, struct settings *settings)
{
    struct kind *kind = &settings->kinds[settings->kind_count++]; /* room: settings_read_kinds */
    int err = settings_set_defaults(kind_rows, KIND_ROW_COUNT, kind, settings);

    kind->place = (uint32_t)settings->kind_count - 1;

    if (err < 0) {
        source->err = err;
        return NULL;
    }
    return kind;
}

static void add_built_in(struct settings_source *source, struct settings *settings,
                         struct settings_lines *lines)
{
    struct kind *kind = add_kind(source, settings);

    if (!kind) {
        return;
    }
    int err = set_text(&kind->name, BUILT_IN_NAME);
    if (err == 0) {
        err = set_special_defaults(kind, lines->kind_rows[0], lines->settings);
    }
    if (err < 0) {
        source->err = err;
    }
}

static void read_kind(struct settings_source *source, yaml_node_t *item, size_t place,
                      struct settings *settings, struct settings_lines *lines)
{
    size_t index = settings->kind_count;
    char prefix[32];

    (void)snprintf(prefix, sizeof(prefix), "kinds[%zu]", place);
    if (item->type != YAML_MAPPING_NODE) {
        settings_complain(source, settings_node_line(item), prefix,
                          "must be a mapping (name: …, url: …)");
        return;
    }
    struct kind *kind = add_kind(source, settings);
    if (!kind) {
        return;
    }
    lines->kind[index] = settings_node_line(item);
    lines->kind_place[index] = place;
    (void)snprintf(prefix, sizeof(prefix), "kinds[%zu].", place);
    settings_walk(
        &(struct settings_walk){
            .source = source,
            .rows = kind_rows,
            .row_count = KIND_ROW_COUNT,
            .base = kind,
            .lines = lines->kind_rows[index],
            .prefix = prefix,
        },
        item);
    int err = set_special_defaults(kind, lines->kind_rows[index], lines->settings);
    if (err < 0) {
        source->err = err;
    }
}

static size_t list_length(struct settings_source *source, const yaml_node_t *node)
{
    if (!node || settings_node_is_null(node)) {
        return 0;
    }
    if (node->type != YAML_SEQUENCE_NODE) {
        settings_complain(source, settings_node_line(node), "kinds",
                          "must be a list (each element begins with - name: …)");
        return 0;
    }
    size_t count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);

    if (count > KIND_COUNT_MAX - 1) { /* one place is for the built-in one */
        settings_complain(source, settings_node_line(node), "kinds", "has %zu kinds, more than %d",
                          count, KIND_COUNT_MAX - 1);
        count = KIND_COUNT_MAX - 1;
    }
    return count;
}

void settings_read_kinds(struct settings_source *source, yaml_node_t *node,
                         struct settings *settings, struct settings_lines *lines)
{
    size_t count = list_length(source, node);
    bool has_built_in = false;

    settings->kinds = calloc(count + 1, sizeof(*settings->kinds));
    if (!settings->kinds) {
        source->err = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        has_built_in = has_built_in || declares_built_in(source, item_node(source, node, i));
    }
    if (!has_built_in) {
        add_built_in(source, settings, lines);
    }
    for (size_t i = 0; i < count && source->err == 0; i++) {
        read_kind(source, item_node(source, node, i), i, settings, lines);
    }
}
