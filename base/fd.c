#include "base/fd.h"

#include <errno.h>

void sbx_fd_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved;
}
