/* The relay: blocking, one thread. hiredis's reader finds the ends of commands and of answers. */
#include "tests/store/crash/gate.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/store/scripts.h"

#define READ_BYTES 65536

/* To the store's client an outage: the call may have been carried out or not. */
static const char lost_answer[] = "-BUSY the answer was lost on its way\r\n";

struct gate {
    char path[108];
    int listener, server;
    redisReader *reader;
    char *answer;
    size_t answer_len, answer_room;
};

struct gate_line {
    int fd;
    redisReader *reader;
    struct gate_command held;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "gate: %s: %s\n", what, strerror(errno));
    abort();
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

static int unix_socket(void)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        die("socket");
    }
    return fd;
}

struct gate *gate_open(const char *server)
{
    struct gate *gate = calloc(1, sizeof(*gate));
    struct sockaddr_un address = address_of(server);

    if (!gate || !(gate->reader = redisReaderCreate())) {
        die("memory");
    }
    gate->server = unix_socket();
    if (connect(gate->server, (struct sockaddr *)&address, sizeof(address)) < 0) {
        die(server);
    }
    snprintf(gate->path, sizeof(gate->path), "%.90s.gate", server);
    address = address_of(gate->path);
    gate->listener = unix_socket();
    if (bind(gate->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(gate->listener, 8) < 0) {
        die(gate->path);
    }
    return gate;
}

void gate_close(struct gate **gate)
{
    if (!*gate) {
        return;
    }
    close((*gate)->listener);
    close((*gate)->server);
    unlink((*gate)->path);
    redisReaderFree((*gate)->reader);
    free((*gate)->answer);
    free(*gate);
    *gate = NULL;
}

const char *gate_path(const struct gate *gate)
{
    return gate->path;
}

struct gate_line *gate_take_line(struct gate *gate)
{
    struct gate_line *line = calloc(1, sizeof(*line));

    if (!line || !(line->reader = redisReaderCreate())) {
        die("memory");
    }
    line->fd = accept4(gate->listener, NULL, NULL, SOCK_CLOEXEC);
    if (line->fd < 0) {
        die("accept");
    }
    return line;
}

void gate_line_close(struct gate_line **line)
{
    if (!*line) {
        return;
    }
    close((*line)->fd);
    redisReaderFree((*line)->reader);
    gate_command_free(&(*line)->held);
    free(*line);
    *line = NULL;
}

void gate_command_free(struct gate_command *command)
{
    free(command->bytes);
    *command = (struct gate_command){0};
}

/* ---- commands ---- */

/* Commands that are no script are those of the handshake. */
static void describe(const redisReply *words, struct gate_command *command)
{
    command->name = "command";
    for (size_t i = 0; i < SCRIPT_COUNT && words->elements > 1; i++) {
        if (strcmp(words->element[0]->str, "EVALSHA") == 0 &&
            strcmp(words->element[1]->str, store_scripts[i].sha1) == 0) {
            command->name = store_scripts[i].name;
            command->is_read_only =
                strncmp(store_scripts[i].text, "#!lua flags=no-writes", 21) == 0;
        }
    }
}

/* A client may have sent several at once (the handshake): their bytes are put together again from
 * what the reader made of them. */
static void keep_command(struct gate_line *line, const redisReply *words)
{
    const char **argv = calloc(words->elements, sizeof(*argv));
    size_t *lengths = calloc(words->elements, sizeof(*lengths));
    char *formatted = NULL;

    if (!argv || !lengths) {
        die("memory");
    }
    for (size_t i = 0; i < words->elements; i++) {
        argv[i] = words->element[i]->str;
        lengths[i] = (size_t)words->element[i]->len;
    }
    const long long len = redisFormatCommandArgv(&formatted, (int)words->elements, argv, lengths);

    line->held.bytes = malloc(len > 0 ? (size_t)len : 1);
    if (len <= 0 || !line->held.bytes) {
        die("memory");
    }
    memcpy(line->held.bytes, formatted, (size_t)len);
    line->held.len = (size_t)len;
    describe(words, &line->held);
    redisFreeCommand(formatted);
    free(argv);
    free(lengths);
}

static bool find_command(struct gate_line *line)
{
    void *words = NULL;

    if (redisReaderGetReply(line->reader, &words) != REDIS_OK) {
        die("an actor sent what is no command");
    }
    if (!words) {
        return false;
    }
    keep_command(line, words);
    freeReplyObject(words);
    return true;
}

bool gate_hold(struct gate_line *line, int other_fd)
{
    static char bytes[READ_BYTES];

    while (!find_command(line)) {
        struct pollfd fds[] = {{.fd = line->fd, .events = POLLIN},
                               {.fd = other_fd, .events = POLLIN}};

        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            die("poll");
        }
        if (fds[0].revents) {
            const ssize_t got = read(line->fd, bytes, sizeof(bytes));

            if (got <= 0) {
                die("an actor hung up");
            }
            (void)redisReaderFeed(line->reader, bytes, (size_t)got);
        } else if (fds[1].revents) {
            return false;
        }
    }
    return true;
}

const struct gate_command *gate_held(const struct gate_line *line)
{
    return &line->held;
}

struct gate_command gate_take_off(struct gate_line *line)
{
    const struct gate_command command = line->held;

    line->held = (struct gate_command){0};
    return command;
}

/* ---- answers ---- */

static void write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t written = write(fd, bytes, len);

        if (written < 0 && errno != EINTR) {
            die("write");
        }
        if (written > 0) {
            bytes += written;
            len -= (size_t)written;
        }
    }
}

static void keep_answer(struct gate *gate, const char *bytes, size_t len)
{
    if (gate->answer_room < gate->answer_len + len) {
        gate->answer_room = 2 * (gate->answer_len + len);
        gate->answer = realloc(gate->answer, gate->answer_room);
        if (!gate->answer) {
            die("memory");
        }
    }
    memcpy(gate->answer + gate->answer_len, bytes, len);
    gate->answer_len += len;
}

void gate_execute(struct gate *gate, const struct gate_command *command)
{
    static char bytes[READ_BYTES];
    void *answer = NULL;

    gate->answer_len = 0;
    write_all(gate->server, command->bytes, command->len);
    while (!answer) {
        const ssize_t got = read(gate->server, bytes, sizeof(bytes));

        if (got <= 0) {
            die("the server hung up");
        }
        keep_answer(gate, bytes, (size_t)got);
        (void)redisReaderFeed(gate->reader, bytes, (size_t)got);
        if (redisReaderGetReply(gate->reader, &answer) != REDIS_OK) {
            die("the server sent what is no answer");
        }
    }
    freeReplyObject(answer);
}

unsigned long long gate_answer_hash(const struct gate *gate, unsigned long long before)
{
    unsigned long long hash = before;

    for (size_t i = 0; i < gate->answer_len; i++) {
        hash = (hash ^ (unsigned char)gate->answer[i]) * 0x100000001b3U;
    }
    return hash;
}

void gate_answer(struct gate *gate, struct gate_line *line)
{
    gate_command_free(&line->held);
    write_all(line->fd, gate->answer, gate->answer_len);
}

void gate_answer_lost(struct gate_line *line)
{
    gate_command_free(&line->held);
    write_all(line->fd, lost_answer, sizeof(lost_answer) - 1);
}
