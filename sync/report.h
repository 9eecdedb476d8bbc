/* What a pass leaves behind for its caller. */
#ifndef SYNC_REPORT_H
#define SYNC_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "sbx/sync.h"

struct sbx_pass;

struct sbx_report {
    struct sbx_arena text;
    const char *source, *dest; /* in text; UTF-8 */
    int64_t started_s;         /* since 1970 */
    uint64_t elapsed_ns;
    enum sbx_pass_outcome outcome;
    struct sbx_error error;
    enum sbx_listing_state listing;
    uint64_t records, listing_bytes, skipped;
    uint64_t listed;
    uint64_t counts[SBX_OUTCOMES];
    uint64_t reasons[SBX_REASONS];
    bool warned[SBX_WARNINGS];
    bool dry_run;
    uint64_t posix_would_take;
    uint64_t received, published;
    struct sbx_report_file *files; /* owned; what they point to is in text */
    size_t n_files;
    uint64_t omitted;
    size_t with_left; /* bytes of other spellings that may still be named */
};

/* Fills the report from a pass that has ended with `status` (and `why`, if it is not SBX_OK or if
 * the source was lost). Every item has its outcome by then. Where memory runs out fewer files are
 * named. */
void sbx_report_fill(struct sbx_report *report, const struct sbx_pass *p, enum sbx_status status,
                     const struct sbx_error *why);

#endif
