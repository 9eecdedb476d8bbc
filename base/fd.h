/* Owning file descriptors: who owns one is visible in its declaration. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <unistd.h>

#include "base/attr.h"

/* Closes *fd if open and forgets it; keeps errno. No retries: after EINTR Linux has closed it. */
void sbx_fd_close(int *fd);

/* Hands *fd over to the receiver; the owner is left with -1. */
static inline int sbx_fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

#define SBX_FD_AUTO SBX_CLEANUP(sbx_fd_close)

#endif
