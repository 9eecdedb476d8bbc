/* A child process on three pipes. Only processes started here are ever signalled or waited for. */
#ifndef TRANSPORT_CHILD_H
#define TRANSPORT_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct sbx_child {
    pid_t pid;         /* owned; 0: not running */
    bool group;        /* it leads a session of its own, which is ended as a whole */
    int in, out, diag; /* owned, non-blocking; -1: closed */
};

#define SBX_CHILD_INIT ((struct sbx_child){.in = -1, .out = -1, .diag = -1})

/* How a child ended. */
enum sbx_child_end { SBX_CHILD_UNKNOWN = 0, SBX_CHILD_EXITED, SBX_CHILD_SIGNALLED };

struct sbx_child_status {
    enum sbx_child_end how;
    int code; /* exit status or signal */
};

/* Starts argv (NULL-terminated; argv[0] is looked up in PATH) with default signals, an empty mask
 * and the environment as it is. SBX_E_UNREACHABLE: it cannot be started; SBX_E_HOST: no pipes. */
SBX_MUST_CHECK enum sbx_status sbx_child_start(struct sbx_child *child, const char *const argv[],
                                               struct sbx_error *err);

/* Whether the process has ended by itself; it is not reaped yet. *ret may be NULL. */
bool sbx_child_ended(const struct sbx_child *child, struct sbx_child_status *ret);

/* Ends the child and reaps it: SIGTERM, a grace time, SIGKILL. `gently`: first only closes its
 * standard input, which ends a shell that has nothing to do. May be called twice. */
void sbx_child_end(struct sbx_child *child, bool gently);

/* Like write(2), without the SIGPIPE that a pipe nobody reads would cost. */
ssize_t sbx_child_write(int fd, const void *bytes, size_t n);

#endif
