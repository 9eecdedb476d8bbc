#include <sodium.h>

#include "base/error.h"
#include "sbx/sync.h"
#include "sbx/version.h"

enum sbx_status sbx_init(struct sbx_error *err)
{
    if (sodium_init() < 0)
        return sbx_err_set(err, SBX_E_HOST, 0, "libsodium cannot be used here");
    return SBX_OK;
}

const char *sbx_version(void)
{
    return SBX_VERSION;
}
