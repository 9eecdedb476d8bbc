/* Temporaries get their names. */
#ifndef SYNC_PUBLISH_H
#define SYNC_PUBLISH_H

#include "base/error.h"
#include "sync/batch.h"

struct sbx_transfer;

/* Confirms what has not been, publishes, syncs, decides every file of the batch. */
SBX_MUST_CHECK enum sbx_status sbx_publish_batch(struct sbx_transfer *t, struct sbx_batch *batch,
                                                 struct sbx_error *err);
/* Removes directories that were made in this pass and are empty. */
void sbx_publish_tidy(struct sbx_transfer *t);

#endif
