/* Reading the names in a directory that we hold. */
#ifndef FSUTIL_DIR_H
#define FSUTIL_DIR_H

#include <dirent.h>

#include "base/attr.h"
#include "base/error.h"

#define SBX_DIR_AUTO SBX_CLEANUP(sbx_fs_dir_closep)

/* Opens it once more, so that the reading has a position of its own. */
SBX_MUST_CHECK enum sbx_status sbx_fs_dir_open(int dirfd, DIR **ret, struct sbx_error *err);
/* The next name but "." and "..", valid until the next call; NULL at the end. */
SBX_MUST_CHECK enum sbx_status sbx_fs_dir_next(DIR *dir, const char **ret_name,
                                               struct sbx_error *err);
void sbx_fs_dir_closep(DIR **dir); /* may be called twice */

#endif
