/* Removing what a dead pass has left. */
#ifndef FSUTIL_SWEEP_H
#define FSUTIL_SWEEP_H

#include <stddef.h>

#include "base/error.h"

/* Removes from the directory every regular file ".sbx-sync.<token>.<digits>" and nothing else. Adds
 * to *removed and *failed. SBX_E_HOST only if the directory cannot be read. */
SBX_MUST_CHECK enum sbx_status sbx_fs_sweep(int dirfd, const char *token, size_t *removed,
                                            size_t *failed, struct sbx_error *err);

#endif
