/* DEST/.sbx-sync/: the lock, and the directory that manifest and run record are kept in.
 *
 *   open -> (manifest, run) -> close
 */
#ifndef STATE_STATE_H
#define STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "preflight/path.h"

#define SBX_STATE_DIR SBX_PRE_OURS

struct sbx_state {
    int dirfd;    /* owned; -1: read-only and there is none */
    int lockfd;   /* owned; -1: not locked */
    bool no_lock; /* the file system cannot lock: nothing may be swept */
};

#define SBX_STATE_INIT ((struct sbx_state){.dirfd = -1, .lockfd = -1})

/* Opens, makes if needed, checks and locks. SBX_E_BUSY, SBX_E_CANCELLED, SBX_E_HOST. */
SBX_MUST_CHECK enum sbx_status sbx_state_open(struct sbx_state *state, int rootfd,
                                              uint64_t wait_until_ns, int cancel_fd,
                                              struct sbx_error *err);
/* For a dry run: opens what is there, makes nothing, locks nothing. */
SBX_MUST_CHECK enum sbx_status sbx_state_peek(struct sbx_state *state, int rootfd,
                                              struct sbx_error *err);
void sbx_state_close(struct sbx_state *state); /* may be called twice */

#endif
