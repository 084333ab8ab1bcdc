/* How outboxctl ends. Scripts rely on it. */
#ifndef API_CTL_EXIT_CODE_H
#define API_CTL_EXIT_CODE_H

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_FAILED = 1,
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_NOT_FOUND = 3,
    EXIT_CODE_CONFLICT = 4, /* busy, or not in a status that allows it: 409 */
};

#endif
