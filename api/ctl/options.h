/* What stands on outboxctl's command line and in its environment, read by the tables of commands.h.
 */
#ifndef API_CTL_OPTIONS_H
#define API_CTL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/ctl/commands.h"
#include "api/ctl/http_client.h"

#define OPTIONS_DEFAULT_SERVER    "http://127.0.0.1:7780"
#define OPTIONS_DEFAULT_STATE_DIR "/var/lib/outboxd"

struct options {
    const struct command *command;
    const char *values[OPTION_COUNT]; /* as given; "" for a flag; NULL: not given */
    char **arguments;                 /* the command's name first */
    int argument_count;
    const char *server, *state_dir; /* with what the environment and the defaults say */
    const char *token_file;         /* OUTBOXCTL_TOKEN_FILE; NULL: none */
    struct http_tls tls;
};

enum options_result {
    OPTIONS_RUN,
    OPTIONS_DONE,  /* --help or --version: said */
    OPTIONS_USAGE, /* wrong: said on stderr */
};

/* Reads both; points into them and into static memory. Every value has been checked by its type. */
enum options_result options_read(int argc, char **argv, struct options *ret);

/* Files for TLS, from option values (by option_id; NULL: no command line) and the environment. */
struct http_tls options_tls(const char *const *values);
/* Argument `index` behind the command's name; NULL: not given. */
const char *options_argument(const struct options *options, int index);
bool option_is_set(const struct options *options, enum option_id id);
/* NULL: not given. */
const char *option_text(const struct options *options, enum option_id id);
uint64_t option_count(const struct options *options, enum option_id id, uint64_t otherwise);
int64_t option_ms(const struct options *options, enum option_id id, int64_t otherwise);

/* Says on stderr what is wrong and where help is. */
void options_complain(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Seconds ("2", "0.5") or a duration ("500ms"). 0, or -EINVAL. Pure. */
int options_parse_duration(const char *text, int64_t *ret_ms);

#endif
