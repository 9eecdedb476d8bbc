/* A byte buffer with a mandatory maximum: the only thing besides the arena that grows. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

struct sbx_buf {
    char *data; /* owned; NULL while cap is 0; data[len] is 0 once anything was appended */
    size_t len;
    size_t cap;
    size_t max; /* bytes of len at most; more is SBX_E_LIMIT */
};

#define SBX_BUF_INIT(maximum) ((struct sbx_buf){.max = (maximum)})
#define SBX_BUF_AUTO SBX_CLEANUP(sbx_buf_done)

/* Appends n bytes; on failure (SBX_E_LIMIT, SBX_E_NOMEM) the contents are as before. */
SBX_MUST_CHECK enum sbx_status sbx_buf_add(struct sbx_buf *buf, const void *bytes, size_t n,
                                           struct sbx_error *err);
SBX_MUST_CHECK enum sbx_status sbx_buf_str(struct sbx_buf *buf, const char *text,
                                           struct sbx_error *err);
SBX_MUST_CHECK enum sbx_status sbx_buf_printf(struct sbx_buf *buf, struct sbx_error *err,
                                              const char *fmt, ...) SBX_PRINTF(3, 4);
/* Makes room for n more bytes, so that data[len..len+n) may be written and len raised. */
SBX_MUST_CHECK enum sbx_status sbx_buf_reserve(struct sbx_buf *buf, size_t n,
                                               struct sbx_error *err);
/* Drops the first n bytes, n <= len. */
void sbx_buf_shift(struct sbx_buf *buf, size_t n);
/* Drops the contents, keeps the memory. */
void sbx_buf_clear(struct sbx_buf *buf);
/* Frees the memory; the maximum stays. May be called twice. */
void sbx_buf_done(struct sbx_buf *buf);

/* For arrays of other things than bytes: grows *array (of elements of `size` bytes, *cap of them)
 * until it holds `need`, at most `max`. On failure both are as before. Free it with free(). */
SBX_MUST_CHECK enum sbx_status sbx_array_grow(void **array, size_t *cap, size_t need, size_t max,
                                              size_t size, struct sbx_error *err);

#endif
