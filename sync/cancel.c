#include "sync/cancel.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "base/fd.h"

struct sbx_cancel {
    int fd; /* owned; an eventfd that nobody reads */
};

enum sbx_status sbx_cancel_new(struct sbx_cancel **ret, struct sbx_error *err)
{
    struct sbx_cancel *c = calloc(1, sizeof(*c));
    enum sbx_status st;

    if (!c)
        return sbx_err_nomem(err);
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0) {
        st = sbx_err_host(err, errno, "eventfd", "for cancellation");
        free(c);
        return st;
    }
    *ret = c;
    return SBX_OK;
}

void sbx_cancel_free(struct sbx_cancel *cancel)
{
    if (!cancel)
        return;
    sbx_fd_close(&cancel->fd);
    free(cancel);
}

void sbx_cancel(struct sbx_cancel *cancel)
{
    const uint64_t one = 1;
    int kept = errno;
    ssize_t n;

    /* The counter can only be full after 2^64 calls, and then the descriptor is readable anyway. */
    n = write(cancel->fd, &one, sizeof(one));
    (void)n;
    errno = kept;
}

int sbx_cancel_fd(const struct sbx_cancel *cancel)
{
    return cancel ? cancel->fd : -1;
}
