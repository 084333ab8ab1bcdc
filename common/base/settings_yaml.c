/* Bytes to libyaml's document tree, which knows the line of everything. Two passes: the first reads
 * events and refuses what a configuration must not contain (anchors, aliases, tags, depth, a second
 * document) before a tree is built. */
#include "common/base/settings_private.h"

#include <errno.h>
#include <string.h>

#include "common/core/utf8.h"

size_t settings_node_line(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

bool settings_node_is_null(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return false;
    }
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (node->data.scalar.length == strlen(nulls[i]) &&
            memcmp(node->data.scalar.value, nulls[i], node->data.scalar.length) == 0) {
            return true;
        }
    }
    return false;
}

/* What libyaml says when it stops. It stops at the first mistake of syntax: behind that, nothing is
 * certain. */
static int complain_syntax(struct settings_source *source, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        source->err = -ENOMEM;
        return -ENOMEM;
    }
    size_t line = parser->problem_mark.line + 1;

    /* `{url: /pay/{id}}`: braces of a template end the mapping that they stand in. */
    const bool is_in_braces = parser->context && strstr(parser->context, "flow mapping");

    settings_complain(source, line, NULL, "not valid YAML: %s%s%s%s",
                      parser->problem ? parser->problem : "cannot be read",
                      parser->context ? " " : "", parser->context ? parser->context : "",
                      is_in_braces ? " (within { } a value with a brace or a comma needs quotes)"
                                   : "");
    return -EINVAL;
}

static bool check_utf8(struct settings_source *source, const char *bytes, size_t len)
{
    size_t line = 1;

    for (size_t i = 0; i < len;) {
        uint32_t code;
        size_t n = utf8_next(bytes + i, len - i, &code);

        if (n == 0) {
            settings_complain(source, line, NULL, "not valid UTF-8 (byte 0x%02x)",
                              (unsigned)(unsigned char)bytes[i]);
            return false;
        }
        if (code == 0) {
            settings_complain(source, line, NULL, "holds a NUL byte: not a text file");
            return false;
        }
        line += code == '\n';
        i += n;
    }
    return true;
}

struct scan {
    struct settings_source *source;
    size_t depth, documents;
    bool is_refused;
};

static void refuse(struct scan *scan, const yaml_event_t *event, const char *reason)
{
    settings_complain(scan->source, event->start_mark.line + 1, NULL, "%s", reason);
    scan->is_refused = true;
}

static void check_properties(struct scan *scan, const yaml_event_t *event,
                             const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) {
        refuse(scan, event, "anchors (&name) are not supported: write the value out");
    }
    if (tag) {
        refuse(scan, event, "tags (!name) are not supported: write the plain value");
    }
}

static void go_deeper(struct scan *scan, const yaml_event_t *event)
{
    if (++scan->depth > SETTINGS_DEPTH_MAX) {
        refuse(scan, event, "nested too deeply (at most 16 levels)");
    }
}

/* Looks at one event; false: stop here. */
static bool scan_event(struct scan *scan, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++scan->documents > 1) {
            refuse(scan, event, "a second document begins here (---): one file is one document");
            return false;
        }
        break;
    case YAML_ALIAS_EVENT:
        refuse(scan, event, "aliases (*name) are not supported: write the value out");
        break;
    case YAML_SCALAR_EVENT:
        check_properties(scan, event, event->data.scalar.anchor, event->data.scalar.tag);
        if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && event->data.scalar.length == 2 &&
            memcmp(event->data.scalar.value, "<<", 2) == 0) {
            refuse(scan, event, "merge keys (<<) are not supported: write the values out");
        }
        break;
    case YAML_SEQUENCE_START_EVENT:
        check_properties(scan, event, event->data.sequence_start.anchor,
                         event->data.sequence_start.tag);
        go_deeper(scan, event);
        break;
    case YAML_MAPPING_START_EVENT:
        check_properties(scan, event, event->data.mapping_start.anchor,
                         event->data.mapping_start.tag);
        go_deeper(scan, event);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        scan->depth--;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return scan->depth <= SETTINGS_DEPTH_MAX;
}

static int scan_events(struct settings_source *source, yaml_parser_t *parser)
{
    struct scan scan = {.source = source};
    bool goes_on = true;

    while (goes_on) {
        yaml_event_t event;

        if (!yaml_parser_parse(parser, &event)) {
            return complain_syntax(source, parser);
        }
        goes_on = event.type != YAML_STREAM_END_EVENT && scan_event(&scan, &event);
        yaml_event_delete(&event);
    }
    return scan.is_refused ? -EINVAL : 0;
}

static int with_parser(struct settings_source *source, const char *bytes, size_t len,
                       yaml_document_t *ret)
{
    yaml_parser_t parser;
    int err = 0;

    if (!yaml_parser_initialize(&parser)) {
        source->err = -ENOMEM;
        return -ENOMEM;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, len);
    if (!ret) {
        err = scan_events(source, &parser);
    } else if (!yaml_parser_load(&parser, ret)) {
        err = complain_syntax(source, &parser);
    }
    yaml_parser_delete(&parser);
    return err;
}

int settings_yaml_load(struct settings_source *source, const char *bytes, size_t len,
                       yaml_document_t *ret)
{
    if (len > SETTINGS_FILE_MAX) {
        settings_complain(source, 0, NULL, "is larger than 1 MiB: not a configuration");
        return -EINVAL;
    }
    if (!check_utf8(source, bytes, len)) {
        return -EINVAL;
    }
    if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* an editor's byte order mark */
        bytes += 3;
        len -= 3;
    }
    int err = with_parser(source, bytes, len, NULL);

    return err < 0 ? err : with_parser(source, bytes, len, ret);
}
