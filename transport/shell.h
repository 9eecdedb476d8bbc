/* A child process that is a POSIX shell and gets scripts on its standard input, one after another.
 *
 *   init -> run* -> end        nothing is left running
 *
 * Before each script it is told to print a line of our own, "<nonce> start", which proves that it
 * runs what it is sent, and after it "<nonce> exit <status>". Both are hidden from `out`; if the
 * child ends without the second the status is unknown. The newline that begins it is not hidden:
 * `out` gets one more than the script printed. */
#ifndef TRANSPORT_SHELL_H
#define TRANSPORT_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "sbx/transport.h"
#include "transport/child.h"

#define SBX_SHELL_CHUNK 65536 /* bytes read at once: what a pipe holds */

struct sbx_shell {
    const char *const *argv; /* borrowed, NULL-terminated; argv[0] is looked up in PATH */
    const char *hint;        /* ends the message if no script was ever answered; NULL: none */
    unsigned starts_left;    /* how often the child may still be started */
    bool answered;           /* a script was run to its end */
    struct sbx_child child;
    struct sbx_buf chunk; /* owned; what is read at once */
};

#define SBX_SHELL_INIT                                                                             \
    ((struct sbx_shell){.child = SBX_CHILD_INIT, .chunk = SBX_BUF_INIT(SBX_SHELL_CHUNK)})

/* Starts the child if it is not running (SBX_E_UNREACHABLE if it cannot be, or has been often
 * enough), feeds it one script and streams until its exit line. SBX_E_UNREACHABLE: the child ended
 * or closed its output before that line (the message has its status and its last line of standard
 * error), or what comes is an echo of what was sent, or within call->idle_ns the child has not
 * answered a first line of our own. That limit is not set with a controlling terminal, where ssh
 * may be asking somebody for a passphrase. SBX_E_DEADLINE, SBX_E_CANCELLED, and a failure of `out`:
 * the child was ended, since the rest of its output is unwanted. idle_ns: 0, or the time without a
 * byte after which the child is ended and SBX_E_LIMIT is returned; the time that `out` takes for
 * itself does not count. */
SBX_MUST_CHECK enum sbx_status sbx_shell_run(struct sbx_shell *shell, const struct sbx_call *call,
                                             const char *script, size_t script_len,
                                             uint64_t idle_ns, struct sbx_sink out,
                                             struct sbx_sink diag, struct sbx_exit *ret_exit,
                                             struct sbx_error *err);

/* Ends the child at once, reaps it, frees. May be called twice. `shell` can be run again. */
void sbx_shell_end(struct sbx_shell *shell);

#endif
