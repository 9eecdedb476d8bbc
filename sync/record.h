/* Stage 7: the manifest. */
#ifndef SYNC_RECORD_H
#define SYNC_RECORD_H

#include "sync/pass.h"

/* Writes what is known by now; may be called several times in a pass. */
SBX_MUST_CHECK enum sbx_status sbx_sync_record(struct sbx_pass *p, struct sbx_error *err);

#endif
