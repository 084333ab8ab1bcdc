/* `outboxctl token`: makes tokens for a server's token file, lists and revokes them. Asks no
 * server: the file is what counts, once outboxd has read it. */
#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "api/ctl/run.h"
#include "api/ctl/token_list.h"
#include "common/access/token_table.h"
#include "common/access/workspace_pattern.h"
#include "common/base/err.h"

#define LINE_MAX_  8192
#define MISTAKES   ((size_t)256 << 10)
#define OUT_MAX    ((size_t)16 << 20)
#define SHOWN_LEN  12 /* hex digits of a hash that tell tokens apart */
#define SHOWN_MIN  8  /* of them, to revoke by */
#define HASH_START "sha256:"

static const char *const reload = "Have outboxd read it: systemctl reload outboxd, or send HUP.";

/* The table of an open list; NULL: said on stderr. */
static struct token_table *parse(const struct token_list *list)
{
    struct token_table *table = NULL;
    struct buf mistakes;

    buf_init(&mistakes, MISTAKES);
    const int err = token_table_parse(list->path, (struct span){list->text.bytes, list->text.len},
                                      &table, &mistakes);
    if (err < 0) {
        fprintf(stderr, "outboxctl: %s\n%s",
                err == -EINVAL ? "the token file has mistakes:" : strerror(-err),
                mistakes.bytes ? mistakes.bytes : "");
    }
    buf_done(&mistakes);
    return table;
}

static void show_hash(const struct access_token *token, char out[SHOWN_LEN + 1])
{
    char hex[TOKEN_HASH_BYTES * 2 + 1];

    (void)sodium_bin2hex(hex, sizeof(hex), token->hash, TOKEN_HASH_BYTES);
    memcpy(out, hex, SHOWN_LEN);
    out[SHOWN_LEN] = '\0';
}

/* ---- create ---- */

static int print_token(const struct options *options, const char *token, const char *path)
{
    bool is_printed;

    if (option_is_set(options, OPTION_JSON)) {
        json_t *root = json_pack("{s:s, s:s}", "token", token, "file", path);

        is_printed = root && json_dumpf(root, stdout, JSON_COMPACT) == 0 && puts("") >= 0;
        json_decref(root);
    } else {
        is_printed = puts(token) >= 0;
    }
    if (!is_printed || fflush(stdout) != 0) {
        perror("outboxctl: standard output");
        fputs(
            "Nobody has seen the token that was just added: revoke it (outboxctl token list shows "
            "it last).\n",
            stderr);
        return EXIT_CODE_FAILED;
    }
    fprintf(stderr, "This is the only time that it is shown; %s keeps its hash. %s\n", path,
            reload);
    return EXIT_CODE_OK;
}

static int create(const struct options *options, const char *path)
{
    const char *role_name = option_text(options, OPTION_ROLE);
    const char *workspaces = option_text(options, OPTION_WORKSPACE);
    const char *name = option_text(options, OPTION_NAME) ? option_text(options, OPTION_NAME) : "";
    unsigned char hash[TOKEN_HASH_BYTES];
    char token[TOKEN_LEN + 1];
    enum access_role role = ROLE_CLIENT;
    struct token_list list;
    struct buf line;

    if (!role_name || !workspaces) {
        options_complain(options, "token create needs --role (client, operator or admin) and "
                                  "--workspace (home, team-*, * for all, @none for none)");
        return EXIT_CODE_USAGE;
    }
    const char *refusal = workspace_patterns_refusal(span_of(workspaces));
    if (refusal) {
        options_complain(options, "--workspace %s", refusal);
        return EXIT_CODE_USAGE;
    }
    (void)access_role_parse(span_of(role_name), &role); /* one of the option's words */
    token_draw(token);
    token_hash(span_of(token), hash);
    buf_init(&line, LINE_MAX_);
    int result = EXIT_CODE_USAGE;
    if (!token_line_write(hash, role, span_of(workspaces), span_of(name), &line)) {
        options_complain(options, "--name must be a short line of text");
    } else if (!token_list_open(&list, path, TOKEN_LIST_APPEND)) {
        result = EXIT_CODE_FAILED;
    } else {
        result = token_list_append(&list, (struct span){line.bytes, line.len})
                     ? print_token(options, token, path)
                     : EXIT_CODE_FAILED;
        token_list_close(&list);
    }
    buf_done(&line);
    sodium_memzero(token, sizeof(token));
    return result;
}

/* ---- list ---- */

static json_t *as_json(const struct access_token *token)
{
    char hash[SHOWN_LEN + 1];

    show_hash(token, hash);
    return json_pack("{s:s, s:s, s:s%, s:s%, s:I}", "hash", hash, "role",
                     access_role_name(token->role), "workspaces", token->workspaces.ptr,
                     token->workspaces.len, "name", token->name.len > 0 ? token->name.ptr : "",
                     token->name.len, "line", (json_int_t)token->line);
}

static void add_json(const struct token_table *table, struct buf *out)
{
    json_t *root = json_array();

    for (size_t i = 0; i < token_table_count(table); i++) {
        (void)json_array_append_new(root,
                                    as_json(token_table_get(table, i))); /* seen in the text */
    }
    AUTO_FREE char *text = json_dumps(root, JSON_COMPACT);

    json_decref(root);
    (void)buf_append_str(out, text ? text : "[]");
    (void)buf_append_str(out, "\n");
}

static void add_rows(const struct token_table *table, struct buf *out)
{
    for (size_t i = 0; i < token_table_count(table); i++) {
        const struct access_token *token = token_table_get(table, i);
        char hash[SHOWN_LEN + 1];

        show_hash(token, hash);
        (void)buf_appendf(out, "%s  %-8s  ", hash, access_role_name(token->role));
        print_safe(out, token->workspaces);
        (void)buf_append_str(out, token->name.len > 0 ? "  " : "");
        print_safe(out, token->name);
        (void)buf_append_str(out, "\n");
    }
}

static int list_tokens(const struct options *options, const char *path)
{
    struct token_list list;
    struct buf out;

    if (!token_list_open(&list, path, TOKEN_LIST_READ)) {
        return EXIT_CODE_FAILED;
    }
    struct token_table *table = parse(&list);
    int result = EXIT_CODE_FAILED;

    if (table) {
        buf_init(&out, OUT_MAX);
        if (option_is_set(options, OPTION_JSON)) {
            add_json(table, &out);
        } else {
            add_rows(table, &out);
        }
        result = output_write(&out);
        buf_done(&out);
    }
    token_table_destroy(&table);
    token_list_close(&list);
    return result;
}

/* ---- revoke ---- */

/* Whether a token is meant by its whole name, by its hash or the beginning of that, or by itself.
 */
static bool is_meant(const struct access_token *token, const char *word)
{
    char hex[TOKEN_HASH_BYTES * 2 + 1];
    const char *digits =
        strncmp(word, HASH_START, strlen(HASH_START)) == 0 ? word + strlen(HASH_START) : word;

    (void)sodium_bin2hex(hex, sizeof(hex), token->hash, TOKEN_HASH_BYTES);
    return span_equal(token->name, span_of(word)) ||
           (strlen(digits) >= SHOWN_MIN && strncmp(hex, digits, strlen(digits)) == 0);
}

static int remove_meant(struct token_list *list, const struct token_table *table, const char *word)
{
    const struct access_token *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < token_table_count(table); i++) {
        if (is_meant(token_table_get(table, i), word)) {
            found = token_table_get(table, i);
            count++;
        }
    }
    if (count != 1) {
        fprintf(stderr, "outboxctl: %s of %s: %s\n", count == 0 ? "no token" : "several tokens",
                list->path,
                count == 0
                    ? "name one by its hash (8 digits at least) or its whole name, as `token "
                      "list` shows them"
                    : "name one by its hash, as `token list` shows it");
        return count == 0 ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CONFLICT;
    }
    if (!token_list_remove(list, found->line)) {
        return EXIT_CODE_FAILED;
    }
    fprintf(stderr, "Revoked. %s\n", reload);
    return EXIT_CODE_OK;
}

static int revoke_token(const struct options *options, const char *path, const char *word)
{
    struct token_list list;

    if (!word || !*word) {
        options_complain(options,
                         "token revoke needs a hash or a name, as `token list` shows them");
        return EXIT_CODE_USAGE;
    }
    if (!token_list_open(&list, path, TOKEN_LIST_READ)) {
        return EXIT_CODE_FAILED;
    }
    struct token_table *table = parse(&list);
    const int result = table ? remove_meant(&list, table, word) : EXIT_CODE_FAILED;

    token_table_destroy(&table);
    token_list_close(&list);
    return result;
}

int command_token(const struct options *options)
{
    const char *what = options_argument(options, 0); /* the table of commands demands it */
    const char *word = options_argument(options, 1);
    const char *path = option_text(options, OPTION_FILE);

    if (!path) {
        options_complain(options, "token needs --file: the token_file of outboxd's configuration");
        return EXIT_CODE_USAGE;
    }
    if (sodium_init() < 0) {
        fputs("outboxctl: cannot start the cryptography library\n", stderr);
        return EXIT_CODE_FAILED;
    }
    if (strcmp(what, "revoke") == 0) {
        return revoke_token(options, path, word);
    }
    if (word) {
        options_complain(options, "token %s takes no \"%s\"", what, word);
        return EXIT_CODE_USAGE;
    }
    if (strcmp(what, "create") == 0) {
        return create(options, path);
    }
    if (strcmp(what, "list") == 0) {
        return list_tokens(options, path);
    }
    options_complain(options, "token %s: there is create, list and revoke", what);
    return EXIT_CODE_USAGE;
}
