#include "fsutil/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"

enum sbx_status sbx_fs_dir_open(int dirfd, DIR **ret, struct sbx_error *err)
{
    SBX_FD_AUTO int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir;

    if (fd < 0)
        return sbx_err_host(err, errno, "openat", "directory to be read");
    dir = fdopendir(fd);
    if (!dir)
        return sbx_err_host(err, errno, "fdopendir", "directory to be read");
    (void)sbx_fd_take(&fd); /* dir has it now */
    *ret = dir;
    return SBX_OK;
}

enum sbx_status sbx_fs_dir_next(DIR *dir, const char **ret_name, struct sbx_error *err)
{
    struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(dir);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    if (!entry && errno)
        return sbx_err_host(err, errno, "readdir", "directory");
    *ret_name = entry ? entry->d_name : NULL;
    return SBX_OK;
}

void sbx_fs_dir_closep(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
    *dir = NULL;
}
