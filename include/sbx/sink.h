/* Where a stream of bytes goes. */
#ifndef SBX_SINK_H
#define SBX_SINK_H

#include <stddef.h>

#include "sbx/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes n bytes, all or none. A status other than SBX_OK means "send no more": whoever feeds the
 * sink stops and returns that status unchanged. */
typedef enum sbx_status sbx_write_fn(void *ctx, const void *bytes, size_t n, struct sbx_error *err);

struct sbx_sink {
    sbx_write_fn *write; /* NULL: bytes are dropped */
    void *ctx;           /* borrowed */
};

#ifdef __cplusplus
}
#endif

#endif
