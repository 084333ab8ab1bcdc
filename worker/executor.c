/* The table of executors. */
#include "worker/executor.h"

static const struct executor *const executors[] = {
    [EXECUTOR_HTTP] = &executor_http,
    [EXECUTOR_OPENCODE] = &executor_opencode,
    [EXECUTOR_LEDGER] = &executor_ledger,
};

const struct executor *executor_of(const struct target *target, const struct kind *kind)
{
    return executors[target_executor(target, kind)];
}
