/* DEST/.sbx-sync/run: where the running pass may have temporaries, so that the next one can remove
 * exactly those if it dies. */
#ifndef STATE_RUN_H
#define STATE_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "fsutil/tmp.h"

struct sbx_run {
    int fd; /* owned */
    char token[SBX_TOKEN_CHARS + 1];
    char *last; /* owned: the directory noted last */
};

#define SBX_RUN_INIT ((struct sbx_run){.fd = -1})

/* Removes what the previous pass has left, as its run record proves (paths pass preflight and the
 * no-follow walk; a torn last line is ignored). *ret_failed counts what could not be removed. A
 * damaged record removes nothing. */
SBX_MUST_CHECK enum sbx_status sbx_run_sweep(int statedir, int rootfd, size_t *ret_removed,
                                             size_t *ret_failed, struct sbx_error *err);

/* Begins the record of this pass with a new random token. */
SBX_MUST_CHECK enum sbx_status sbx_run_begin(struct sbx_run *run, int statedir,
                                             struct sbx_error *err);
/* Notes a directory, path[0..n) from the root, before a temporary is made in it. */
SBX_MUST_CHECK enum sbx_status sbx_run_note(struct sbx_run *run, const char *path, size_t n,
                                            struct sbx_error *err);
/* The pass has removed its temporaries: empties the record. If it has not, do not call this; only
 * sbx_run_done(). */
SBX_MUST_CHECK enum sbx_status sbx_run_clear(struct sbx_run *run, struct sbx_error *err);
void sbx_run_done(struct sbx_run *run); /* closes; may be called twice */

#endif
