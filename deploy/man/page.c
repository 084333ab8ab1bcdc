/* Fills a manual page's template: `manual-page TEMPLATE VERSION` prints it with each line that
 * reads `@NAME@` replaced by what a table of outboxd says (settings, kinds, signals), in mdoc(7).
 * Runs while outboxd is built, is not installed. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/core/utf8.h"

#define LINE_BYTES 4096

/* ---- text ---- */

/* Within a line: a backslash means something else there, and so do a dot and a quote at its start.
 * Beyond ASCII by name, for every formatter and locale. A new sentence begins a new line: it is
 * spaced as such. */
static void print_text(const char *text)
{
    size_t left = strlen(text);
    uint32_t before = 0;

    if (*text == '.' || *text == '\'') {
        (void)fputs("\\&", stdout);
    }
    while (left > 0) {
        uint32_t code = 0;
        const size_t step = utf8_next(text, left, &code);

        if (step == 0) {
            return; /* the tables are UTF-8 */
        }
        if (code == '\\') {
            (void)fputs("\\e", stdout);
        } else if (code > 0x7e) {
            (void)printf("\\[u%04X]", (unsigned)code);
        } else if (code == ' ' && before == '.') {
            (void)putchar('\n');
        } else {
            (void)putchar((int)code);
        }
        before = code;
        text += step;
        left -= step;
    }
    (void)putchar('\n');
}

/* ---- settings and kinds ---- */

struct word {
    const char *type, *word;
};
static const struct word words[] = {
#define SETTING_ENUM(type, value, word) {#type, word},
#include "common/base/settings_enums.def"
};

static void print_type(const char *type)
{
    static const struct word plain[] = {
        {"DURATION", "duration"},
        {"SIZE", "size"},
        {"COUNT", "number"},
        {"BOOL", "true or false"},
        {"TEXT", "text"},
        {"TEXTS", "text or list of texts"},
        {"STATUS_LIST", "status or list"},
        {"DURABILITY", "fsync, everysec, memory or {replicas: n}"},
    };
    const char *before = "";

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (strcmp(plain[i].type, type) == 0) {
            (void)fputs(plain[i].word, stdout);
        }
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].type, type) == 0) {
            (void)printf("%s%s", before, words[i].word);
            before = ", ";
        }
    }
}

static void print_item(const char *path, const char *type, const char *help)
{
    (void)printf(".It Cm %s No (", path);
    print_type(type);
    (void)puts(")");
    print_text(help);
}

static void print_default(const char *value)
{
    (void)fputs(*value ? "Default: " : "No default", stdout);
    for (; *value; value++) {
        (void)fputs(*value == '\\' ? "\\e" : (char[]){*value, '\0'}, stdout);
    }
}

static void print_setting(const char *path, const char *type, const char *def, const char *min,
                          const char *max, const char *flags, const char *help)
{
    print_item(path, type, help);
    print_default(def);
    if (*min && *max) {
        (void)printf("; %s to %s", min, max);
    }
    (void)puts(strncmp(flags, "RELOAD", 6) == 0 ? "." : "; a change needs a restart.");
}

static void print_settings(void)
{
#define SETTING(field, path, type, def, min, max, flags, help)                                     \
    print_setting(path, #type, def, min, max, #flags, help);
#include "common/base/settings.def"
}

static void print_kind_setting(const char *path, const char *type, const char *def,
                               const char *help)
{
    print_item(path, type, help);
    print_default(def);
    (void)puts(".");
}

static void print_kind_limit(const char *path, const char *type, const char *setting,
                             const char *help)
{
    print_item(path, type, help);
    (void)printf("Default: the setting\n.Cm %s .\n", setting);
}

static void print_kinds(void)
{
#define KIND_SETTING(id, field, path, type, def, min, max, help)                                   \
    print_kind_setting(path, #type, def, help);
#define KIND_LIMIT(id, field, path, type, setting, help)                                           \
    print_kind_limit(path, #type, #setting, help);
#include "common/base/kinds.def"
}

/* ---- signals ---- */

static void print_signal(const char *name, const char *action, const char *help)
{
    char sentence[512];

    if (strcmp(action, "REAP") == 0) {
        return; /* for its own use */
    }
    (void)snprintf(sentence, sizeof(sentence), "%s.", help);
    if (sentence[0] >= 'a' && sentence[0] <= 'z') {
        sentence[0] = (char)(sentence[0] - 'a' + 'A');
    }
    (void)printf(".It Dv SIG%s\n", name);
    print_text(sentence);
}

static void print_signals(void)
{
#define SIGNAL_ROW(name, action, help) print_signal(#name, #action, help);
#include "supervisor/signals.def"
}

/* ---- the page ---- */

static const struct table {
    const char *line;
    void (*print)(void);
} tables[] = {
    {"@settings@\n", print_settings},
    {"@kinds@\n", print_kinds},
    {"@signals@\n", print_signals},
};

static int print_line(const char *line, const char *version)
{
    const char *place = strstr(line, "@version@");

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (strcmp(line, tables[i].line) == 0) {
            tables[i].print();
            return 0;
        }
    }
    if (place) {
        (void)printf("%.*s%s%s", (int)(place - line), line, version, place + strlen("@version@"));
        return 0;
    }
    if (line[0] == '@') {
        (void)fprintf(stderr, "no such table: %s", line);
        return -1;
    }
    (void)fputs(line, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    char line[LINE_BYTES];
    int err = 0;
    FILE *template = argc == 3 ? fopen(argv[1], "re") : NULL;

    if (!template) {
        (void)fprintf(stderr, "usage: manual-page TEMPLATE VERSION\n");
        return 2;
    }
    while (err == 0 && fgets(line, sizeof(line), template)) {
        err = print_line(line, argv[2]);
    }
    (void)fclose(template); /* read only */
    return err < 0 || ferror(stdout) || fclose(stdout) != 0 ? 1 : 0;
}
