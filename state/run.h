/* DEST/.sbx-sync/run: where the running pass may have temporaries, so that the next one can remove
 * exactly those if it dies.
 *
 *   sweep -> begin -> note* -> clear -> done     nothing of this pass is left
 *   sweep -> begin -> note* -> done              the next pass sweeps
 *
 * The file holds one part for each pass that has left something: a line with schema and token, then
 * a line for each directory. A sweep that succeeds for all of them removes the file; one that does
 * not leaves it, and begin adds a part to it, so that what could not be removed is tried again. */
#ifndef STATE_RUN_H
#define STATE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "fsutil/tmp.h"

struct sbx_run {
    int fd; /* owned */
    char token[SBX_TOKEN_CHARS + 1];
    uint64_t kept;       /* bytes of earlier passes at the begin of the file */
    uint64_t end;        /* bytes in the file */
    bool noted;          /* `last` is the directory noted last */
    struct sbx_buf last; /* its path */
};

#define SBX_RUN_INIT ((struct sbx_run){.fd = -1, .last = {.max = SBX_MAX_PATH}})

/* Removes what earlier passes have left, as their run record proves (paths pass preflight and the
 * no-follow walk; a torn last line is ignored). *ret_failed counts what could not be removed, and
 * the places that could not be looked at. A damaged record removes nothing and counts as one. */
SBX_MUST_CHECK enum sbx_status sbx_run_sweep(int statedir, int rootfd, size_t *ret_failed,
                                             struct sbx_error *err);

/* Begins the record of this pass with a new random token. Parts that a sweep has left stay. */
SBX_MUST_CHECK enum sbx_status sbx_run_begin(struct sbx_run *run, int statedir,
                                             struct sbx_error *err);
/* Notes a directory, path[0..n) from the root, before a temporary is made in it; does nothing if it
 * is the one noted last. The state directory itself need not be noted. */
SBX_MUST_CHECK enum sbx_status sbx_run_note(struct sbx_run *run, const char *path, size_t n,
                                            struct sbx_error *err);
/* The pass has removed its temporaries: takes its part off the record and closes it. If it has not,
 * do not call this; only sbx_run_done(). */
SBX_MUST_CHECK enum sbx_status sbx_run_clear(struct sbx_run *run, struct sbx_error *err);
void sbx_run_done(struct sbx_run *run); /* closes; may be called twice */

#endif
