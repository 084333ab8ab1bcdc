/* The datagrams of sd_notify(3), written here because libsystemd's call waits when the service
 * manager does not read: the loop must not. A line that can't be sent is lost; a change of state
 * (READY, RELOADING, STOPPING) is kept and sent later. */
#include "supervisor/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/base/err.h"

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

#define TEXT_MAX 512

static bool is_reloading;
static char unsent[TEXT_MAX]; /* the newest state, if it could not be sent */

static const char *socket_name(void)
{
    const char *name = getenv("NOTIFY_SOCKET");

    return name && (name[0] == '/' || name[0] == '@') && name[1] ? name : NULL;
}

/* 0; -EAGAIN: the service manager does not read just now; -errno. */
static int send_text(const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = socket_name();
    const size_t len = name ? strlen(name) : 0;

    if (len == 0 || len > sizeof(address.sun_path)) {
        return -ENOENT;
    }
    memcpy(address.sun_path, name, len);
    if (name[0] == '@') {
        address.sun_path[0] = '\0'; /* an abstract name */
    }
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    const ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                                (const struct sockaddr *)&address,
                                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    return sent < 0 ? -errno : 0;
}

static void send_state(const char *text)
{
    unsent[0] = '\0';
    if (send_text(text) == -EAGAIN) {
        (void)snprintf(unsent, sizeof(unsent), "%s", text);
    }
}

bool notify_is_heard(void)
{
    return socket_name() != NULL;
}

void notify_retry(void)
{
    if (unsent[0] && send_text(unsent) != -EAGAIN) {
        unsent[0] = '\0';
    }
}

void notify_status(const char *status)
{
    char text[TEXT_MAX];

    if (!is_reloading) {
        (void)snprintf(text, sizeof(text), "STATUS=%s", status);
        (void)send_text(text);
    }
}

void notify_ready(const char *status)
{
    char text[TEXT_MAX];

    is_reloading = false;
    (void)snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", status);
    send_state(text);
}

void notify_reloading(const char *status)
{
    char text[TEXT_MAX];

    is_reloading = true;
    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=%s",
                   clock_mono_ns() / 1000, status);
    send_state(text);
}

void notify_stopping(const char *status)
{
    char text[TEXT_MAX];

    is_reloading = false;
    (void)snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=%s", status);
    send_state(text);
}

#ifdef HAVE_LIBSYSTEMD
static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    (void)send_text("WATCHDOG=1");
}

void notify_watchdog_start(struct uv_timer_s *timer)
{
    uint64_t interval_us = 0;

    if (sd_watchdog_enabled(0, &interval_us) > 0 && interval_us >= 2000) {
        uv_timer_start(timer, on_watchdog, 0, interval_us / 2000); /* can't fail: has a callback */
    }
}
#else
void notify_watchdog_start(struct uv_timer_s *timer)
{
    (void)timer;
}
#endif
