/* Finds the lines of a stream that begin with a nonce of ours, wherever the stream is cut. */
#ifndef TRANSPORT_MARKED_H
#define TRANSPORT_MARKED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"

#define SBX_MARKED_NONCE 32 /* characters of a nonce */

/* A marked line is "<nonce> <text>" at the start of a line, ended by LF or CR LF, of SBX_MARKED_MAX
 * bytes at most. It goes to `line` as terminated text; all other bytes go to `bytes` in order. Held
 * back is only what may still become a marked line, so that whatever reads lines behind this sees
 * each as soon as it is whole. A failure of either ends the push and is returned. */
struct sbx_marked {
    const char *nonce; /* borrowed, SBX_MARKED_NONCE characters, none of them CR or LF */
    void *ctx;         /* borrowed */
    enum sbx_status (*bytes)(void *ctx, const char *bytes, size_t n, struct sbx_error *err);
    /* *ret_taken = false: not such a line after all; it is then given to `bytes`. */
    enum sbx_status (*line)(void *ctx, const char *text, bool *ret_taken, struct sbx_error *err);
    bool midline; /* the next byte does not begin a line */
    size_t n;     /* bytes held */
    char held[SBX_MARKED_MAX];
};

SBX_MUST_CHECK enum sbx_status sbx_marked_push(struct sbx_marked *m, const char *bytes, size_t n,
                                               struct sbx_error *err);
/* The stream has ended: passes on what was held back. */
SBX_MUST_CHECK enum sbx_status sbx_marked_end(struct sbx_marked *m, struct sbx_error *err);

#endif
