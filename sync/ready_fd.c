#include "sync/ready_fd.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum sbx_status sbx_ready_fd_new(int *ret, struct sbx_error *err)
{
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return sbx_err_host(err, errno, "eventfd", "for the queue");
    *ret = fd;
    return SBX_OK;
}

void sbx_ready_fd_set(int fd, bool up)
{
    uint64_t value = 1;
    ssize_t n;

    /* Reading resets the counter and fails on one that is 0; neither matters here. */
    n = read(fd, &value, sizeof(value));
    value = 1;
    if (up)
        n = write(fd, &value, sizeof(value));
    (void)n;
}
