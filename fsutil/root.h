/* Opening the destination: the only place where a path string of the host is resolved. */
#ifndef FSUTIL_ROOT_H
#define FSUTIL_ROOT_H

#include <stdbool.h>

#include "base/error.h"

/* Opens the operator's own path, in which links are allowed; with `make`, its last component is
 * made (0777 & umask) if it is missing. Search permission is enough on what leads there. *ret_fd is
 * -1 (and the result SBX_OK) if it is missing and not to be made. */
SBX_MUST_CHECK enum sbx_status sbx_fs_root_open(const char *dest, bool make, int *ret_fd,
                                                struct sbx_error *err);

/* Opens (O_PATH) the directory that a missing `dest` would be made in. */
SBX_MUST_CHECK enum sbx_status sbx_fs_root_open_above(const char *dest, int *ret_fd,
                                                      struct sbx_error *err);

/* Whether directory `inner` is `outer` or lies below it (by `..` from inner, comparing device and
 * inode). Search permission is enough on what lies above. */
SBX_MUST_CHECK enum sbx_status sbx_fs_within(int inner, int outer, bool *ret,
                                             struct sbx_error *err);

#endif
