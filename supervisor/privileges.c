/* Users and capabilities of children. Looking up may ask the network's directory (NSS): done once,
 * at the start. */
#include "supervisor/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- looking up ---- */

static int refuse(char *why, const char *what, const char *name, const char *mend, int err)
{
    (void)snprintf(why, PRIVILEGES_WHY_MAX, "%s%.64s%s", what, name, mend); /* cut if too long */
    return err;
}

static int find_group(const char *name, gid_t *ret, char *why)
{
    errno = 0;
    const struct group *entry = getgrnam(name); /* before any thread of ours */

    if (!entry) {
        return refuse(why, "no group of this system is called ", name,
                      "; make it (groupadd --system), or name another", -EINVAL);
    }
    *ret = entry->gr_gid;
    return 0;
}

int privileges_find(const char *user, const char *group, bool is_look_only, struct privileges *ret,
                    char why[PRIVILEGES_WHY_MAX])
{
    struct privileges found = {0};
    int count = PRIVILEGES_GROUPS_MAX;

    if (!user) {
        *ret = found;
        return 0;
    }
    const struct passwd *entry = getpwnam(user);
    if (!entry) {
        return refuse(why, "no user of this system is called ", user,
                      "; make it (useradd --system), or name another", -EINVAL);
    }
    found.uid = entry->pw_uid;
    found.gid = entry->pw_gid;
    const int err = group ? find_group(group, &found.gid, why) : 0;
    if (err < 0) {
        return err;
    }
    found.is_other_user = found.uid != geteuid();
    if (found.is_other_user && geteuid() != 0 && !is_look_only) {
        return refuse(why, "only root can run its children as ", user,
                      "; start outboxd as root, or as that user", -EPERM);
    }
    if (getgrouplist(user, found.gid, found.groups, &count) < 0) {
        return refuse(why, "too many groups (64 at most) has ", user, "", -EINVAL);
    }
    found.group_count = (size_t)count;
    *ret = found;
    return 0;
}

/* ---- giving up, in the child ---- */

/* Root without CAP_DAC_OVERRIDE could not open what belongs to another user. */
static bool is_kept(int capability, bool is_root)
{
    return is_root && capability == CAP_DAC_OVERRIDE;
}

static int bound_capabilities(bool is_root)
{
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
        /* EPERM: we have no say in it, hence nothing that could be gained. */
        if (!is_kept(capability, is_root) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 &&
            errno != EPERM) {
            return -errno;
        }
    }
    /* EINVAL: a kernel before 4.3 has none. */
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL ? -errno
                                                                                           : 0;
}

static int set_capabilities(bool is_root)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3], kept[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, now) < 0) {
        return -errno;
    }
    memset(kept, 0, sizeof(kept));
    if (is_root) { /* as far as we have it ourselves: a container's root may not */
        kept[0].permitted = now[0].permitted & (1U << CAP_DAC_OVERRIDE);
        kept[0].effective = kept[0].permitted;
    }
    /* A service manager's filter may refuse the call, also where it would change nothing. */
    if (memcmp(now, kept, sizeof(now)) == 0) {
        return 0;
    }
    return syscall(SYS_capset, &header, kept) < 0 ? -errno : 0;
}

int privileges_take(const struct privileges *privileges)
{
    const bool is_root = !privileges->is_other_user && geteuid() == 0;
    int err = bound_capabilities(is_root);

    if (err < 0) {
        return err;
    }
    if (privileges->is_other_user &&
        (setgroups(privileges->group_count, privileges->groups) < 0 ||
         setresgid(privileges->gid, privileges->gid, privileges->gid) < 0 ||
         setresuid(privileges->uid, privileges->uid, privileges->uid) < 0)) {
        return -errno;
    }
    err = set_capabilities(is_root);
    if (err < 0) {
        return err;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}
