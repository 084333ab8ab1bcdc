/* Who children are, and what they may: looked up and checked before anything starts, given to a
 * child between fork and exec. As another user (setting `user`) they have no capability at all; as
 * root, without that setting, they keep the one that lets root use files of others, as root is used
 * to. None ever gets more by executing something (no-new-privileges). */
#ifndef SUPERVISOR_PRIVILEGES_H
#define SUPERVISOR_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PRIVILEGES_GROUPS_MAX 64
#define PRIVILEGES_WHY_MAX    256

struct privileges {
    bool is_other_user; /* than ours; else the members below mean nothing */
    uid_t uid;
    gid_t gid;
    size_t group_count;
    gid_t groups[PRIVILEGES_GROUPS_MAX]; /* all of the user's */
};

/* Of the settings `user` and `group`, either may be NULL. -EINVAL: there is no such user or group,
 * and, unless `is_look_only`, -EPERM: we are neither root nor that user; `why` tells it. */
int privileges_find(const char *user, const char *group, bool is_look_only, struct privileges *ret,
                    char why[PRIVILEGES_WHY_MAX]);
/* In a child after fork: gives up what the others shall not have, for good. Makes system calls
 * only. 0 or -errno: then the child must not go on. */
int privileges_take(const struct privileges *privileges);
/* Gives the state directory of a root to that user, with what root made in it: locks, the embedded
 * store. Only where the directory is root's itself; in one of the user's own, where the user could
 * have put anything in the way, files of root are an error (logged, with the command that mends
 * it). 0 or -errno. Nothing to do without another user. */
int privileges_give_state_dir(const struct privileges *privileges, const char *state_dir);
/* Gives what we have just made: a log or a socket, or an open file. NULL, -1 and what is not root's
 * is left. */
void privileges_give_file(const struct privileges *privileges, const char *path);
void privileges_give_fd(const struct privileges *privileges, int fd);

#endif
