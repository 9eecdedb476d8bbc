/* Making things durable. */
#ifndef FSUTIL_DURABLE_H
#define FSUTIL_DURABLE_H

#include <stdbool.h>

#include "base/error.h"

/* fsync of an open file. */
SBX_MUST_CHECK enum sbx_status sbx_fs_sync_fd(int fd, struct sbx_error *err);
/* fsync of a directory; *ret_cannot: the file system has no such thing (EINVAL, …), a warning. */
SBX_MUST_CHECK enum sbx_status sbx_fs_sync_dir(int dirfd, bool *ret_cannot, struct sbx_error *err);
/* fsync of a file by name (opened no-follow, non-blocking, regular only). */
SBX_MUST_CHECK enum sbx_status sbx_fs_sync_file(int dirfd, const char *name, struct sbx_error *err);
/* syncfs of the file system that dirfd is on. */
SBX_MUST_CHECK enum sbx_status sbx_fs_sync_all(int dirfd, struct sbx_error *err);

#endif
