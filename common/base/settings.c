/* The configuration from a file or from bytes: the order of the steps, the two tables' rows, and
 * what is derived. All steps run even if an earlier one found mistakes, as far as that makes sense:
 * people mend them all at once. */
#include "common/base/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/settings_private.h"

#define LOCK_MARGIN_MS  120000
#define DRAIN_MARGIN_MS 30000
#define WORKER_MAX      28

const struct setting_row setting_rows[SETTING_COUNT] = {
#define SETTING(field_, path_, type_, def_, min_, max_, flags_, help_)                             \
    [SETTING_##field_] = {                                                                         \
        .path = (path_),                                                                           \
        .type = TYPE_##type_,                                                                      \
        .offset = offsetof(struct settings, field_),                                               \
        .def = (def_),                                                                             \
        .min = (min_),                                                                             \
        .max = (max_),                                                                             \
        .flags = FLAG_##flags_,                                                                    \
        .inherits = SETTING_COUNT,                                                                 \
        .help = (help_),                                                                           \
    },
#include "common/base/settings.def"
};

/* Each row's range under its name, for the rows of kinds that take it over. */
#define SETTING(field_, path_, type_, def_, min_, max_, flags_, help_)                             \
    static const char min_of_##field_[] __attribute__((unused)) = min_;                            \
    static const char max_of_##field_[] __attribute__((unused)) = max_;
#include "common/base/settings.def"

const struct setting_row kind_rows[KIND_ROW_COUNT] = {
#define KIND_SETTING(id_, field_, path_, type_, def_, min_, max_, help_)                           \
    [KIND_ROW_##id_] = {                                                                           \
        .path = (path_),                                                                           \
        .type = TYPE_##type_,                                                                      \
        .offset = offsetof(struct kind, field_),                                                   \
        .def = (def_),                                                                             \
        .min = (min_),                                                                             \
        .max = (max_),                                                                             \
        .flags = FLAG_RELOAD,                                                                      \
        .inherits = SETTING_COUNT,                                                                 \
        .help = (help_),                                                                           \
    },
#define KIND_LIMIT(id_, field_, path_, type_, setting_, help_)                                     \
    [KIND_ROW_##id_] = {                                                                           \
        .path = (path_),                                                                           \
        .type = TYPE_##type_,                                                                      \
        .offset = offsetof(struct kind, field_),                                                   \
        .def = "",                                                                                 \
        .min = min_of_##setting_,                                                                  \
        .max = max_of_##setting_,                                                                  \
        .flags = FLAG_RELOAD,                                                                      \
        .inherits = SETTING_##setting_,                                                            \
        .help = (help_),                                                                           \
    },
#include "common/base/kinds.def"
};

/* A row's type and its field agree in size (KIND rows; struct settings is made from its rows). */
#define KIND_SETTING(id, field, path, type, def, min, max, help)                                   \
    _Static_assert(sizeof(((struct kind *)0)->field) == sizeof(setting_##type), path);
#define KIND_LIMIT(id, field, path, type, setting, help)                                           \
    _Static_assert(sizeof(((struct kind *)0)->field) == sizeof(setting_##type), path);
#include "common/base/kinds.def"

/* state_dir: what systemd made for us, unless the file says otherwise. */
static int take_state_directory(struct settings *settings, const struct settings_lines *lines)
{
    const char *folders = getenv("STATE_DIRECTORY");
    size_t len = folders ? strcspn(folders, ":") : 0; /* the first of several */

    if (len == 0 || lines->settings[SETTING_state_dir] > 0) {
        return 0;
    }
    char *copy = strndup(folders, len);
    if (!copy) {
        return -ENOMEM;
    }
    free(settings->state_dir);
    settings->state_dir = copy;
    return 0;
}

static void read_tree(struct settings_source *source, struct settings *settings,
                      struct settings_lines *lines)
{
    yaml_node_t *root = yaml_document_get_root_node(source->document);
    yaml_node_t *kinds = NULL;

    if (root && root->type == YAML_MAPPING_NODE) {
        settings_walk(
            &(struct settings_walk){
                .source = source,
                .rows = setting_rows,
                .row_count = SETTING_COUNT,
                .base = settings,
                .lines = lines->settings,
                .prefix = "",
                .ret_kinds = &kinds,
            },
            root);
    } else if (root && !settings_node_is_null(root)) { /* an empty file is all defaults */
        settings_complain(source, settings_node_line(root), NULL,
                          "must be a mapping (lines like `name: value`)");
    }
    if (source->err == 0) {
        settings_read_kinds(source, kinds, settings, lines);
    }
}

static void check(struct settings_source *source, struct settings *settings,
                  const struct settings_lines *lines)
{
    settings_check_values(source, settings, lines);
    settings_read_secrets(source, settings, lines);
    settings_check_rules(source, settings, lines);
}

int settings_parse(const char *name, const char *bytes, size_t len, struct settings **ret,
                   struct settings_report *report)
{
    yaml_document_t document;
    struct settings_source source = {.file = name, .document = &document, .report = report};
    struct settings_lines *lines = calloc(1, sizeof(*lines));
    struct settings *settings = calloc(1, sizeof(*settings));
    int err = lines && settings ? 0 : -ENOMEM;

    if (err == 0) {
        err = settings_yaml_load(&source, bytes, len, &document);
    }
    if (err == 0) {
        source.err = settings_set_defaults(setting_rows, SETTING_COUNT, settings, NULL);
        if (source.err == 0) {
            read_tree(&source, settings, lines);
        }
        if (source.err == 0) {
            source.err = take_state_directory(settings, lines);
        }
        if (source.err == 0) {
            check(&source, settings, lines);
        }
        yaml_document_delete(&document);
        err = source.err < 0 ? source.err : report->error_count > 0 ? -EINVAL : 0;
    }
    if (err == 0) {
        *ret = settings;
        settings = NULL;
    }
    free(lines);
    settings_destroy(&settings);
    return err;
}

static int read_file(const char *path, struct buf *out)
{
    char part[4096];
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int err = 0;

    if (fd < 0) {
        return -errno;
    }
    while (err == 0) {
        ssize_t n = read(fd, part, sizeof(part));

        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        err = n < 0 ? 0 : buf_append(out, part, (size_t)n);
    }
    return err == -ENOBUFS ? -EFBIG : err;
}

int settings_load(const char *path, struct settings **ret, struct settings_report *report)
{
    struct settings_source source = {.file = path, .report = report};
    struct buf bytes;
    int err = 0;

    buf_init(&bytes, SETTINGS_FILE_MAX);
    if (path) {
        err = read_file(path, &bytes);
    }
    if (err < 0) {
        settings_complain(&source, 0, NULL, "cannot be read: %s", strerror(-err));
    } else {
        err = settings_parse(path ? path : "(defaults)", bytes.bytes ? bytes.bytes : "", bytes.len,
                             ret, report);
    }
    buf_done(&bytes);
    return err;
}

void settings_destroy(struct settings **settings)
{
    struct settings *s = *settings;

    if (!s) {
        return;
    }
    if (s->target_password) {
        explicit_bzero(s->target_password, strlen(s->target_password));
    }
    for (size_t i = 0; i < s->target_secrets.count; i++) {
        explicit_bzero(s->target_secrets.items[i], strlen(s->target_secrets.items[i]));
    }
    for (size_t i = 0; i < s->kind_count; i++) {
        settings_free_rows(kind_rows, KIND_ROW_COUNT, &s->kinds[i]);
    }
    free(s->kinds);
    settings_free_rows(setting_rows, SETTING_COUNT, s);
    free(s);
    *settings = NULL;
}

const struct kind *settings_kind(const struct settings *settings, const char *name, size_t len)
{
    for (size_t i = 0; i < settings->kind_count; i++) {
        const char *candidate = settings->kinds[i].name;

        if (strlen(candidate) == len && memcmp(candidate, name, len) == 0) {
            return &settings->kinds[i];
        }
    }
    return NULL;
}

size_t settings_kind_index(const struct settings *settings, const struct kind *kind)
{
    return (size_t)(kind - settings->kinds);
}

bool kind_can_look_up(const struct kind *kind)
{
    return kind->executor != EXECUTOR_HTTP || kind->verify.url;
}

int64_t settings_longest_timeout_ms(const struct settings *settings)
{
    int64_t longest = settings->delivery_timeout;

    if (settings->verify_timeout > longest) {
        longest = settings->verify_timeout;
    }
    for (size_t i = 0; i < settings->kind_count; i++) {
        if (settings->kinds[i].timeout_ms > longest) {
            longest = settings->kinds[i].timeout_ms;
        }
    }
    return longest;
}

int64_t settings_lock_ttl_ms(const struct settings *settings)
{
    return settings->lock_ttl > 0 ? settings->lock_ttl
                                  : settings_longest_timeout_ms(settings) + LOCK_MARGIN_MS;
}

int64_t settings_drain_timeout_ms(const struct settings *settings)
{
    return settings->drain_timeout > 0 ? settings->drain_timeout
                                       : settings->delivery_timeout + DRAIN_MARGIN_MS;
}

uint32_t settings_worker_count(const struct settings *settings)
{
    cpu_set_t cpus;
    long count = 0;

    if (settings->workers > 0) {
        return settings->workers;
    }
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) { /* what we may use, not what there is */
        count = CPU_COUNT(&cpus);
    } else {
        count = sysconf(_SC_NPROCESSORS_ONLN);
    }
    return count < 1 ? 1 : count > WORKER_MAX ? WORKER_MAX : (uint32_t)count;
}
