/* The configuration: one YAML file, read by a table (settings.def) into one immutable struct.
 * Contract §3, §4, §13. Mistakes are collected in one pass, each with file, line, key path and
 * reason. */
#ifndef COMMON_BASE_SETTINGS_H
#define COMMON_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/log.h"
#include "common/core/buf.h"

/* Declared kinds, the built-in ones included: metric labels have this many places. */
#define KIND_COUNT_MAX 32

struct text_list {
    char **items; /* owned */
    size_t count;
};

enum durability_level {
    DURABILITY_FSYNC,
    DURABILITY_EVERYSEC,
    DURABILITY_REPLICAS,
    DURABILITY_MEMORY,
};
struct durability {
    enum durability_level level;
    uint32_t replicas; /* for DURABILITY_REPLICAS, at least 1 */
};

enum jitter { JITTER_NONE, JITTER_FULL };
enum executor_id { EXECUTOR_HTTP, EXECUTOR_OPENCODE, EXECUTOR_LEDGER };
enum ordering { ORDERING_STRICT, ORDERING_FIRST_DUE };
enum on_ambiguous { ON_AMBIGUOUS_ERROR, ON_AMBIGUOUS_RETRY };

/* Status codes that mean one verdict: `delivered: 200` or `[200, 204]`. */
#define STATUS_LIST_MAX 16
struct status_list {
    uint16_t codes[STATUS_LIST_MAX];
    size_t count;
};

struct verify_lookup {
    char *url;    /* template; NULL: the kind has no look-up */
    char *method; /* "GET" by default */
    struct status_list delivered, absent;
};

/* One kind (contract §4). Limits that the file leaves out of a kind have the top-level value here
 * already. */
struct kind {
    char *name;
    enum executor_id executor;
    char *method; /* default "POST" */
    char *url;    /* template, relative to the target, or absolute; prompt over http: "/" */
    char *body; /* template; NULL: the payload, or {"text":…,"model":…} for a kind with text */
    char *content_type; /* default "application/json" */
    char *lane;         /* template; NULL: the session of the request, or "global" */
    enum ordering ordering;
    bool is_idempotent;
    char *follow_up_edit, *follow_up_remove; /* names of kinds, or NULL */
    struct verify_lookup verify;
    enum on_ambiguous on_ambiguous;
    uint32_t max_in_flight;        /* per worker; 0: no limit of its own */
    int64_t timeout_ms;            /* default: delivery_timeout */
    int64_t first_byte_timeout_ms; /* 0: no limit of its own */
    int64_t verify_settle_ms;
    int64_t verify_delay_ms;
    int64_t retry_backoff_ms, max_backoff_ms;
    int64_t retry_for_ms;
    uint32_t max_attempts, max_verify_attempts, max_transient_failures;
    uint32_t place; /* its metric label (kind_labels.h) */
};

typedef int64_t setting_DURATION;
typedef uint64_t setting_SIZE;
typedef uint32_t setting_COUNT;
typedef bool setting_BOOL;
typedef char *setting_TEXT;
typedef struct text_list setting_TEXTS;
typedef struct durability setting_DURABILITY;
typedef enum log_level setting_LOG_LEVEL;
typedef enum log_format setting_LOG_FORMAT;
typedef enum jitter setting_JITTER;

struct settings {
#define SETTING(field, path, type, def, min, max, flags, help) setting_##type field;
#include "common/base/settings.def"
    struct kind *kinds; /* owned; the built-in `prompt` is always among them */
    size_t kind_count;
};

/* All mistakes found, one line each: "outboxd.yaml:12: kinds[2].timeout: 10x is not a duration (use
 * 30s, 10m)". */
struct settings_report {
    struct buf errors;   /* lines; empty: none */
    struct buf warnings; /* lines, e.g. target.password in the file */
    size_t error_count;
    /* Set by the caller after init: the settings are only looked at. Then credentials of systemd,
     * which nobody but the running service can read, are not read. */
    bool is_look_only;
};
void settings_report_init(struct settings_report *report);
void settings_report_done(struct settings_report *report);

/* Reads the file at `path` (NULL: all defaults), or bytes. On success *ret is owned by the caller.
 * Returns 0, -EINVAL (mistakes: see the report), or -errno (the file can't be read; the report says
 * so too). Reads the files of secrets it names (so that one missing is told), into target_password,
 * target_secrets and the store URL. */
int settings_load(const char *path, struct settings **ret, struct settings_report *report);
int settings_parse(const char *name, const char *bytes, size_t len, struct settings **ret,
                   struct settings_report *report);
void settings_destroy(struct settings **settings);

/* A configuration that is taken over by a running daemon (SIGHUP): every setting of `fresh` that
 * needs a restart gets the value of `running`. Where it stands otherwise in `fresh` than in
 * `configured` (what the running daemon was started with, before it resolved anything), its key is
 * appended to *ret_left, separated by ", ". 0, -ENOMEM, or -EACCES: together they would let other
 * machines call the API without a token (`listen` is kept, token_file is not); then `fresh` is of
 * no use. */
int settings_keep_running(struct settings *fresh, const struct settings *configured,
                          const struct settings *running, struct buf *ret_left);
/* An equal one of its own. 0 or -ENOMEM. */
int settings_copy(const struct settings *settings, struct settings **ret);

/* Writes YAML that settings_parse reads back to the same struct. with_secrets false: secrets appear
 * as "***" (--print-config); true: for the memfd that children inherit. Returns 0 or -ENOMEM. */
int settings_print(const struct settings *settings, bool with_secrets, struct buf *out);

/* The kind of that name (len bytes), or NULL, and its index in `kinds`. */
const struct kind *settings_kind(const struct settings *settings, const char *name, size_t len);
size_t settings_kind_index(const struct settings *settings, const struct kind *kind);
/* Whether what an attempt of unknown outcome left at the target can be asked for: it has a look-up,
 * or its executor brings one. */
bool kind_can_look_up(const struct kind *kind);

/* Values that are derived: lock_ttl and drain_timeout with their 0 resolved, workers with 0
 * resolved. */
int64_t settings_lock_ttl_ms(const struct settings *settings);
int64_t settings_drain_timeout_ms(const struct settings *settings);
uint32_t settings_worker_count(const struct settings *settings);
/* The longest time an attempt of any kind, or a verification, may take: less than the lock's
 * lifetime. */
int64_t settings_longest_timeout_ms(const struct settings *settings);

#endif
