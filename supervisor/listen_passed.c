/* Sockets of a service manager, through libsystemd (sd_listen_fds). Each is looked at before it is
 * believed: a datagram socket, or one that other machines reach while nobody asks for tokens, must
 * not become the API. */
#include "supervisor/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/listen_address.h"
#include "common/base/log.h"

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>

static int refuse(const char *name, const char *address, const char *why, const char *mend)
{
    log_error("a socket of the service manager can't be used", "name", name, "listen", address,
              "why", why, "mend", mend);
    return -EINVAL;
}

static int take_one(struct listeners *listeners, const struct settings *settings, int fd,
                    const char *name)
{
    struct listen_address address;
    const int flags = fcntl(fd, F_GETFL);

    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 ||
        listen_address_of_socket(fd, &address) < 0) {
        return refuse(name, "?", "it is no listening stream socket of IP or Unix",
                      "use ListenStream= and Accept=no in its .socket unit");
    }
    const struct listen_address_text shown = listen_address_show(&address);
    if (!address.is_local && !settings->token_file) {
        return refuse(name, shown.text, "other machines could call the API without a token",
                      "give token_file, or ListenStream=127.0.0.1:PORT in its .socket unit");
    }
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return refuse(name, shown.text, strerror(errno), "start the .socket unit anew");
    }
    listeners->fds[listeners->count++] = fd;
    log_info("a socket of the service manager is used instead of `listen`", "name", name, "listen",
             shown.text);
    return 0;
}

static int take_all(struct listeners *listeners, const struct settings *settings, int count,
                    char *const *names)
{
    int err = 0;

    if (count > INHERIT_LISTEN_MAX) {
        log_error("the service manager passed too many sockets", "max",
                  LOG_I64(INHERIT_LISTEN_MAX));
        return -E2BIG;
    }
    for (int i = 0; i < count && err == 0; i++) {
        err = take_one(listeners, settings, SD_LISTEN_FDS_START + i, names ? names[i] : "");
    }
    return err;
}

static void free_names(char **names)
{
    for (char **name = names; name && *name; name++) {
        free(*name);
    }
    free(names);
}

int listeners_take_passed(struct listeners *listeners, const struct settings *settings)
{
    char **names = NULL;
    const int count = sd_listen_fds_with_names(1, &names);

    if (count < 0) {
        log_error("bad $LISTEN_FDS or $LISTEN_PID", "error", strerror(-count));
        return count;
    }
    const int err = take_all(listeners, settings, count, names);

    free_names(names);
    return err;
}
#else
int listeners_take_passed(struct listeners *listeners, const struct settings *settings)
{
    (void)listeners;
    (void)settings;
    if (getenv("LISTEN_FDS")) {
        log_warn("sockets were passed, but this build has no libsystemd: `listen` is used");
    }
    return 0;
}
#endif
