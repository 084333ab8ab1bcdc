/* What a child gets from the supervisor: descriptors at fixed numbers, everything else on its
 * command line. The only place where these numbers stand; spawn.c fills them, each child's main.c
 * takes them. Who gets it: both kinds of children, where nothing else is said.
 *
 *   fd    what                                          why
 *   3     configuration: sealed memfd, YAML with        the checked bytes, not a file that
 *         secrets                                       may have changed
 *   4     shared-memory segment                         mapped, then closed
 *   5     lifeline: read end of a pipe, end-of-file     to drain when the supervisor is dead
 *         when the supervisor is gone
 *   6     ready: write end of a pipe; "READY\n" once    the old process goes only after that
 *         it serves
 *   7     credentials: sealed memfd, JSON with        who may call, the key of the listener;
 *         hashes of tokens and a TLS key                api only
 *   16…   listening sockets, in the order of `listen`   shared by old and new process; api only
 *   64+n  eventfd of slot n (see wake.h)                to wake a peer, to be woken
 */
#ifndef COMMON_BASE_INHERIT_H
#define COMMON_BASE_INHERIT_H

#include <signal.h>
#include <stdint.h>

enum inherit_fd {
    INHERIT_CONFIG = 3,
    INHERIT_SHM = 4,
    INHERIT_LIFELINE = 5,
    INHERIT_READY = 6,
    INHERIT_CREDENTIALS = 7,
    INHERIT_LISTEN_FIRST = 16,
    INHERIT_LISTEN_MAX = 16, /* at most this many listeners */
    INHERIT_EVENTFD_FIRST = 64,
};

/* TERM: drain. This one, to an API only: drain, but a successor serves, so clients have time. */
#define INHERIT_RETIRE_SIGNAL SIGWINCH

/* Command line of every child: PROGRAM --slot N --generation HEX --incarnation HEX --node NAME
 * [--listeners N] [--kinds NAME,NAME,…] */
struct inherit_args {
    uint32_t slot;
    uint64_t generation;
    uint64_t incarnation;
    char node[65];
    uint32_t listener_count;
    const char *kinds; /* in argv: kinds by their metric labels (kind_labels.h); NULL: none */
};

/* Reads a child's command line; prints what is wrong to stderr. Returns 0 or -EINVAL. */
int inherit_parse_args(int argc, char **argv, struct inherit_args *ret);
/* Sets CLOEXEC on all inherited descriptors that exist: no grandchild gets them. */
void inherit_protect(void);
/* Signals that mean something to the supervisor only are ignored: `pkill -HUP outboxd` reaches
 * every program whose name begins so. */
void inherit_ignore_signals(void);
/* Takes the exclusive lock file of this process, `STATE_DIR/locks/GENERATION.SLOT` (hex, decimal),
 * held until the process ends (contract §8). Creates it if needed. Returns the descriptor, which
 * stays open, or -errno (-EWOULDBLOCK: another process holds it). Blocks for at most 0.2 s:
 * somebody may only be looking whether it is free. */
int inherit_lock_slot(const char *state_dir, uint64_t generation, uint32_t slot);
/* Whether nobody holds that lock (a file that is absent: -ENOENT; then the token belongs to another
 * node). Returns 1 free, 0 held, -errno. Never creates and never keeps the lock. */
int inherit_slot_is_free(const char *state_dir, uint64_t generation, uint32_t slot);

#endif
