/* What stands on outboxctl's command line and in its environment. */
#ifndef API_CTL_OPTIONS_H
#define API_CTL_OPTIONS_H

#include <stdbool.h>

struct options {
    const char *server;
    const char *client_message_id;                                  /* --id; NULL without */
    const char *kind;                                               /* NULL without */
    const char *payload;                                            /* NULL without */
    const char *depends_on;                                         /* send; NULL without */
    const char *text, *text_file, *model;                           /* edit; NULL without */
    const char *result;                                             /* confirm; NULL without */
    const char *last_event_id;                                      /* --last; NULL without */
    const char *executor, *username, *password_file, *secrets_file; /* target; NULL without */
    const char *after;                                              /* workspaces; NULL without */
    bool is_delete;
    const char *state_dir;
    long interval_ms;
    bool is_json;
    bool is_once;
    char **arguments; /* the command first */
    int argument_count;
};

enum options_result {
    OPTIONS_RUN,
    OPTIONS_DONE,  /* --help or --version: said */
    OPTIONS_USAGE, /* wrong: said on stderr */
};

/* Reads both; points into them and into static memory. */
enum options_result options_read(int argc, char **argv, struct options *ret);
/* Says on stderr what is wrong and where help is. */
void options_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
