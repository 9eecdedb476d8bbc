/* One pass per destination: open-file-description locks (fcntl(2)), so that a dead process holds
 * nothing. */
#ifndef FSUTIL_LOCK_H
#define FSUTIL_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Locks the open file exclusively until it is closed, waiting until deadline_ns (0: not at all) or
 * until cancel_fd is readable. SBX_E_BUSY, SBX_E_CANCELLED. *ret_cannot (with SBX_OK): the file
 * system has no locks. */
SBX_MUST_CHECK enum sbx_status sbx_fs_lock(int fd, uint64_t deadline_ns, int cancel_fd,
                                           bool *ret_cannot, struct sbx_error *err);

#endif
