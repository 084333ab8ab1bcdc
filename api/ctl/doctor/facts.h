/* All that the doctor knows: measured first (look_*.c), judged afterwards (rules_*.c), so that
 * every judgement can be tested without a machine that is ill. */
#ifndef API_CTL_DOCTOR_FACTS_H
#define API_CTL_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/settings.h"
#include "common/store/store.h"

struct findings;

/* Of a file that the configuration or the environment names. */
struct file_fact {
    const char *what; /* the setting that names it */
    const char *path;
    bool is_secret;
    int err; /* 0, or -errno: it could not be looked at */
    mode_t mode;
};
#define FILES_MAX 8

/* Of a process of the running outboxd. */
struct process_fact {
    const char *role, *state;
    int32_t pid;
    int64_t heartbeat_age_ms; /* -1: unknown */
    int64_t file_limit;       /* soft RLIMIT_NOFILE; -1: unknown */
    bool is_program_replaced; /* what it was started from is not on disk any more */
};
#define PROCESSES_MAX 64

struct facts {
    bool is_root;

    /* configuration */
    const char *config_path;   /* NULL: no file, all defaults */
    struct settings *settings; /* owned; NULL: it has mistakes */
    struct settings_report report;
    struct file_fact files[FILES_MAX];
    size_t file_count;

    /* state directory */
    int state_err; /* 0, or -errno */
    mode_t state_mode;
    uid_t state_uid;
    bool is_state_writable;       /* by whoever asks */
    uint64_t space_bytes, inodes; /* free for others than root */
    bool has_inodes;              /* a file system that counts them */

    /* store */
    bool is_embedded, is_store_local;
    char store_url[512]; /* without its password */
    enum store_result store_result;
    struct server_facts store; /* STORE_OK only */
    int64_t store_ahead_ms;    /* its clock before ours; only where has_store_clock */
    bool has_store_clock;

    /* clock */
    bool is_clock_known, is_clock_synced;
    int64_t clock_error_us; /* the kernel's own estimate */
    int64_t clock_step_ms;  /* wall against monotonic, while the doctor looked */

    /* system */
    int64_t file_limit;      /* that a new process gets at most (hard); -1: unknown */
    int64_t somaxconn;       /* -1: unknown */
    int64_t overcommit;      /* vm.overcommit_memory; -1: unknown */
    char hugepages[32];      /* never, madvise, always; empty: unknown */
    int64_t shm_space_bytes; /* -1: unknown */

    /* server */
    const char *server;
    bool is_server_asked; /* false: there was no way to (a token file that is refused) */
    bool is_server_there; /* it answered */
    bool is_server_ready;
    char why_not_ready[512];
    char degraded[1024]; /* what it says that does not work, though it accepts; empty: nothing */
    char server_version[64]; /* empty: unknown */
    double restarts;         /* -1: unknown */
    double failed_entries, oldest_open_age_s;
    struct process_fact processes[PROCESSES_MAX];
    size_t process_count; /* 0: none runs, or we may not look */
};

/* The rules (rules_*.c). Pure. */
typedef void rule_fn(const struct facts *facts, struct findings *findings);
#define CHECK(id, rule, name) rule_fn rule_##rule;
#include "api/ctl/doctor/checks.def"

#endif
