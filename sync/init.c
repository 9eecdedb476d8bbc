#include "base/error.h"
#include "base/hash.h"
#include "sbx/sync.h"
#include "sbx/version.h"
#include "transport/http.h"

enum sbx_status sbx_init(struct sbx_error *err)
{
    if (!sbx_hash_init())
        return sbx_err_set(err, SBX_E_HOST, 0, "libsodium cannot be used here");
    return sbx_http_init(err);
}

const char *sbx_version(void)
{
    return SBX_VERSION;
}
