#include "fsutil/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/quote.h"
#include "fsutil/file.h"

static int sync_fd(int fd)
{
    int rc;

    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    return rc;
}

enum sbx_status sbx_fs_sync_fd(int fd, struct sbx_error *err)
{
    if (sync_fd(fd) < 0)
        return sbx_err_host(err, errno, "fsync", "file");
    return SBX_OK;
}

enum sbx_status sbx_fs_sync_dir(int dirfd, bool *ret_cannot, struct sbx_error *err)
{
    int cannot = sync_fd(dirfd) < 0;

    if (cannot && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS)
        return sbx_err_host(err, errno, "fsync", "directory");
    *ret_cannot = cannot;
    return SBX_OK;
}

enum sbx_status sbx_fs_sync_file(int dirfd, const char *name, struct sbx_error *err)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    SBX_FD_AUTO int fd = openat(dirfd, name, O_RDONLY | flags);
    struct stat st;

    /* Permission bits that were carried over may allow writing only. */
    if (fd < 0 && errno == EACCES)
        fd = openat(dirfd, name, O_WRONLY | flags);
    if (fd < 0)
        return sbx_err_host(err, errno, "openat", "'%s'", SBX_QUOTE(name));
    if (fstat(fd, &st) < 0)
        return sbx_err_host(err, errno, "fstat", "'%s'", SBX_QUOTE(name));
    if (!S_ISREG(st.st_mode))
        return sbx_fs_unfit(err, name, "is no regular file");
    if (sync_fd(fd) < 0)
        return sbx_err_host(err, errno, "fsync", "'%s'", SBX_QUOTE(name));
    return SBX_OK;
}

enum sbx_status sbx_fs_sync_all(int dirfd, struct sbx_error *err)
{
    int rc;

    do
        rc = syncfs(dirfd);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return sbx_err_host(err, errno, "syncfs", "destination");
    return SBX_OK;
}
