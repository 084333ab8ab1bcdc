/* Rules over several settings: two tables of (condition, message), one for the top level, one for
 * each kind. A condition says what is wrong. Values that are wrong by themselves were told before;
 * here they have their defaults. */
#include <stdio.h>
#include <string.h>

#include "common/base/inherit.h"
#include "common/base/listen_address.h"
#include "common/base/settings_private.h"
#include "common/base/webhook_secret.h"
#include "common/core/units.h"

struct shown_ms {
    char text[32];
};

static struct shown_ms show_ms(int64_t ms)
{
    struct shown_ms shown = {""};

    units_format_duration(ms, shown.text);
    return shown;
}

/* What takes longest: named in the message about lock_ttl. */
static const char *longest_name(const struct settings *settings)
{
    int64_t longest = settings_longest_timeout_ms(settings);

    if (settings->delivery_timeout == longest) {
        return "delivery_timeout";
    }
    if (settings->verify_timeout == longest) {
        return "verify_timeout";
    }
    for (size_t i = 0; i < settings->kind_count; i++) {
        if (settings->kinds[i].timeout_ms == longest && settings->kinds[i].name) {
            return settings->kinds[i].name;
        }
    }
    return "a kind's timeout";
}

bool settings_let_strangers_in(const struct settings *settings)
{
    if (settings->token_file) {
        return false;
    }
    for (size_t i = 0; i < settings->listen.count; i++) {
        struct listen_address address;
        const char *reason;

        if (listen_address_parse(settings->listen.items[i], &address, &reason) == 0 &&
            !address.is_local) {
            return true;
        }
    }
    return false;
}

static const char *twice(const struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(list->items[i], list->items[j]) == 0) {
                return list->items[i];
            }
        }
    }
    return NULL;
}

/* A rule is told at the line of the first setting that it names, or of the second where the first
 * is left out. */
static size_t line_of(const struct settings_lines *lines, enum setting_id a, enum setting_id b)
{
    return lines->settings[a] > 0 ? lines->settings[a] : lines->settings[b];
}

static void check_top_level(struct settings_source *source, const struct settings *s,
                            const struct settings_lines *lines)
{
#define CONFIG_RULE(setting, other, condition, ...)                                                \
    if (condition) {                                                                               \
        settings_complain(source, line_of(lines, SETTING_##setting, SETTING_##other),              \
                          setting_rows[SETTING_##setting].path, __VA_ARGS__);                      \
    }
    // clang-format off
    CONFIG_RULE(lock_ttl, delivery_timeout,
                s->lock_ttl != 0 && s->lock_ttl <= settings_longest_timeout_ms(s),
                "%s is not greater than the longest timeout (%s of %s): a delivery would outlive its lock",
                show_ms(s->lock_ttl).text, show_ms(settings_longest_timeout_ms(s)).text, longest_name(s))
    CONFIG_RULE(max_backoff, retry_backoff, s->max_backoff < s->retry_backoff,
                "%s is less than retry_backoff (%s)", show_ms(s->max_backoff).text, show_ms(s->retry_backoff).text)
    CONFIG_RULE(max_verify_backoff, verify_backoff, s->max_verify_backoff < s->verify_backoff,
                "%s is less than verify_backoff (%s)", show_ms(s->max_verify_backoff).text, show_ms(s->verify_backoff).text)
    CONFIG_RULE(targets_max_circuit_delay, targets_circuit_delay, s->targets_max_circuit_delay < s->targets_circuit_delay,
                "%s is less than targets.circuit_delay (%s)", show_ms(s->targets_max_circuit_delay).text, show_ms(s->targets_circuit_delay).text)
    CONFIG_RULE(target_secrets, target_secrets_file, s->target_secrets.count > WEBHOOK_SECRETS_MAX, "has %zu secrets, more than %d", s->target_secrets.count, WEBHOOK_SECRETS_MAX)
    CONFIG_RULE(tls_certificate, tls_certificate, s->tls_certificate && !s->tls_key, "is given without tls.key")
    CONFIG_RULE(tls_client_ca, tls_certificate, s->tls_client_ca && !s->tls_certificate, "is given without tls.certificate")
    CONFIG_RULE(tls_key, tls_key, !s->tls_certificate && s->tls_key, "is given without tls.certificate")
    CONFIG_RULE(listen, listen, s->listen.count == 0, "is empty: the API must listen somewhere")
    CONFIG_RULE(listen, listen, s->listen.count > INHERIT_LISTEN_MAX, "has %zu addresses, more than %d", s->listen.count, (int)INHERIT_LISTEN_MAX)
    CONFIG_RULE(listen, listen, twice(&s->listen), "names %s twice", twice(&s->listen))
    CONFIG_RULE(listen, token_file, settings_let_strangers_in(s),
                "other machines could call the API without a token: give token_file, or listen on 127.0.0.1, [::1] or unix: only")
    CONFIG_RULE(group, group, s->group && !s->user, "is given without user")
    CONFIG_RULE(store_password_file, store_url, s->store_password_file && !s->store_url,
                "is given without store.url (the embedded store has no password)")
    CONFIG_RULE(durability, store_url, s->durability.level == DURABILITY_REPLICAS && !s->store_url,
                "replicas are wanted, but the embedded store has none: give store.url")
    // clang-format on
#undef CONFIG_RULE
}

static bool lists_overlap(const struct status_list *a, const struct status_list *b, unsigned *ret)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < b->count; j++) {
            if (a->codes[i] == b->codes[j]) {
                *ret = a->codes[i];
                return true;
            }
        }
    }
    return false;
}

static bool kind_exists(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->kind_count; i++) {
        if (settings->kinds[i].name && strcmp(settings->kinds[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The place of an earlier kind of the same name, or -1. */
static int earlier_place(const struct settings *settings, const struct settings_lines *lines,
                         size_t index)
{
    const char *name = settings->kinds[index].name;

    for (size_t i = 0; name && i < index; i++) {
        if (settings->kinds[i].name && strcmp(settings->kinds[i].name, name) == 0) {
            return (int)lines->kind_place[i];
        }
    }
    return -1;
}

static void guess_kind(const struct settings *settings, const char *name,
                       struct settings_guess *guess)
{
    for (size_t i = 0; i < settings->kind_count; i++) {
        if (settings->kinds[i].name) {
            settings_guess_try(guess, name, settings->kinds[i].name,
                               strlen(settings->kinds[i].name));
        }
    }
}

/* One kind of the file, and where it stands. */
struct kind_at {
    struct settings_source *source;
    const struct settings *settings;
    const struct kind *kind;
    const size_t *rows; /* lines of its members */
    size_t line, place;
};

static void tell_path(const struct kind_at *at, enum kind_row_id id, char *path, size_t cap)
{
    (void)snprintf(path, cap, "kinds[%zu].%s", at->place, kind_rows[id].path);
}

static size_t kind_line(const struct kind_at *at, enum kind_row_id id)
{
    return at->rows[id] > 0 ? at->rows[id] : at->line;
}

static void check_follow_up(const struct kind_at *at, enum kind_row_id id, const char *name)
{
    struct settings_guess guess = {.name = ""};
    char path[64];

    if (!name || kind_exists(at->settings, name)) {
        return;
    }
    guess_kind(at->settings, name, &guess);
    tell_path(at, id, path, sizeof(path));
    settings_complain(at->source, kind_line(at, id), path, "%s is no kind of this file%s%s%s",
                      settings_show(name, strlen(name)).text,
                      guess.name[0] ? "; did you mean " : "", guess.name, guess.name[0] ? "?" : "");
}

static void check_kind(const struct kind_at *at, int earlier)
{
    const struct kind *k = at->kind;
    const struct verify_lookup *v = &k->verify;
    unsigned both = 0;
    char path[64];

#define KIND_RULE(tell, id, condition, ...)                                                        \
    if (condition) {                                                                               \
        tell_path(at, KIND_ROW_##id, path, sizeof(path));                                          \
        tell(at->source, kind_line(at, KIND_ROW_##id), path, __VA_ARGS__);                         \
    }
    // clang-format off
    KIND_RULE(settings_complain, name, !k->name, "is missing")
    KIND_RULE(settings_complain, name, earlier >= 0, "%s is declared twice, first in kinds[%d]", k->name, earlier)
    KIND_RULE(settings_complain, url, !k->url && k->executor == EXECUTOR_HTTP && at->rows[KIND_ROW_url] == 0, "is missing (executor http needs one)")
    KIND_RULE(settings_complain, url, !k->url && k->executor == EXECUTOR_HTTP && at->rows[KIND_ROW_url] > 0, "has no usable value (executor http needs one)")
    KIND_RULE(settings_complain, idempotent, k->is_idempotent && at->rows[KIND_ROW_idempotent] > 0 && k->executor != EXECUTOR_HTTP, "goes with executor http only: agents and ledgers are asked what became of an attempt")
    KIND_RULE(settings_complain, verify_url, v->url && k->executor != EXECUTOR_HTTP, "goes with executor http only: this one brings its own look-up")
    KIND_RULE(settings_complain, verify_url, !v->url && (v->delivered.count > 0 || v->absent.count > 0 || at->rows[KIND_ROW_verify_method] > 0),
              "is missing (the other members of verify need it)")
    KIND_RULE(settings_complain, verify_delivered, v->url && v->delivered.count == 0, "is missing: no answer could ever prove delivery")
    KIND_RULE(settings_complain, verify_absent, lists_overlap(&v->delivered, &v->absent, &both),
              "%u stands in verify.delivered too: it can't prove both", both)
    KIND_RULE(settings_complain, max_backoff, k->max_backoff_ms < k->retry_backoff_ms && (at->rows[KIND_ROW_max_backoff] > 0 || at->rows[KIND_ROW_retry_backoff] > 0),
              "%s is less than retry_backoff (%s)", show_ms(k->max_backoff_ms).text, show_ms(k->retry_backoff_ms).text)
    KIND_RULE(settings_warn, verify_url, v->url && k->is_idempotent, "is not used: an idempotent kind is sent again instead")
    KIND_RULE(settings_warn, on_ambiguous, at->rows[KIND_ROW_on_ambiguous] > 0 && (v->url || k->is_idempotent),
              "is not used: it decides only where a kind has no verify and is not idempotent")
    // clang-format on
#undef KIND_RULE
    check_follow_up(at, KIND_ROW_follow_up_edit, k->follow_up_edit);
    check_follow_up(at, KIND_ROW_follow_up_remove, k->follow_up_remove);
}

void settings_check_rules(struct settings_source *source, const struct settings *settings,
                          const struct settings_lines *lines)
{
    check_top_level(source, settings, lines);
    for (size_t i = 0; i < settings->kind_count; i++) {
        struct kind_at at = {
            .source = source,
            .settings = settings,
            .kind = &settings->kinds[i],
            .rows = lines->kind_rows[i],
            .line = lines->kind[i],
            .place = lines->kind_place[i],
        };

        if (at.line > 0) { /* the built-in one is ours */
            check_kind(&at, earlier_place(settings, lines, i));
        }
    }
}
