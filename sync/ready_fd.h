/* An eventfd used as a flag that poll(2) can see. */
#ifndef SYNC_READY_FD_H
#define SYNC_READY_FD_H

#include <stdbool.h>

#include "base/error.h"

/* Raised at first. */
SBX_MUST_CHECK enum sbx_status sbx_ready_fd_new(int *ret, struct sbx_error *err);
void sbx_ready_fd_set(int fd, bool up);

#endif
