/* Brings the files of a queue by GET, several at once: what all HTTP transports do alike.
 *
 * Each file is asked for as the range of its listed bytes, large ones block by block, so that an
 * honest server never sends what nobody wants. A file is complete if the answers are by their own
 * framing, all of them tell the listed total, and the bytes are as many. */
#ifndef TRANSPORT_HTTP_FETCH_H
#define TRANSPORT_HTTP_FETCH_H

#include "sbx/transport.h"
#include "transport/http.h"

struct sbx_http_fetch {
    struct sbx_http *http;             /* borrowed */
    const struct sbx_secrets *secrets; /* borrowed; kept out of messages; may be NULL */
    void *ctx;
    /* Appends the target of the request for a file (see struct sbx_http_request). */
    enum sbx_status (*target)(void *ctx, const struct sbx_wanted *file, struct sbx_buf *out,
                              struct sbx_error *err);
};

/* As `fetch` of struct sbx_transport_ops, whose contract it has. All files are ended with a NULL
 * record. Every byte goes to the queue, also those of a file that was refused meanwhile, so that
 * they are paid for. Status by status:
 *
 *   206 with the range asked for and the listed total; 200 with the whole for the first request
 *   404 410 vanished; 403 denied; 401 unauthorised, and the end of the fetch; 416 and another total
 *   or size changed; 3xx, another range, 200 for a later block protocol; all else server
 *
 * What may pass (no connection, 429, 502, 503, 504) is tried once more on a fresh connection, after
 * Retry-After if that is at most 2 s. Three files in a row without a head, with a reset, or with
 * 502, 503, 504: SBX_E_UNREACHABLE. */
SBX_MUST_CHECK enum sbx_status sbx_http_fetch(const struct sbx_http_fetch *fetch,
                                              const struct sbx_call *call,
                                              const struct sbx_queue *queue, struct sbx_error *err);

#endif
