#include "fsutil/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"

/* The kernel wakes nobody who waits with a time limit, so a waiting pass asks this often. */
#define ASK_EVERY_MS 50

enum answer { LOCKED, BUSY, CANNOT, BROKEN };

static enum answer try_lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int rc;

    do
        rc = fcntl(fd, F_OFD_SETLK, &whole);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return LOCKED;
    if (errno == EAGAIN || errno == EACCES)
        return BUSY;
    /* ENOLCK: NFS without a lock service; EINVAL: a file system or kernel without this kind. */
    if (errno == ENOLCK || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)
        return CANNOT;
    return BROKEN;
}

enum sbx_status sbx_fs_lock(int fd, uint64_t deadline_ns, int cancel_fd, bool *ret_cannot,
                            struct sbx_error *err)
{
    for (;;) {
        enum answer answer = try_lock(fd);
        struct pollfd cancel = {.fd = cancel_fd, .events = POLLIN};

        if (answer == BROKEN)
            return sbx_err_host(err, errno, "fcntl", "lock");
        if (answer != BUSY) {
            *ret_cannot = answer == CANNOT;
            return SBX_OK;
        }
        if (sbx_clock_now() >= deadline_ns)
            return sbx_err_set(err, SBX_E_BUSY, 0, "another pass holds the destination");
        /* poll(2) leaves a descriptor of -1 out; EINTR and errors only make this round shorter. */
        if (poll(&cancel, 1, sbx_clock_poll_ms(deadline_ns, ASK_EVERY_MS)) > 0 &&
            cancel.revents & (POLLIN | POLLHUP | POLLERR))
            return sbx_err_set(err, SBX_E_CANCELLED, 0, "cancelled while waiting for the lock");
    }
}
