/* From the output of a listing script to the decoded bytes between its begin and end line. Pure and
 * incremental: any split of the input gives the same answer. */
#ifndef LISTING_DECODE_H
#define LISTING_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "listing/frame.h"
#include "sbx/sink.h"

struct sbx_list_decoder;

/* max_bytes: decoded bytes accepted; limits on encoded and raw bytes follow from it. `out` gets the
 * decoded bytes as they come. */
SBX_MUST_CHECK enum sbx_status sbx_list_decoder_new(const char *nonce, uint64_t max_bytes,
                                                    struct sbx_sink out,
                                                    struct sbx_list_decoder **ret,
                                                    struct sbx_error *err);
void sbx_list_decoder_free(struct sbx_list_decoder *d);

/* SBX_E_REMOTE: damaged. SBX_E_LIMIT: more than a limit. Or what `out` returned. After a failure
 * every further call gives the same one. */
SBX_MUST_CHECK enum sbx_status sbx_list_decoder_push(struct sbx_list_decoder *d, const void *bytes,
                                                     size_t n, struct sbx_error *err);
/* The stream has ended. SBX_E_REMOTE unless it was whole: begin line, complete encoded stream, end
 * line with every status accepted, nothing after it. A root that is not SBX_ROOT_OK is whole with
 * the begin line alone. A missing tool (127) is named in the message. */
SBX_MUST_CHECK enum sbx_status sbx_list_decoder_end(struct sbx_list_decoder *d,
                                                    struct sbx_error *err);
/* As far as seen; valid as long as the decoder. */
const struct sbx_list_frame *sbx_list_decoder_frame(const struct sbx_list_decoder *d);

#endif
