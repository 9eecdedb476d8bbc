#include "fsutil/tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/quote.h"
#include "fsutil/durable.h"
#include "fsutil/file.h"
#include "fsutil/walk.h"
#include "preflight/path.h"

void sbx_fs_tmp_name(char ret[SBX_TMP_NAME], const char *token, uint64_t serial)
{
    (void)snprintf(ret, SBX_TMP_NAME, SBX_PRE_OURS ".%.*s.%" PRIu64, SBX_TOKEN_CHARS, token,
                   serial);
}

enum sbx_status sbx_fs_tmp_open_mode(struct sbx_fs_tmp *t, int dirfd, const char *token,
                                     uint64_t serial, mode_t mode, struct sbx_error *err)
{
    char name[SBX_TMP_NAME];
    int fd;

    sbx_fs_tmp_name(name, token, serial);
    fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return sbx_err_host(err, errno, "openat", "temporary file");
    t->dirfd = dirfd;
    t->fd = fd;
    memcpy(t->name, name, sizeof(name));
    return SBX_OK;
}

enum sbx_status sbx_fs_tmp_open(struct sbx_fs_tmp *t, int dirfd, const char *token, uint64_t serial,
                                struct sbx_error *err)
{
    return sbx_fs_tmp_open_mode(t, dirfd, token, serial, 0666, err);
}

enum sbx_status sbx_fs_tmp_write(struct sbx_fs_tmp *t, const void *bytes, size_t n,
                                 struct sbx_error *err)
{
    return sbx_fs_write_all(t->fd, bytes, n, err);
}

enum sbx_status sbx_fs_tmp_restart(struct sbx_fs_tmp *t, struct sbx_error *err)
{
    return sbx_fs_cut(t->fd, 0, err);
}

/* The file system has no such thing, or does not let us: CIFS, exFAT, FUSE. */
static bool is_refusal(int os_errno)
{
    return os_errno == EPERM || os_errno == EOPNOTSUPP || os_errno == EINVAL || os_errno == ENOSYS;
}

static enum sbx_status set_mode(int fd, mode_t mode, bool *ret_no, struct sbx_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return sbx_err_host(err, errno, "fstat", "temporary file");
    if ((st.st_mode & 0777) == (mode & 0777) || fchmod(fd, mode & 0777) == 0)
        return SBX_OK;
    if (!is_refusal(errno))
        return sbx_err_host(err, errno, "fchmod", "temporary file");
    *ret_no = true;
    return SBX_OK;
}

/* What time_t cannot hold is clamped here, what the file system cannot hold by the kernel; where
 * that is a failure instead (FUSE), the content counts and the time does not. */
static enum sbx_status set_mtime(int fd, struct sbx_time mtime, bool *ret_no, struct sbx_error *err)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = (long)mtime.nsec}};

    if (__builtin_add_overflow(mtime.sec, 0, &times[1].tv_sec)) {
        time_t most = (time_t)((UINTMAX_C(1) << (8 * sizeof(time_t) - 1)) - 1);

        times[1].tv_sec = mtime.sec < 0 ? -most - 1 : most;
    }
    if (futimens(fd, times) == 0)
        return SBX_OK;
    if (!is_refusal(errno) && errno != ERANGE && errno != EOVERFLOW)
        return sbx_err_host(err, errno, "futimens", "temporary file");
    *ret_no = true;
    return SBX_OK;
}

enum sbx_status sbx_fs_tmp_finish(struct sbx_fs_tmp *t, const struct sbx_fs_finish *how,
                                  bool *ret_no_times, bool *ret_no_mode, struct sbx_error *err)
{
    bool no_times = false, no_mode = false;
    enum sbx_status st = SBX_OK;
    int fd;

    if (how->has_mode)
        st = set_mode(t->fd, how->mode, &no_mode, err);
    if (!st && how->has_mtime)
        st = set_mtime(t->fd, how->mtime, &no_times, err);
    if (!st && how->sync)
        st = sbx_fs_sync_fd(t->fd, err);
    if (st) {
        sbx_fs_tmp_abort(t);
        return st;
    }
    fd = sbx_fd_take(&t->fd);
    /* Network file systems tell of a full disk here at the earliest. */
    if (close(fd) < 0) {
        st = sbx_err_host(err, errno, "close", "temporary file");
        (void)unlinkat(t->dirfd, t->name, 0);
        return st;
    }
    *ret_no_times = no_times;
    *ret_no_mode = no_mode;
    return SBX_OK;
}

void sbx_fs_tmp_abort(struct sbx_fs_tmp *t)
{
    int saved = errno;

    if (t->fd < 0)
        return;
    sbx_fd_close(&t->fd);
    (void)unlinkat(t->dirfd, t->name, 0);
    errno = saved;
}

/* `call` did not give the file its name. */
static enum sbx_status not_named(const char *call, const char *name, enum sbx_fs_published *ret,
                                 struct sbx_error *err)
{
    if (!sbx_fs_is_name_error(errno))
        return sbx_err_host(err, errno, call, "'%s'", SBX_QUOTE(name));
    *ret = SBX_FS_NAME_REFUSED;
    return SBX_OK;
}

/* The last resort of a file system with neither RENAME_NOREPLACE nor links. What is made between
 * look and rename is overwritten: a residual, which the caller warns about. */
static enum sbx_status publish_plain(int dirfd, const char *tmp, const char *name,
                                     enum sbx_fs_published *ret, struct sbx_error *err)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret = SBX_FS_APPEARED;
        return SBX_OK;
    }
    if (errno != ENOENT)
        return not_named("fstatat", name, ret, err);
    if (renameat(dirfd, tmp, dirfd, name) < 0)
        return not_named("renameat", name, ret, err);
    *ret = SBX_FS_PUBLISHED_PLAIN;
    return SBX_OK;
}

static enum sbx_status publish_by_link(int dirfd, const char *tmp, const char *name,
                                       enum sbx_fs_published *ret, struct sbx_error *err)
{
    int os_errno;

    if (linkat(dirfd, tmp, dirfd, name, 0) < 0) {
        if (errno == EEXIST) {
            *ret = SBX_FS_APPEARED;
            return SBX_OK;
        }
        if (is_refusal(errno) || errno == EMLINK || errno == EACCES)
            return publish_plain(dirfd, tmp, name, ret, err);
        return not_named("linkat", name, ret, err);
    }
    if (unlinkat(dirfd, tmp, 0) < 0) {
        /* Taken back, so that "not published" stays true and the leftover stays on record. */
        os_errno = errno;
        (void)unlinkat(dirfd, name, 0);
        return sbx_err_host(err, os_errno, "unlinkat", "temporary file");
    }
    *ret = SBX_FS_PUBLISHED;
    return SBX_OK;
}

static enum sbx_status publish_new(int dirfd, const char *tmp, const char *name,
                                   enum sbx_fs_published *ret, struct sbx_error *err)
{
    if (renameat2(dirfd, tmp, dirfd, name, RENAME_NOREPLACE) == 0) {
        *ret = SBX_FS_PUBLISHED;
        return SBX_OK;
    }
    if (errno == EEXIST) {
        *ret = SBX_FS_APPEARED;
        return SBX_OK;
    }
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
        return publish_by_link(dirfd, tmp, name, ret, err);
    return not_named("renameat2", name, ret, err);
}

enum sbx_status sbx_fs_publish(int dirfd, const char *tmp, const char *name, bool replace,
                               enum sbx_fs_published *ret, struct stat *ret_st,
                               struct sbx_error *err)
{
    enum sbx_fs_published how = SBX_FS_PUBLISHED;
    enum sbx_status status = SBX_OK;
    struct stat st;

    if (!replace)
        status = publish_new(dirfd, tmp, name, &how, err);
    else if (renameat(dirfd, tmp, dirfd, name) < 0)
        status = not_named("renameat", name, &how, err);
    if (status)
        return status;
    /* The name has its content by now; without facts it is looked at again in the next pass. */
    if (how == SBX_FS_APPEARED || how == SBX_FS_NAME_REFUSED ||
        fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        memset(&st, 0, sizeof(st));
    *ret = how;
    *ret_st = st;
    return SBX_OK;
}

enum sbx_status sbx_fs_remove(int dirfd, const char *name, struct sbx_error *err)
{
    if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
        return sbx_err_host(err, errno, "unlinkat", "'%s'", SBX_QUOTE(name));
    return SBX_OK;
}

void sbx_fs_remove_dir(int dirfd, const char *name)
{
    (void)unlinkat(dirfd, name, AT_REMOVEDIR);
}
