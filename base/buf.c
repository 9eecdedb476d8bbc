#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 64u

enum sbx_status sbx_buf_reserve(struct sbx_buf *buf, size_t n, struct sbx_error *err)
{
    size_t max = buf->max < SIZE_MAX ? buf->max : SIZE_MAX - 1, need, cap;
    char *data;

    if (buf->len > max || n > max - buf->len)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "limit of %zu bytes reached", buf->max);
    need = buf->len + n + 1;
    if (need <= buf->cap)
        return SBX_OK;
    cap = buf->cap <= max / 2 ? buf->cap * 2 : max + 1;
    if (cap < CAP_FIRST)
        cap = CAP_FIRST;
    if (cap < need)
        cap = need;
    data = realloc(buf->data, cap);
    if (!data)
        return sbx_err_nomem(err);
    data[buf->len] = '\0';
    buf->data = data;
    buf->cap = cap;
    return SBX_OK;
}

enum sbx_status sbx_buf_add(struct sbx_buf *buf, const void *bytes, size_t n, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_reserve(buf, n, err);

    if (st)
        return st;
    if (n > 0)
        memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
    return SBX_OK;
}

enum sbx_status sbx_buf_str(struct sbx_buf *buf, const char *text, struct sbx_error *err)
{
    return sbx_buf_add(buf, text, strlen(text), err);
}

enum sbx_status sbx_buf_printf(struct sbx_buf *buf, struct sbx_error *err, const char *fmt, ...)
{
    enum sbx_status st;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return sbx_err_set(err, SBX_E_USAGE, 0, "text cannot be formatted");
    st = sbx_buf_reserve(buf, (size_t)n, err);
    if (st)
        return st;
    va_start(args, fmt);
    (void)vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)n;
    return SBX_OK;
}

void sbx_buf_shift(struct sbx_buf *buf, size_t n)
{
    if (n == 0)
        return;
    buf->len -= n;
    memmove(buf->data, buf->data + n, buf->len);
    buf->data[buf->len] = '\0';
}

void sbx_buf_clear(struct sbx_buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void sbx_buf_done(struct sbx_buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = 0;
}

enum sbx_status sbx_array_grow(void **array, size_t *cap, size_t need, size_t max, size_t size,
                               struct sbx_error *err)
{
    size_t want, bytes;
    void *grown;

    if (need <= *cap)
        return SBX_OK;
    if (need > max)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "limit of %zu elements reached", max);
    want = *cap <= max / 2 ? *cap * 2 : max;
    if (want < 16)
        want = max < 16 ? max : 16;
    if (want < need)
        want = need;
    if (__builtin_mul_overflow(want, size, &bytes))
        return sbx_err_nomem(err);
    grown = realloc(*array, bytes);
    if (!grown)
        return sbx_err_nomem(err);
    *array = grown;
    *cap = want;
    return SBX_OK;
}
