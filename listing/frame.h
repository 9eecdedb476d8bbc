/* The begin and the end line of a listing script's output. Pure. */
#ifndef LISTING_FRAME_H
#define LISTING_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum sbx_list_root {
    SBX_ROOT_UNKNOWN = 0,
    SBX_ROOT_OK,
    SBX_ROOT_MISSING,
    SBX_ROOT_NOTDIR,
    SBX_ROOT_DENIED
};

/* What the begin line and the end line said. */
struct sbx_list_frame {
    enum sbx_list_root root; /* UNKNOWN until the begin line was seen */
    int64_t now;             /* the remote clock, seconds since 1970 */
    char tools[32];          /* such as "printf,gzip,base64" */
    bool by_stat;            /* tools start with "stat" */
    bool packed;             /* with gzip */
    bool hex;                /* else base64 */
    int find;                /* exit status of find, or of xargs if by_stat */
    int walk;                /* of find if by_stat, else 0 */
    uint64_t skipped;        /* links and special files, where the script counted them */
};

/* text[0..n) is what follows "<nonce> begin". SBX_E_REMOTE, and the frame untouched: not each of v,
 * root, now and tools once, another version, or a value that no script prints. */
SBX_MUST_CHECK enum sbx_status sbx_list_frame_begin(struct sbx_list_frame *frame, const char *text,
                                                    size_t n, struct sbx_error *err);

/* The same for "<nonce> end": each status once, and accepted. A missing tool (127) is named. */
SBX_MUST_CHECK enum sbx_status sbx_list_frame_end(struct sbx_list_frame *frame, const char *text,
                                                  size_t n, struct sbx_error *err);

#endif
