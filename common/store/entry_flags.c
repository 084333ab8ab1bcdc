/* What scripts need to know of a kind. */
#include "common/base/settings.h"
#include "common/store/entry.h"

size_t entry_flags_of(const struct kind *kind, char ret[ENTRY_FLAGS_MAX])
{
    size_t len = 0;

    if (!kind || kind->ordering == ORDERING_STRICT) {
        ret[len++] = ENTRY_FLAG_STRICT;
    }
    if (kind && kind->is_idempotent) {
        ret[len++] = ENTRY_FLAG_IDEMPOTENT;
    } else if (kind && kind_can_look_up(kind)) {
        ret[len++] = ENTRY_FLAG_VERIFIABLE;
    }
    return len;
}
