#include "fsutil/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "fsutil/dir.h"
#include "preflight/path.h"

static bool is_ours(const char *name, const char *token)
{
    const char *prefix = SBX_PRE_OURS ".";
    size_t n = strlen(prefix), m = strlen(token), digits;

    if (strncmp(name, prefix, n) != 0 || strncmp(name + n, token, m) != 0 || name[n + m] != '.')
        return false;
    name += n + m + 1;
    digits = strspn(name, "0123456789");
    return digits > 0 && name[digits] == '\0';
}

enum fate { NOT_OURS, REMOVED, STAYS };

static enum fate remove_regular(int dirfd, const char *name)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NOT_OURS : STAYS;
    if (!S_ISREG(st.st_mode))
        return NOT_OURS;
    if (unlinkat(dirfd, name, 0) < 0)
        return errno == ENOENT ? NOT_OURS : STAYS;
    return REMOVED;
}

static enum sbx_status sweep_once(int dirfd, const char *token, size_t *ret_removed,
                                  size_t *ret_failed, struct sbx_error *err)
{
    SBX_DIR_AUTO DIR *dir = NULL;
    size_t removed = 0, failed = 0;
    const char *name = "";
    enum sbx_status st = sbx_fs_dir_open(dirfd, &dir, err);

    while (!st && (st = sbx_fs_dir_next(dir, &name, err)) == SBX_OK && name) {
        enum fate fate = is_ours(name, token) ? remove_regular(dirfd, name) : NOT_OURS;

        removed += fate == REMOVED;
        failed += fate == STAYS;
    }
    *ret_removed = removed;
    *ret_failed = failed;
    return st;
}

enum sbx_status sbx_fs_sweep(int dirfd, const char *token, size_t *removed, size_t *failed,
                             struct sbx_error *err)
{
    size_t gone = 1, left = 0;
    enum sbx_status st = SBX_OK;

    /* Removing while reading makes some file systems skip entries. */
    for (unsigned i = 0; i < SBX_SWEEP_READINGS && gone > 0 && !st; i++) {
        gone = left = 0;
        st = sweep_once(dirfd, token, &gone, &left, err);
        *removed += gone;
    }
    *failed += left;
    return st;
}
