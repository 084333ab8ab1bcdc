/* Looks for programs in a few fixed places. Blocks for some stat calls. */
#include "supervisor/programs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_config.h"

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool try_path(struct program_path *ret, const char *folder, size_t folder_len,
                     const char *name)
{
    struct program_path path;
    const int len =
        snprintf(path.text, sizeof(path.text), "%.*s/%s", (int)folder_len, folder, name);

    if (len < 0 || (size_t)len >= sizeof(path.text) || !is_program(path.text)) {
        return false;
    }
    *ret = path;
    return true;
}

int program_find(const char *name, const char *folder, struct program_path *ret)
{
    const char *libexec = getenv("OUTBOXD_LIBEXEC");
    char self[PATH_MAX], in_tree[128];

    if (libexec && *libexec) {
        return try_path(ret, libexec, strlen(libexec), name) ? 0 : -ENOENT;
    }
    const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len > 0) {
        self[len] = '\0';
        const char *slash = strrchr(self, '/');
        const size_t own_len = slash ? (size_t)(slash - self) : 0;

        (void)snprintf(in_tree, sizeof(in_tree), "../%s/%s", folder,
                       name); /* both are ours and short */
        if (try_path(ret, self, own_len, name) || try_path(ret, self, own_len, in_tree)) {
            return 0;
        }
    }
    return try_path(ret, OUTBOXD_LIBEXECDIR, strlen(OUTBOXD_LIBEXECDIR), name) ? 0 : -ENOENT;
}

static bool find_in_list(const char *folders, const char *name, struct program_path *ret)
{
    while (folders) {
        const char *end = strchrnul(folders, ':');

        if (*folders == '/' && try_path(ret, folders, (size_t)(end - folders), name)) {
            return true;
        }
        folders = *end ? end + 1 : NULL;
    }
    return false;
}

int program_find_self(const char *argv0, struct program_path *ret)
{
    char folder[PATH_MAX];

    if (!argv0 || !*argv0) {
        return -ENOENT;
    }
    if (*argv0 == '/') {
        return try_path(ret, "", 0, argv0 + 1) ? 0 : -ENOENT;
    }
    if (strchr(argv0, '/')) {
        return getcwd(folder, sizeof(folder)) && try_path(ret, folder, strlen(folder), argv0)
                   ? 0
                   : -ENOENT;
    }
    return find_in_list(getenv("PATH"), argv0, ret) ? 0 : -ENOENT;
}

int program_find_store(struct program_path *ret)
{
    static const char *const names[] = {"valkey-server", "redis-server"};
    static const char usual[] = "/usr/bin:/usr/local/bin:/usr/sbin";

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (find_in_list(getenv("PATH"), names[i], ret) || find_in_list(usual, names[i], ret)) {
            return 0;
        }
    }
    return -ENOENT;
}
