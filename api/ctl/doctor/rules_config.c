/* Judges the configuration, the files that it names, and the state directory. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "api/ctl/doctor/facts.h"
#include "api/ctl/doctor/findings.h"
#include "common/core/span.h"
#include "common/core/units.h"

#define MIB              (UINT64_C(1) << 20)
#define SPACE_FEW_BYTES  (1024 * MIB)
#define SPACE_LOST_BYTES (100 * MIB)
#define INODES_FEW       10000
#define INODES_LOST      1000

/* A finding for each line of a report. */
static void add_lines(struct findings *findings, enum finding_level level, const char *todo,
                      const struct buf *lines)
{
    const char *at = lines->bytes ? lines->bytes : "";

    while (*at) {
        const size_t len = strcspn(at, "\n");

        findings_add(findings, level, todo, "%.*s", (int)len, at);
        at += len + (at[len] == '\n');
    }
}

void rule_config_file(const struct facts *facts, struct findings *findings)
{
    if (!facts->settings) {
        add_lines(findings, FINDING_FAILURE,
                  facts->is_root
                      ? "Mend it; `outboxd --check-config` tells the same."
                      : "Mend it; `outboxd --check-config` tells the same. What only this user may "
                        "not read: run the doctor as outboxd's user, or as root.",
                  &facts->report.errors);
        findings_add(findings, FINDING_NOTE, NULL,
                     "what depends on the configuration was not looked at");
        return;
    }
    add_lines(findings, FINDING_WARNING, "It works; the line says what would be better.",
              &facts->report.warnings);
    if (facts->config_path) {
        findings_add(findings, FINDING_OK, NULL, "%s has no mistakes", facts->config_path);
    } else {
        findings_add(findings, FINDING_OK, NULL, "there is no file: all defaults are in force");
    }
}

static void judge_file(const struct file_fact *file, bool is_root, struct findings *findings)
{
    if (file->err == -EACCES && !is_root && !(file->mode & S_IRWXO)) {
        findings_add(findings, FINDING_NOTE,
                     "As it should be, unless this is outboxd's user: run the doctor as that one, "
                     "or as root.",
                     "%s: this user may not read %s", file->what, file->path);
    } else if (file->err != 0) {
        findings_add(findings, FINDING_FAILURE, "Correct the path, or let outboxd's user read it.",
                     "%s: %s cannot be looked at: %s", file->what, file->path,
                     strerror(-file->err));
    } else if (file->is_secret && (file->mode & S_IROTH)) {
        findings_add(findings, FINDING_FAILURE,
                     "chmod o-rwx it, and replace the secrets in it: every user could read them.",
                     "%s: %s can be read by every user of this machine", file->what, file->path);
    } else if (file->mode & S_IWOTH) {
        findings_add(findings, FINDING_FAILURE, "chmod o-w it, and check what stands in it.",
                     "%s: %s can be written by every user of this machine", file->what, file->path);
    }
}

void rule_config_secrets(const struct facts *facts, struct findings *findings)
{
    const size_t before = findings->count;

    for (size_t i = 0; i < facts->file_count; i++) {
        judge_file(&facts->files[i], facts->is_root, findings);
    }
    if (facts->file_count > 0 && findings->count == before) {
        findings_add(findings, FINDING_OK, NULL,
                     "nobody else can read the secrets (files looked at: %zu)", facts->file_count);
    }
}

/* ---- the state directory ---- */

void rule_state_access(const struct facts *facts, struct findings *findings)
{
    const char *path = facts->settings ? facts->settings->state_dir : NULL;

    if (!path) {
        return;
    }
    if (facts->state_err == -ENOENT) {
        findings_add(findings, FINDING_NOTE, NULL,
                     "%s is not there yet: outboxd makes it at its first start", path);
    } else if (facts->state_err != 0) {
        findings_add(findings, FINDING_FAILURE,
                     "Let outboxd's user have it: chown it, or set state_dir to another folder.",
                     "%s cannot be looked at: %s", path, strerror(-facts->state_err));
    } else if (!S_ISDIR(facts->state_mode)) {
        findings_add(findings, FINDING_FAILURE, "Set state_dir to a folder.", "%s is no folder",
                     path);
    } else if (facts->state_mode & S_IWOTH) {
        findings_add(findings, FINDING_FAILURE,
                     "chmod o-w it: whoever can write there can replace locks and data.",
                     "%s can be written by every user of this machine", path);
    } else if (!facts->is_state_writable) {
        findings_add(findings, FINDING_NOTE,
                     "Run the doctor as outboxd's user (or as root): for it this must not be so.",
                     "%s cannot be written by this user", path);
    } else {
        findings_add(findings, FINDING_OK, NULL, "%s belongs to user %ld, others cannot write it",
                     path, (long)facts->state_uid);
    }
}

void rule_state_space(const struct facts *facts, struct findings *findings)
{
    const enum finding_level level = facts->space_bytes < SPACE_LOST_BYTES  ? FINDING_FAILURE
                                     : facts->space_bytes < SPACE_FEW_BYTES ? FINDING_WARNING
                                                                            : FINDING_OK;

    if (!facts->settings || facts->state_err != 0) {
        return;
    }
    findings_add(findings, level,
                 level == FINDING_OK
                     ? NULL
                     : "Make room there: a store that cannot write accepts nothing (503).",
                 "%llu MiB are free at %s", (unsigned long long)(facts->space_bytes / MIB),
                 facts->settings->state_dir);
}

void rule_state_inodes(const struct facts *facts, struct findings *findings)
{
    const enum finding_level level = facts->inodes < INODES_LOST  ? FINDING_FAILURE
                                     : facts->inodes < INODES_FEW ? FINDING_WARNING
                                                                  : FINDING_OK;

    if (!facts->settings || facts->state_err != 0 || !facts->has_inodes) {
        return;
    }
    findings_add(findings, level,
                 level == FINDING_OK ? NULL : "Remove files there: no new one could be made.",
                 "%llu files more can be made at %s", (unsigned long long)facts->inodes,
                 facts->settings->state_dir);
}
