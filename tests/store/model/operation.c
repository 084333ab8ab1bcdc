#include "tests/store/model/operation.h"

const unsigned operation_weights[OPERATION_COUNT] = {
#define OPERATION(id, name, weight) [OPERATION_##id] = (weight),
#include "tests/store/model/operation.def"
};

static const char *const names[OPERATION_COUNT] = {
#define OPERATION(id, name, weight) [OPERATION_##id] = (name),
#include "tests/store/model/operation.def"
};

int operation_lane(const struct operation *operation)
{
    return (int)(operation->x % MODEL_LANES);
}

int operation_kind(const struct operation *operation)
{
    return model_kind_of_lane(operation_lane(operation), operation->x / 4 % 3 == 0);
}

unsigned operation_null_members(const struct operation *operation)
{
    return operation->x / 16 % 4;
}

bool operation_has_cmid(const struct operation *operation)
{
    return operation->x / 64 % 4 != 0;
}

void operation_print(const struct operation *operation, FILE *out)
{
    char room[16];

    fprintf(out, "  %3d %s", operation->number, names[operation->type]);
    if (operation->type == OPERATION_ACCEPT) {
        fprintf(out, " e%d %s in lane %s, null members %u", operation->number,
                model_kinds[operation_kind(operation)].name, model_lanes[operation_lane(operation)],
                operation_null_members(operation));
        for (int i = 0; i < operation->dep_count; i++) {
            fprintf(out, "%s%s", i == 0 ? ", after " : " ", world_id(operation->deps[i], room));
        }
    } else if (operation->entry != MODEL_NONE) {
        fprintf(out, " %s", world_id(operation->entry, room));
    }
    fprintf(out, " (workspace %d, x %u)\n", operation->ws, operation->x);
}
