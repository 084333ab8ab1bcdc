/* How outboxctl ends. Scripts rely on it; the table is exit_code.def. */
#ifndef API_CTL_EXIT_CODE_H
#define API_CTL_EXIT_CODE_H

enum exit_code {
#define EXIT_CODE(id, number, meaning) EXIT_CODE_##id = (number),
#include "api/ctl/exit_code.def"
};

#endif
