/* Stage 5: whether a remote file is still what was listed. */
#ifndef SYNC_CONFIRM_H
#define SYNC_CONFIRM_H

#include <stddef.h>
#include <stdint.h>

#include "sync/pass.h"

enum sbx_confirmed {
    SBX_CONFIRM_SAME,
    SBX_CONFIRM_CTIME, /* only its ctime moved: equal contents would still do */
    SBX_CONFIRM_CHANGED,
    SBX_CONFIRM_GONE, /* no regular file any more */
};

/* Compares a listed record with the one that was taken after the last byte (raw, without NUL;
 * empty: no regular file any more). Pure. */
enum sbx_confirmed sbx_confirm_record(const struct sbx_record *listed, const char *bytes, size_t n,
                                      bool ignore_ctime);

/* The same for a record that was parsed. */
enum sbx_confirmed sbx_confirm_compare(const struct sbx_record *listed,
                                       const struct sbx_record *now, bool ignore_ctime);

/* Told of each record that a confirming command printed; `i` is its index in the pass. */
typedef void sbx_confirm_fn(void *ctx, size_t i, const struct sbx_record *now);

/* Asks for the present records of items[0..n) (indices of records) with the listing's own tools, as
 * many commands as that takes. Items that are no regular files any more are not told. */
SBX_MUST_CHECK enum sbx_status sbx_confirm_ask(struct sbx_pass *p, const uint32_t *items, size_t n,
                                               sbx_confirm_fn *tell, void *ctx,
                                               struct sbx_error *err);

#endif
