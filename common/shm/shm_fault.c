/* The handler of SIGBUS and the few mappings that it knows. It calls fallocate, mmap and sigaction
 * only: plain system calls. */
#include "common/shm/shm_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#define GUARDS_MAX 8

struct guard {
    _Atomic(unsigned char *) base; /* NULL: free. Set last, cleared first: the handler may come at
                                      any time */
    size_t size_bytes;
    int fd;
    int protection;
};

static struct guard guards[GUARDS_MAX];
static struct sigaction previous;
static bool is_installed;

/* Whole again, with zeroes where something was cut off. False: no memory, or nothing to write to.
 */
static bool restore(const struct guard *guard, unsigned char *base)
{
    if (guard->fd >= 0 && fallocate(guard->fd, 0, 0, (off_t)guard->size_bytes) == 0) {
        return true;
    }
    return mmap(base, guard->size_bytes, guard->protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1, 0) != MAP_FAILED;
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    const int kept_errno = errno;
    const uintptr_t at = (uintptr_t)info->si_addr;

    (void)context;
    for (size_t i = 0; i < GUARDS_MAX; i++) {
        unsigned char *base = atomic_load(&guards[i].base);

        if (base && at >= (uintptr_t)base && at - (uintptr_t)base < guards[i].size_bytes &&
            restore(&guards[i], base)) {
            errno = kept_errno;
            return;
        }
    }
    /* Not ours: the access is repeated, and then it is whoever's was there before. */
    (void)sigaction(number, &previous, NULL);
    errno = kept_errno;
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};

    if (!is_installed && sigemptyset(&action.sa_mask) == 0 &&
        sigaction(SIGBUS, &action, &previous) == 0) {
        is_installed = true;
    }
}

void shm_fault_guard(void *base, size_t size_bytes, int fd, int protection)
{
    install();
    for (size_t i = 0; i < GUARDS_MAX; i++) {
        if (!atomic_load(&guards[i].base)) {
            guards[i].size_bytes = size_bytes;
            guards[i].fd = fd;
            guards[i].protection = protection;
            atomic_store(&guards[i].base, base);
            return;
        }
    }
}

void shm_fault_unguard(const void *base)
{
    for (size_t i = 0; i < GUARDS_MAX; i++) {
        if (atomic_load(&guards[i].base) == base) {
            atomic_store(&guards[i].base, NULL);
        }
    }
}
