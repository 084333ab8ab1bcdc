/* One thread accepts, one more per connection; a mutex around everything that is told. */
#include "tests/store/support/http_target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KEYS_MAX    256
#define HEAD_MAX    16384
#define LONG_GAP_MS 500

struct post {
    char key[64];
    bool is_kept;
};

struct http_target {
    int listener, port;
    pthread_t acceptor;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum target_behaviour behaviour;
    unsigned delay_ms, connections, lookups, open, long_gaps;
    struct post posts[KEYS_MAX];
    unsigned post_count;
    int64_t idle_since_ms;
};

struct connection {
    struct http_target *target;
    int fd;
};

static void die(const char *what)
{
    perror(what);
    abort();
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The value of a header in `head`, copied; "" if absent. */
static void header(const char *head, const char *name, char *ret, size_t cap)
{
    const size_t len = strlen(name);

    ret[0] = '\0';
    for (const char *line = head; line; line = strstr(line, "\r\n")) {
        line += strncmp(line, "\r\n", 2) == 0 ? 2 : 0;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *value = line + len + 1 + strspn(line + len + 1, " ");

            snprintf(ret, cap, "%.*s", (int)strcspn(value, "\r\n"), value);
            return;
        }
    }
}

/* Reads one request; what follows the head in `head` is overwritten by its body. */
static bool read_request(int fd, char *head)
{
    size_t have = 0;
    char *end = NULL;
    char length[16];

    while (!end) {
        const ssize_t got = read(fd, head + have, HEAD_MAX - 1 - have);

        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
        head[have] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    const size_t head_len = (size_t)(end - head) + 4;

    header(head, "Content-Length", length, sizeof(length));
    for (size_t body = have - head_len; body < strtoul(length, NULL, 10);) {
        char rest[4096];
        const ssize_t got = read(fd, rest, sizeof(rest));

        if (got <= 0) {
            return false;
        }
        body += (size_t)got;
    }
    return true;
}

static bool answer(int fd, int status)
{
    char text[128];
    const int len =
        snprintf(text, sizeof(text), "HTTP/1.1 %d Whatever\r\nContent-Length: 2\r\n\r\nok", status);

    return send(fd, text, (size_t)len, MSG_NOSIGNAL) == len;
}

static void begin_post(struct http_target *target, const char *head)
{
    struct post *post;

    if (target->post_count == KEYS_MAX) {
        die("too many posts for this test");
    }
    post = &target->posts[target->post_count++];
    header(head, "Idempotency-Key", post->key, sizeof(post->key));
    post->is_kept = target->behaviour != TARGET_FORGET_CLOSE;
    if (target->open++ == 0 && target->idle_since_ms > 0 &&
        now_ms() - target->idle_since_ms > LONG_GAP_MS) {
        target->long_gaps++;
    }
}

/* Returns the status, or 0: close. The mutex is held. */
static int obey(struct http_target *target)
{
    const enum target_behaviour behaviour = target->behaviour;

    switch (behaviour) {
    case TARGET_ANSWER:
        return 200;
    case TARGET_DELAY:
        pthread_mutex_unlock(&target->mutex);
        usleep(target->delay_ms * 1000);
        pthread_mutex_lock(&target->mutex);
        return 200;
    case TARGET_HOLD:
        while (target->behaviour == TARGET_HOLD) {
            pthread_cond_wait(&target->changed, &target->mutex);
        }
        return 200;
    case TARGET_KEEP_CLOSE:
    case TARGET_FORGET_CLOSE:
        break;
    }
    return 0;
}

static int post(struct http_target *target, const char *head)
{
    int status;

    begin_post(target, head);
    status = obey(target);
    if (--target->open == 0) {
        target->idle_since_ms = now_ms();
    }
    return status;
}

static int look_up(struct http_target *target, const char *head)
{
    const char *key = strrchr(head, '\0'); /* none */
    const char *slash = strstr(head, "/by-key/");

    target->lookups++;
    key = slash ? slash + strlen("/by-key/") : key;
    for (unsigned i = 0; i < target->post_count; i++) {
        const struct post *kept = &target->posts[i];

        if (kept->is_kept && strncmp(kept->key, key, strlen(kept->key)) == 0) {
            return 200;
        }
    }
    return 404;
}

static void *serve(void *arg)
{
    struct connection connection = *(struct connection *)arg;
    struct http_target *target = connection.target;
    char *head = malloc(HEAD_MAX);
    bool is_going_on = head != NULL;

    free(arg);
    while (is_going_on && read_request(connection.fd, head)) {
        pthread_mutex_lock(&target->mutex);
        const int status =
            strncmp(head, "GET ", 4) == 0 ? look_up(target, head) : post(target, head);
        pthread_mutex_unlock(&target->mutex);
        is_going_on = status > 0 && answer(connection.fd, status);
    }
    free(head);
    close(connection.fd);
    pthread_mutex_lock(&target->mutex);
    target->connections--;
    pthread_cond_broadcast(&target->changed);
    pthread_mutex_unlock(&target->mutex);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct http_target *target = arg;

    for (;;) {
        const int fd = accept4(target->listener, NULL, NULL, SOCK_CLOEXEC);
        struct connection *connection = fd < 0 ? NULL : malloc(sizeof(*connection));
        pthread_t thread;

        if (!connection) {
            return NULL; /* shut down */
        }
        *connection = (struct connection){target, fd};
        pthread_mutex_lock(&target->mutex);
        target->connections++;
        pthread_mutex_unlock(&target->mutex);
        if (pthread_create(&thread, NULL, serve, connection) != 0) {
            die("cannot start a thread");
        }
        pthread_detach(thread);
    }
}

struct http_target *http_target_start(void)
{
    struct http_target *target = calloc(1, sizeof(*target));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    if (!target) {
        die("out of memory");
    }
    pthread_mutex_init(&target->mutex, NULL);
    pthread_cond_init(&target->changed, NULL);
    target->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (target->listener < 0 ||
        bind(target->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(target->listener, 256) < 0 ||
        getsockname(target->listener, (struct sockaddr *)&address, &len) < 0) {
        die("cannot listen");
    }
    target->port = ntohs(address.sin_port);
    if (pthread_create(&target->acceptor, NULL, accept_all, target) != 0) {
        die("cannot start a thread");
    }
    return target;
}

void http_target_stop(struct http_target **target_ptr)
{
    struct http_target *target = *target_ptr;

    http_target_behave(target, TARGET_ANSWER);
    shutdown(target->listener, SHUT_RDWR);
    pthread_join(target->acceptor, NULL);
    close(target->listener);
    pthread_mutex_lock(&target->mutex);
    while (target->connections > 0) {
        pthread_cond_wait(&target->changed, &target->mutex);
    }
    pthread_mutex_unlock(&target->mutex);
    pthread_cond_destroy(&target->changed);
    pthread_mutex_destroy(&target->mutex);
    free(target);
    *target_ptr = NULL;
}

int http_target_port(const struct http_target *target)
{
    return target->port;
}

void http_target_behave(struct http_target *target, enum target_behaviour behaviour)
{
    pthread_mutex_lock(&target->mutex);
    target->behaviour = behaviour;
    pthread_cond_broadcast(&target->changed);
    pthread_mutex_unlock(&target->mutex);
}

void http_target_set_delay(struct http_target *target, unsigned ms)
{
    pthread_mutex_lock(&target->mutex);
    target->delay_ms = ms;
    pthread_mutex_unlock(&target->mutex);
}

unsigned http_target_posts(struct http_target *target, const char *key)
{
    unsigned count = 0;

    pthread_mutex_lock(&target->mutex);
    for (unsigned i = 0; i < target->post_count; i++) {
        count += !key || strcmp(target->posts[i].key, key) == 0;
    }
    pthread_mutex_unlock(&target->mutex);
    return count;
}

static unsigned read_count(struct http_target *target, const unsigned *count)
{
    pthread_mutex_lock(&target->mutex);
    const unsigned value = *count;
    pthread_mutex_unlock(&target->mutex);
    return value;
}

unsigned http_target_lookups(struct http_target *target)
{
    return read_count(target, &target->lookups);
}

unsigned http_target_open(struct http_target *target)
{
    return read_count(target, &target->open);
}

unsigned http_target_long_gaps(struct http_target *target)
{
    return read_count(target, &target->long_gaps);
}
