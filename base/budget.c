#include "base/budget.h"

#include <inttypes.h>

enum sbx_status sbx_budget_charge(struct sbx_budget *budget, uint64_t n, struct sbx_error *err)
{
    if (n > budget->left)
        return sbx_err_set(err, SBX_E_LIMIT, 0,
                           "limit of %s reached: %" PRIu64 " wanted, %" PRIu64 " left",
                           budget->what ? budget->what : "the pass", n, budget->left);
    budget->left -= n;
    return SBX_OK;
}
