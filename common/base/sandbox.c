/* See sandbox.h. The filter is libseccomp's. Its rules answer with an error rather than a signal:
 * libraries have a way on without what they tried, and a delivery is not lost to a guess. */
#include "common/base/sandbox.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/base/log.h"

#ifdef HAVE_SECCOMP
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

/* Builds with sanitizers look for leaks from a process of their own, which traces us. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#ifdef HAVE_SECCOMP

#define ALWAYS      true
#define UNSANITIZED (!IS_SANITIZED)

static const struct refused {
    const char *call;
    bool is_refused;
} refused[] = {
#define REFUSED(name, when) {.call = #name, .is_refused = (when)},
#include "common/base/sandbox.def"
};

/* Sockets of the network and of this machine, and the one that tells a resolver its addresses. */
static bool is_used_family(int family)
{
    return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

/* Calls that are refused whatever their arguments. Those that this library or machine does not know
 * can't be named, and mostly not made. */
static int refuse_calls(scmp_filter_ctx filter)
{
    int err = 0;

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]) && err == 0; i++) {
        const int number = seccomp_syscall_resolve_name(refused[i].call);

        if (refused[i].is_refused && number != __NR_SCMP_ERROR) {
            err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
        }
    }
    return err;
}

static int refuse_families(scmp_filter_ctx filter)
{
    const uint32_t action = SCMP_ACT_ERRNO(EAFNOSUPPORT);
    int err = 0;

    for (int family = 0; family <= AF_NETLINK && err == 0; family++) {
        if (!is_used_family(family)) {
            err = seccomp_rule_add(filter, action, SCMP_SYS(socket), 1,
                                   SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family));
        }
    }
    if (err == 0) {
        err =
            seccomp_rule_add(filter, action, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
    }
    return err;
}

/* Memory that is both written and run, or becomes code after it was data: as systemd's
 * MemoryDenyWriteExecute=. */
static int refuse_new_code(scmp_filter_ctx filter)
{
    static const scmp_datum_t both = PROT_WRITE | PROT_EXEC;
    const uint32_t action = SCMP_ACT_ERRNO(EPERM);
    int err = seccomp_rule_add(filter, action, SCMP_SYS(mmap), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, both, both));

    if (err == 0) {
        err = seccomp_rule_add(filter, action, SCMP_SYS(mprotect), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
    }
    if (err == 0) {
        err = seccomp_rule_add(filter, action, SCMP_SYS(pkey_mprotect), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
    }
    return err;
}

/* New threads, but no new processes and no namespaces. clone3 has its arguments in memory, where no
 * filter sees them: libc takes clone when it is told that there is none. */
static int refuse_processes(scmp_filter_ctx filter)
{
    const uint32_t action = SCMP_ACT_ERRNO(EPERM);
    int err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    if (err == 0 && !IS_SANITIZED) {
        err = seccomp_rule_add(filter, action, SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    }
    if (err == 0 && !IS_SANITIZED) { /* signals to ourselves only: abort */
        err = seccomp_rule_add(filter, action, SCMP_SYS(tgkill), 1,
                               SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
    }
    if (err == 0) { /* typing on a terminal that somebody else reads */
        err = seccomp_rule_add(filter, action, SCMP_SYS(ioctl), 1,
                               SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCSTI));
    }
    return err;
}

static int load_filter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    if (!filter) {
        return -ENOMEM;
    }
    /* Calls by another ABI of this machine have other numbers, and would pass. */
    int err = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    err = err == 0 ? refuse_calls(filter) : err;
    err = err == 0 ? refuse_families(filter) : err;
    err = err == 0 ? refuse_new_code(filter) : err;
    err = err == 0 ? refuse_processes(filter) : err;
    err = err == 0 ? seccomp_load(filter) : err; /* sets no-new-privileges, too */
    seccomp_release(filter);
    return err;
}

#else

static int load_filter(void)
{
    return -ENOSYS;
}

#endif

int sandbox_enter(void)
{
    /* Nobody but root reads us, neither by a debugger nor in a core file: messages and secrets are
     * in here, and API, workers and store are of one user. */
    if (!IS_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
        return -errno;
    }
    return load_filter();
}

void sandbox_enter_told(bool is_wanted)
{
    const int err = is_wanted ? sandbox_enter() : 0;

    if (err < 0) {
        log_warn(
            "no system calls are refused: this process could do whatever its user may", "why",
            strerror(-err), "mend",
            "run a kernel and a build with seccomp, or set `sandbox: false` to be told no more");
    } else {
        log_debug(is_wanted ? "system calls that are not needed are refused from here on"
                            : "no system calls are refused: sandbox is false");
    }
}
