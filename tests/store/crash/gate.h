/* Stands between an actor and the store: a relay on a Unix socket that understands where a command
 * ends. It holds each command until it is told what becomes of it: it is carried out, and its
 * answer is passed on; or it is lost, or its answer is. So one command is one step. */
#ifndef TESTS_STORE_CRASH_GATE_H
#define TESTS_STORE_CRASH_GATE_H

#include <stdbool.h>
#include <stddef.h>

struct gate;      /* the socket that actors connect to, and a connection to the server */
struct gate_line; /* one actor's connection; at most one command is held on it */

/* A command taken off its line; zeroed: none. */
struct gate_command {
    char *bytes;
    size_t len;
    const char *name; /* of the script, or of the command; static */
    bool is_read_only;
};

/* `server`: the path of its socket. Failures end the program. */
struct gate *gate_open(const char *server);
void gate_close(struct gate **gate);
const char *gate_path(const struct gate *gate);

/* Waits for an actor to connect. */
struct gate_line *gate_take_line(struct gate *gate);
void gate_line_close(struct gate_line **line);

/* Waits until a whole command has come (true), or `other_fd` can be read (false). */
bool gate_hold(struct gate_line *line, int other_fd);
/* What is held on a line; owned by it. */
const struct gate_command *gate_held(const struct gate_line *line);
/* Takes it off; the caller frees it with gate_command_free. */
struct gate_command gate_take_off(struct gate_line *line);
void gate_command_free(struct gate_command *command);

/* Carries a command out; the answer is kept until the next one. */
void gate_execute(struct gate *gate, const struct gate_command *command);
/* A number made of the answer's bytes, for comparing what actors were told. */
unsigned long long gate_answer_hash(const struct gate *gate, unsigned long long before);
/* Passes the answer on; what was held on the line is done. */
void gate_answer(struct gate *gate, struct gate_line *line);
/* The actor is told that nobody knows whether its command was carried out. */
void gate_answer_lost(struct gate_line *line);

#endif
