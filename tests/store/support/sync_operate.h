/* People's operations and dependencies in full: acceptance with what an entry waits for, operations
 * with kinds that are declared, the echo. */
#ifndef TESTS_STORE_SUPPORT_SYNC_OPERATE_H
#define TESTS_STORE_SUPPORT_SYNC_OPERATE_H

#include "common/store/store_operate.h"
#include "tests/store/support/sync_store.h"

#define SYNC_DEPS_MAX 4

struct sync_entry {
    const char *ws, *session, *id, *cmid, *kind, *payload; /* payload: JSON */
    const char *depends_on[SYNC_DEPS_MAX];
    uint32_t dep_count, cap;
    bool by_many; /* by the script that accepts several */
};
/* Flags are those of the kind in `settings`. ret_id: 64 bytes, or NULL. */
enum accept_result sync_accept_entry(struct sync_store *s, const struct settings *settings,
                                     const struct sync_entry *entry, char *ret_id);

struct sync_operated {
    enum operate_result result;
    enum resolver_what what;
    char subject[64], how[16];
};
/* `patch`: of an edit's payload, or "". */
struct sync_operated sync_operate(struct sync_store *s, const struct settings *settings,
                                  enum resolver_operation operation, const char *ws, const char *id,
                                  const char *new_id, const char *patch);

/* By ID, or, where that is "", by session and clientMessageID. `result`: a line of JSON, or "". */
struct confirm_answer sync_confirm(struct sync_store *s, const char *ws, const char *id,
                                   const char *session, const char *cmid, const char *result,
                                   int64_t wait_for_answer_ms);

/* Configuration from YAML; a mistake in it ends the program. */
struct settings *sync_settings(const char *yaml);

#endif
