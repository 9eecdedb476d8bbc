/* Stage 3: what is wanted, in which order, within the budgets. */
#ifndef SYNC_PLAN_H
#define SYNC_PLAN_H

#include "sync/pass.h"

SBX_MUST_CHECK enum sbx_status sbx_sync_plan(struct sbx_pass *p, struct sbx_error *err);

#endif
