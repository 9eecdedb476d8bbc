/* Brings files as one stream of text through a transport's own `run`: for names that cannot go by
 * the way that other files go. See exec_script.h for the stream. */
#ifndef TRANSPORT_STREAM_FETCH_H
#define TRANSPORT_STREAM_FETCH_H

#include <stddef.h>

#include "sbx/transport.h"

/* A way to run a script; as `run` of struct sbx_transport_ops. */
typedef enum sbx_status sbx_stream_run_fn(void *ctx, const struct sbx_call *call,
                                          const char *script, size_t script_len,
                                          struct sbx_sink out, struct sbx_sink diag,
                                          struct sbx_exit *ret_exit, struct sbx_error *err);

/* Brings files[0..n), n at most SBX_STREAM_FILES, all of them taken from the queue, and ends each
 * of them, whatever is returned. Fails as `fetch` of struct sbx_transport_ops. */
SBX_MUST_CHECK enum sbx_status sbx_stream_fetch(sbx_stream_run_fn *run, void *ctx,
                                                const struct sbx_call *call,
                                                const struct sbx_queue *queue,
                                                const struct sbx_wanted *const files[], size_t n,
                                                struct sbx_sink diag, struct sbx_error *err);

#endif
