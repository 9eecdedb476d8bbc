/* A child process that is a POSIX shell and gets scripts on its standard input, one after another.
 *
 *   init -> run* -> end        nothing is left running
 *
 * After each script it is told to print a line of our own, "<nonce> exit <status>", which is hidden
 * from `out`; if the child ends without that line the status is unknown. */
#ifndef TRANSPORT_SHELL_H
#define TRANSPORT_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "sbx/transport.h"

struct sbx_shell {
    const char *const *argv; /* borrowed, NULL-terminated; argv[0] is looked up in PATH */
    unsigned starts_left;    /* how often the child may still be started */
    pid_t pid;               /* owned; 0: not running */
    bool group;              /* it leads a process group of its own, which is ended as a whole */
    int in, out, diag;       /* owned, non-blocking; -1: closed */
};

#define SBX_SHELL_INIT ((struct sbx_shell){.in = -1, .out = -1, .diag = -1})

/* Starts the child if it is not running (SBX_E_UNREACHABLE if it cannot be, or has been often
 * enough), feeds it one script and streams until its exit line. SBX_E_UNREACHABLE: the child ended
 * or closed its output before that line (the message has its status). SBX_E_DEADLINE,
 * SBX_E_CANCELLED, and a failure of `out`: the child was ended, since the rest of its output is
 * unwanted. idle_ns: 0, or the time without a byte after which the child is ended and SBX_E_LIMIT
 * is returned. */
SBX_MUST_CHECK enum sbx_status sbx_shell_run(struct sbx_shell *shell, const struct sbx_call *call,
                                             const char *script, size_t script_len,
                                             uint64_t idle_ns, struct sbx_sink out,
                                             struct sbx_sink diag, struct sbx_exit *ret_exit,
                                             struct sbx_error *err);

/* Ends the child (SIGTERM, then SIGKILL) and reaps it. May be called twice. */
void sbx_shell_end(struct sbx_shell *shell);

#endif
