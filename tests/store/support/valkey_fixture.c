/* A private Valkey for tests: started, watched and removed here. The child dies with the test
 * (PDEATHSIG), so that a crash leaves no server behind, only its folder. */
#include "tests/store/support/valkey_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TRIES 1500 /* of 10 ms */
#define MAX_ARGS    64

static _Noreturn void give_up(const struct valkey *valkey, const char *what)
{
    char path[128];
    char line[512];

    (void)fprintf(stderr, "valkey fixture: %s: %s\n", what, strerror(errno));
    (void)snprintf(path, sizeof(path), "%s/log", valkey->dir);
    FILE *log = fopen(path, "re");

    while (log && fgets(line, sizeof(line), log)) {
        (void)fputs(line, stderr);
    }
    exit(1);
}

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* Free now; somebody could take it before the server does, which then says so in its log. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
        perror("valkey fixture: no free port");
        exit(1);
    }
    close(fd);
    return ntohs(address.sin_port);
}

static void exec_server(const struct valkey *valkey, pid_t parent)
{
    const struct valkey_options *options = &valkey->options;
    const char *argv[MAX_ARGS + 1];
    int argc = 0;
    char port[16];

    (void)snprintf(port, sizeof(port), "%d", valkey->port);
    const char *const fixed[] = {
        "valkey-server",
        "--dir",
        valkey->dir,
        "--unixsocket",
        valkey->socket,
        "--port",
        port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--daemonize",
        "no",
        "--logfile",
        "log",
        "--appendonly",
        options->fsync == VALKEY_AOF_OFF ? "no" : "yes",
        "--appendfsync",
        options->fsync == VALKEY_FSYNC_EVERYSEC ? "everysec" : "always",
        "--maxmemory-policy",
        "noeviction",
        "--enable-debug-command",
        "yes",
        "--busy-reply-threshold",
        "50",
    };

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        argv[argc++] = fixed[i];
    }
    if (options->password) {
        argv[argc++] = "--requirepass";
        argv[argc++] = options->password;
    }
    for (size_t i = 0; options->extra && options->extra[i] && argc < MAX_ARGS; i++) {
        argv[argc++] = options->extra[i];
    }
    argv[argc] = NULL;
    for (size_t i = 0; options->environment && options->environment[i]; i++) {
        (void)putenv((char *)(uintptr_t)options->environment[i]);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* the test died before that line */
    }
    const char *own = getenv("OUTBOXD_TEST_SERVER");

    if (own) {
        (void)execvp(own, (char *const *)(uintptr_t)argv);
    }
    (void)execvp("valkey-server", (char *const *)(uintptr_t)argv);
    (void)execvp("redis-server", (char *const *)(uintptr_t)argv);
    _exit(127);
}

void valkey_launch(struct valkey *valkey)
{
    pid_t parent = getpid();

    (void)unlink(valkey->socket);
    valkey->pid = fork();
    if (valkey->pid < 0) {
        valkey->pid = 0;
        give_up(valkey, "fork");
    }
    if (valkey->pid == 0) {
        exec_server(valkey, parent);
    }
}

/* A connection that has passed AUTH, or NULL. */
static redisContext *connect_to(const struct valkey *valkey)
{
    redisContext *context = redisConnectUnix(valkey->socket);

    if (!context || context->err) {
        redisFree(context);
        return NULL;
    }
    if (valkey->options.password) {
        freeReplyObject(redisCommand(context, "AUTH %s", valkey->options.password));
    }
    return context;
}

static bool answers(const struct valkey *valkey)
{
    redisContext *context = connect_to(valkey);
    redisReply *reply = context ? redisCommand(context, "PING") : NULL;
    bool is_ready = reply && reply->type == REDIS_REPLY_STATUS;

    freeReplyObject(reply);
    redisFree(context);
    return is_ready;
}

void valkey_restart(struct valkey *valkey)
{
    valkey_launch(valkey);
    for (int i = 0; i < START_TRIES; i++) {
        if (answers(valkey)) {
            return;
        }
        if (waitpid(valkey->pid, NULL, WNOHANG) == valkey->pid) {
            valkey->pid = 0;
            give_up(valkey, "the server ended at once (is valkey-server installed?)");
        }
        pause_ms(10);
    }
    give_up(valkey, "the server does not answer");
}

struct valkey *valkey_start(const struct valkey_options *options)
{
    struct valkey *valkey = calloc(1, sizeof(*valkey));

    if (!valkey) {
        abort();
    }
    if (options) {
        valkey->options = *options;
    }
    (void)snprintf(valkey->dir, sizeof(valkey->dir), "/tmp/outboxd-test-XXXXXX");
    if (!mkdtemp(valkey->dir)) {
        give_up(valkey, "mkdtemp");
    }
    (void)snprintf(valkey->socket, sizeof(valkey->socket), "%s/socket", valkey->dir);
    (void)snprintf(valkey->url, sizeof(valkey->url), "unix://%s", valkey->socket);
    if (valkey->options.tcp) {
        valkey->port = free_port();
        (void)snprintf(valkey->tcp_url, sizeof(valkey->tcp_url), "valkey://127.0.0.1:%d",
                       valkey->port);
    }
    valkey_restart(valkey);
    return valkey;
}

void valkey_kill(struct valkey *valkey)
{
    if (valkey->pid > 0) {
        (void)kill(valkey->pid, SIGKILL);
        (void)waitpid(valkey->pid, NULL, 0);
        valkey->pid = 0;
    }
}

void valkey_freeze(struct valkey *valkey)
{
    (void)kill(valkey->pid, SIGSTOP);
}

void valkey_thaw(struct valkey *valkey)
{
    (void)kill(valkey->pid, SIGCONT);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

void valkey_stop(struct valkey **valkey)
{
    if (!*valkey) {
        return;
    }
    valkey_kill(*valkey);
    (void)nftw((*valkey)->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*valkey);
    *valkey = NULL;
}

static redisReply *command(struct valkey *valkey, const char *format, va_list args)
{
    redisContext *context = connect_to(valkey);
    redisReply *reply = context ? redisvCommand(context, format, args) : NULL;

    redisFree(context);
    return reply;
}

struct redisReply *valkey_command(struct valkey *valkey, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = command(valkey, format, args);

    va_end(args);
    return reply;
}

int64_t valkey_do(struct valkey *valkey, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = command(valkey, format, args);

    va_end(args);
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        (void)fprintf(stderr, "valkey fixture: `%s`: %s\n", format,
                      reply ? reply->str : "no answer");
        exit(1);
    }
    int64_t number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;

    freeReplyObject(reply);
    return number;
}
