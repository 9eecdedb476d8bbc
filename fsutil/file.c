#include "fsutil/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"

/* O_NONBLOCK: a FIFO or device that somebody put there must not hold us. */
#define CAREFULLY (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

enum sbx_status sbx_fs_unfit(struct sbx_error *err, const char *name, const char *why)
{
    enum sbx_status st = sbx_err_set(err, SBX_E_HOST, 0, "'%s' %s", SBX_QUOTE(name), why);

    if (err)
        (void)snprintf(err->step, sizeof(err->step), "fstat");
    return st;
}

enum sbx_status sbx_fs_stat(int dirfd, const char *name, struct stat *ret_st, struct sbx_error *err)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return sbx_err_host(err, errno, "fstatat", "'%s'", SBX_QUOTE(name));
    if (!S_ISREG(st.st_mode))
        return sbx_fs_unfit(err, name, "is no regular file");
    *ret_st = st;
    return SBX_OK;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_version(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && same_time(&a->st_mtim, &b->st_mtim) &&
           same_time(&a->st_ctim, &b->st_ctim);
}

/* *ret_n is how many bytes were digested: up to `size`, or less if the file ends before. */
static enum sbx_status digest_fd(int fd, uint64_t size, uint64_t deadline_ns, uint64_t *ret_n,
                                 struct sbx_digest *digest, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf buf = SBX_BUF_INIT(SBX_IO_CHUNK);
    enum sbx_status st = sbx_buf_reserve(&buf, SBX_IO_CHUNK, err);
    uint64_t done = 0;

    while (!st && done < size) {
        size_t got = 0;

        if (sbx_clock_now() >= deadline_ns)
            return sbx_err_set(err, SBX_E_DEADLINE, 0, "deadline passed while reading a file");
        st = sbx_fs_read_at(fd, done, buf.data,
                            size - done < SBX_IO_CHUNK ? (size_t)(size - done) : SBX_IO_CHUNK, &got,
                            err);
        if (st || got == 0)
            break;
        sbx_digest_add(digest, buf.data, got);
        done += got;
    }
    *ret_n = done;
    return st;
}

enum sbx_status sbx_fs_file_digest(int dirfd, const char *name, uint64_t size, uint64_t deadline_ns,
                                   bool *ret_same, unsigned char ret[SBX_DIGEST_LEN],
                                   struct stat *ret_st, struct sbx_error *err)
{
    SBX_FD_AUTO int fd = openat(dirfd, name, O_RDONLY | CAREFULLY);
    struct sbx_digest digest;
    struct stat before, after;
    enum sbx_status status;
    uint64_t n = 0;

    if (fd < 0) {
        if (errno != ENOENT && errno != ELOOP && errno != ENXIO && errno != EACCES)
            return sbx_err_host(err, errno, "openat", "'%s'", SBX_QUOTE(name));
        *ret_same = false;
        return SBX_OK;
    }
    if (fstat(fd, &before) < 0)
        return sbx_err_host(err, errno, "fstat", "'%s'", SBX_QUOTE(name));
    if (!S_ISREG(before.st_mode) || (uint64_t)before.st_size != size) {
        *ret_same = false;
        return SBX_OK;
    }
    sbx_digest_init(&digest);
    status = digest_fd(fd, size, deadline_ns, &n, &digest, err);
    if (status)
        return sbx_err_wrap(err, status, "'%s'", SBX_QUOTE(name));
    if (fstat(fd, &after) < 0)
        return sbx_err_host(err, errno, "fstat", "'%s'", SBX_QUOTE(name));
    /* A stamp must only ever stand for bytes that were read under it. */
    *ret_same = n == size && same_version(&before, &after);
    if (*ret_same) {
        sbx_digest_final(&digest, ret);
        *ret_st = after;
    }
    return SBX_OK;
}

/* Nobody but us may be able to change what the next pass will believe. */
static enum sbx_status check_own(int fd, const char *name, mode_t type, struct sbx_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return sbx_err_host(err, errno, "fstat", "'%s'", SBX_QUOTE(name));
    if ((st.st_mode & S_IFMT) != type)
        return sbx_fs_unfit(err, name, type == S_IFDIR ? "is no directory" : "is no regular file");
    if (st.st_uid != geteuid())
        return sbx_fs_unfit(err, name, "belongs to another user: run as its owner, or remove it");
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return sbx_fs_unfit(err, name, "is writable by others: chmod go-w it, or remove it");
    return SBX_OK;
}

static enum sbx_status cannot_open(struct sbx_error *err, int os_errno, const char *name)
{
    if (os_errno == ELOOP || os_errno == ENOTDIR || os_errno == ENXIO || os_errno == EISDIR)
        return sbx_err_host(err, os_errno, "openat",
                            "'%s' is not what it has to be (a link?); remove it", SBX_QUOTE(name));
    return sbx_err_host(err, os_errno, "openat", "'%s'", SBX_QUOTE(name));
}

enum sbx_status sbx_fs_own_file(int dirfd, const char *name, mode_t mode, int *ret_fd,
                                struct sbx_error *err)
{
    SBX_FD_AUTO int fd = openat(dirfd, name, O_RDWR | O_CREAT | CAREFULLY, mode & ~(mode_t)022);
    enum sbx_status st;

    if (fd < 0)
        return cannot_open(err, errno, name);
    st = check_own(fd, name, S_IFREG, err);
    if (st)
        return st;
    *ret_fd = sbx_fd_take(&fd);
    return SBX_OK;
}

enum sbx_status sbx_fs_own_dir(int dirfd, const char *name, bool make, int *ret_fd,
                               struct sbx_error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    SBX_FD_AUTO int fd = openat(dirfd, name, flags);
    enum sbx_status st;

    if (fd < 0 && errno == ENOENT && !make) {
        *ret_fd = -1;
        return SBX_OK;
    }
    if (fd < 0 && errno == ENOENT) {
        /* 0755 & umask is 0777 & umask & ~022, and the umask need not be known for it. */
        if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
            return sbx_err_host(err, errno, "mkdirat", "'%s'", SBX_QUOTE(name));
        fd = openat(dirfd, name, flags);
    }
    if (fd < 0)
        return cannot_open(err, errno, name);
    st = check_own(fd, name, S_IFDIR, err);
    if (st)
        return st;
    *ret_fd = sbx_fd_take(&fd);
    return SBX_OK;
}

enum sbx_status sbx_fs_own_read(int dirfd, const char *name, int *ret_fd, struct sbx_error *err)
{
    SBX_FD_AUTO int fd = openat(dirfd, name, O_RDONLY | CAREFULLY);
    enum sbx_status st;

    if (fd < 0 && errno == ENOENT) {
        *ret_fd = -1;
        return SBX_OK;
    }
    if (fd < 0)
        return cannot_open(err, errno, name);
    st = check_own(fd, name, S_IFREG, err);
    if (st)
        return st;
    *ret_fd = sbx_fd_take(&fd);
    return SBX_OK;
}

enum sbx_status sbx_fs_write_all(int fd, const void *bytes, size_t n, struct sbx_error *err)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t w = write(fd, p, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) /* 0 for a count above 0 would be endless */
            return sbx_err_host(err, w < 0 ? errno : EIO, "write", "%zu bytes", n);
        p += w;
        n -= (size_t)w;
    }
    return SBX_OK;
}

enum sbx_status sbx_fs_read_at(int fd, uint64_t offset, void *ret, size_t n, size_t *ret_n,
                               struct sbx_error *err)
{
    char *p = ret;
    size_t done = 0;

    while (done < n) {
        ssize_t r = pread(fd, p + done, n - done, (off_t)(offset + done));

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return sbx_err_host(err, errno, "pread", "%zu bytes", n);
        if (r == 0)
            break;
        done += (size_t)r;
    }
    *ret_n = done;
    return SBX_OK;
}

enum sbx_status sbx_fs_cut(int fd, uint64_t n, struct sbx_error *err)
{
    int rc;

    if (n > INT64_MAX)
        return sbx_err_host(err, EFBIG, "ftruncate", "file");
    do
        rc = ftruncate(fd, (off_t)n);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return sbx_err_host(err, errno, "ftruncate", "file");
    if (lseek(fd, (off_t)n, SEEK_SET) < 0)
        return sbx_err_host(err, errno, "lseek", "file");
    return SBX_OK;
}
