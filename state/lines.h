/* Reading a file of the state directory line by line, without loading it. */
#ifndef STATE_LINES_H
#define STATE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

struct sbx_lines {
    int fd;          /* borrowed */
    uint64_t offset; /* in the file, of the next byte to be read */
    uint64_t end;    /* where to stop */
    struct sbx_buf buf;
    size_t at; /* buf[at..] has not been given out */
};

#define SBX_LINES_CHUNK (64 * SBX_KIB)
#define SBX_LINES_INIT                                                                             \
    ((struct sbx_lines){.fd = -1, .buf = {.max = SBX_MAX_MANIFEST_LINE + SBX_LINES_CHUNK}})
#define SBX_LINES_AUTO SBX_CLEANUP(sbx_lines_done)

/* Begins (anew) with the bytes [from, end) of the file. */
void sbx_lines_start(struct sbx_lines *lines, int fd, uint64_t from, uint64_t end);
/* The next line with its newline, valid until the next call; only the last one may lack it. NULL at
 * the end. SBX_E_REMOTE: longer than SBX_MAX_MANIFEST_LINE. */
SBX_MUST_CHECK enum sbx_status sbx_lines_next(struct sbx_lines *lines, const char **ret,
                                              size_t *ret_n, struct sbx_error *err);
void sbx_lines_done(struct sbx_lines *lines); /* may be called twice */

#endif
