/* The inside of a cancellation switch. */
#ifndef SYNC_CANCEL_H
#define SYNC_CANCEL_H

#include "sbx/sync.h"

/* Readable once it was pulled, and for good; -1 for NULL. */
int sbx_cancel_fd(const struct sbx_cancel *cancel);

#endif
