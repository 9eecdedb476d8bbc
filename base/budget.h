/* What a pass may still spend. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdint.h>

#include "base/error.h"

/* Only counts down. Not thread-safe: belongs to the thread that spends. */
struct sbx_budget {
    uint64_t left;    /* units */
    const char *what; /* names the limit in messages, such as "listing bytes" */
};

/* Pays for n units before they are used. Pays nothing when it fails (SBX_E_LIMIT). */
SBX_MUST_CHECK enum sbx_status sbx_budget_charge(struct sbx_budget *budget, uint64_t n,
                                                 struct sbx_error *err);

#endif
