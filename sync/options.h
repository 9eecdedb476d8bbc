/* Defaults and bounds of struct sbx_options. */
#ifndef SYNC_OPTIONS_H
#define SYNC_OPTIONS_H

#include "base/error.h"
#include "sbx/sync.h"

/* A copy of `in` in which no zero means "default" any more. SBX_E_USAGE for what makes no sense. */
SBX_MUST_CHECK enum sbx_status sbx_sync_options(const struct sbx_options *in,
                                                struct sbx_options *ret, struct sbx_error *err);

#endif
