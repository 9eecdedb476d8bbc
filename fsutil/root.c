#include "fsutil/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/quote.h"

/* No O_NOFOLLOW: links are allowed in the operator's own path. */
static int open_root(const char *dest)
{
    return openat(AT_FDCWD, dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Length of dest without the trailing "/" and "/." that mkdir(2) would stumble over. */
static size_t trimmed(const char *dest)
{
    size_t n = strlen(dest);

    for (;;) {
        if (n > 1 && dest[n - 1] == '/')
            n--;
        else if (n > 2 && dest[n - 1] == '.' && dest[n - 2] == '/')
            n -= 2;
        else
            return n;
    }
}

/* Length of what leads to the last component of dest, without its slash; 0: nothing does. */
static size_t above(const char *dest)
{
    size_t n = trimmed(dest);

    while (n > 0 && dest[n - 1] != '/')
        n--;
    while (n > 1 && dest[n - 1] == '/')
        n--;
    return n;
}

/* What stands at dest, links not followed; 0: nothing. */
static mode_t mode_of(const char *dest)
{
    char path[PATH_MAX];
    size_t n = trimmed(dest);
    struct stat st;

    if (n >= sizeof(path))
        return 0;
    memcpy(path, dest, n);
    path[n] = '\0';
    return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode : 0;
}

/* Says in words what a call did not like about dest: it is the first thing that an operator types,
 * and the first that goes wrong. */
static enum sbx_status unusable(const char *dest, int os_errno, const char *call,
                                struct sbx_error *err)
{
    mode_t there = mode_of(dest);
    size_t n = above(dest);
    const char *up = n ? SBX_QUOTE_N(dest, n) : ".";
    const char *shown = SBX_QUOTE(dest);
    const char *verb = there ? "open" : strcmp(call, "mkdirat") == 0 ? "make" : "reach";
    enum sbx_status st = SBX_E_HOST;

    if (os_errno == ENOENT && S_ISLNK(there))
        st = sbx_err_set(err, st, os_errno, "'%s' is a symbolic link that leads nowhere", shown);
    else if (os_errno == ENOENT)
        st = sbx_err_set(err, st, os_errno,
                         "the parent directory '%s' of '%s' does not exist, "
                         "and only the last component is made",
                         up, shown);
    else if (os_errno == ENOTDIR)
        st = sbx_err_set(err, st, os_errno, "'%s' is not a directory", there ? shown : up);
    else if (os_errno == EACCES)
        st = sbx_err_set(err, st, os_errno, "no permission to %s '%s'", verb, shown);
    else
        return sbx_err_host(err, os_errno, call, "directory '%s'", shown);
    if (err)
        (void)snprintf(err->step, sizeof(err->step), "%s", call);
    return st;
}

static enum sbx_status make_root(const char *dest, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf path = SBX_BUF_INIT(PATH_MAX);
    enum sbx_status st = sbx_buf_add(&path, dest, trimmed(dest), err);

    if (st == SBX_E_LIMIT)
        return sbx_err_host(err, ENAMETOOLONG, "mkdirat", "'%s'", SBX_QUOTE(dest));
    if (st)
        return st;
    if (mkdirat(AT_FDCWD, path.data, 0777) == 0 || errno == EEXIST)
        return SBX_OK;
    return unusable(dest, errno, "mkdirat", err);
}

/* The new entry in the directory above belongs to nobody's batch, so it is synced here. Only an
 * attempt: that directory need not be readable for us, and its file system may not know it. */
static void sync_above(int fd)
{
    SBX_FD_AUTO int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (above >= 0)
        (void)fsync(above);
}

enum sbx_status sbx_fs_root_open(const char *dest, bool make, int *ret_fd, struct sbx_error *err)
{
    enum sbx_status st;
    int fd;

    if (!*dest)
        return sbx_err_set(err, SBX_E_USAGE, 0, "the destination is an empty string");
    fd = open_root(dest);
    if (fd < 0 && errno == ENOENT && !make) {
        if (S_ISLNK(mode_of(dest)))
            return unusable(dest, ENOENT, "openat", err);
        *ret_fd = -1;
        return SBX_OK;
    }
    if (fd < 0 && errno == ENOENT) {
        st = make_root(dest, err);
        if (st)
            return st;
        fd = open_root(dest);
        if (fd >= 0)
            sync_above(fd);
    }
    if (fd < 0)
        return unusable(dest, errno, "openat", err);
    *ret_fd = fd;
    return SBX_OK;
}

enum sbx_status sbx_fs_root_open_above(const char *dest, int *ret_fd, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf path = SBX_BUF_INIT(PATH_MAX);
    size_t n = above(dest);
    enum sbx_status st = n ? sbx_buf_add(&path, dest, n, err) : sbx_buf_str(&path, ".", err);
    int fd;

    if (st == SBX_E_LIMIT)
        return sbx_err_host(err, ENAMETOOLONG, "openat", "'%s'", SBX_QUOTE(dest));
    if (st)
        return st;
    fd = openat(AT_FDCWD, path.data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return unusable(dest, errno, "openat", err);
    *ret_fd = fd;
    return SBX_OK;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

enum sbx_status sbx_fs_within(int inner, int outer, bool *ret, struct sbx_error *err)
{
    SBX_FD_AUTO int at = openat(inner, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat wanted, here, above;

    if (at < 0)
        return sbx_err_host(err, errno, "openat", "'.'");
    if (fstat(at, &here) < 0 || fstat(outer, &wanted) < 0)
        return sbx_err_host(err, errno, "fstat", "directory");
    while (!same(&here, &wanted)) {
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

        /* What may not be searched cannot have been opened by a path through it: only an inherited
         * working directory lies below such a one, and then nothing above it is ours to know. */
        if (up < 0 && errno == EACCES) {
            *ret = false;
            return SBX_OK;
        }
        if (up < 0)
            return sbx_err_host(err, errno, "openat", "'..'");
        sbx_fd_close(&at);
        at = up;
        if (fstat(at, &above) < 0)
            return sbx_err_host(err, errno, "fstat", "'..'");
        if (same(&above, &here)) {
            *ret = false;
            return SBX_OK;
        }
        here = above;
    }
    *ret = true;
    return SBX_OK;
}
