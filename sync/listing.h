/* Stage 1 and 2: the listing, and a verdict for every record of it. */
#ifndef SYNC_LISTING_H
#define SYNC_LISTING_H

#include "sync/pass.h"

struct sbx_call sbx_sync_call(const struct sbx_pass *p, uint64_t deadline_ns);
/* Runs a listing or confirm script and reads its output into `list`. */
SBX_MUST_CHECK enum sbx_status sbx_sync_run_script(struct sbx_pass *p, uint64_t deadline_ns,
                                                   const struct sbx_buf *script,
                                                   struct sbx_list *list, struct sbx_error *err);

SBX_MUST_CHECK enum sbx_status sbx_sync_listing(struct sbx_pass *p, struct sbx_error *err);

#endif
