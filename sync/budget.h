/* What a pass may still take on. Pure. */
#ifndef SYNC_BUDGET_H
#define SYNC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "listing/record.h"

/* Zero it and set what is left. */
struct sbx_admission {
    uint64_t files_left;
    uint64_t bytes_left;
    const struct sbx_record *last; /* admitted last: directories it needs are paid for */
};

/* Pays for a record and the directories that must be made for it (`absent` of the components above
 * its name). Pays nothing and returns false if it does not fit. */
bool sbx_admit(struct sbx_admission *a, const struct sbx_record *r, unsigned absent);

#endif
