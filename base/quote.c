/* Any bytes come in, trusted with nothing; out comes text that a terminal, a log and a shell take
 * as text. */
#include "base/quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* Characters that act instead of showing: controls, and those that hide, join or reorder. */
static bool acts(uint32_t cp)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200b, 0x200f},
        {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
    };

    for (size_t i = 0; i < N_ELEMENTS(ranges); i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last)
            return true;
    return false;
}

/* A text under construction in out[0..cap). */
struct text {
    char *out;
    size_t cap;
    size_t len;
    size_t mark; /* the longest length so far behind which "..." fits */
};

/* Adds a piece, which is kept whole or left out. False if it does not fit. */
static bool add(struct text *t, const char *piece, size_t n)
{
    if (n >= t->cap - t->len)
        return false;
    memcpy(t->out + t->len, piece, n);
    t->len += n;
    if (t->len + 4 <= t->cap)
        t->mark = t->len;
    return true;
}

static bool add_escape(struct text *t, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    char piece[4] = {'\\', 'x', hex[byte >> 4], hex[byte & 0xf]};

    return add(t, piece, sizeof(piece));
}

/* Adds the character at bytes[0..n), n > 0, and tells its length. */
static bool add_next(struct text *t, const char *bytes, size_t n, bool ascii, size_t *ret_len)
{
    uint32_t cp = 0;
    size_t len = sbx_utf8_decode(bytes, n, &cp);
    bool plain = len > 0 && !acts(cp) && !(ascii && cp > 0x7f);

    *ret_len = len > 0 ? len : 1;
    if (cp == '\\')
        return add(t, "\\\\", 2);
    if (plain)
        return add(t, bytes, len);
    for (size_t i = 0; i < *ret_len; i++)
        if (!add_escape(t, (unsigned char)bytes[i]))
            return false;
    return true;
}

static const char *quote(char *out, size_t cap, const char *bytes, size_t n, bool ascii)
{
    struct text t = {.out = out, .cap = cap};
    size_t len;

    if (cap == 0)
        return "";
    for (size_t i = 0; i < n; i += len) {
        if (add_next(&t, bytes + i, n - i, ascii, &len))
            continue;
        if (cap >= 4) {
            memcpy(out + t.mark, "...", 3);
            t.len = t.mark + 3;
        }
        break;
    }
    out[t.len] = '\0';
    return out;
}

const char *sbx_quote(char *out, size_t cap, const char *bytes, size_t n)
{
    return quote(out, cap, bytes, n, false);
}

const char *sbx_quote_ascii(char *out, size_t cap, const char *bytes, size_t n)
{
    return quote(out, cap, bytes, n, true);
}

/* Between single quotes everything but the quote itself means itself in every POSIX shell. */
static enum sbx_status quote_sh(struct sbx_buf *out, const char *bytes, size_t n,
                                struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_add(out, "'", 1, err);

    while (!st && n > 0) {
        const char *stop = memchr(bytes, '\'', n);
        size_t part = stop ? (size_t)(stop - bytes) : n;

        st = sbx_buf_add(out, bytes, part, err);
        if (!st && stop)
            st = sbx_buf_str(out, "'\\''", err);
        bytes += part + (stop != NULL);
        n -= part + (stop != NULL);
    }
    return st ? st : sbx_buf_add(out, "'", 1, err);
}

enum sbx_status sbx_quote_sh(struct sbx_buf *out, const char *bytes, size_t n,
                             struct sbx_error *err)
{
    size_t len = out->len;
    enum sbx_status st;

    if (n > 0 && memchr(bytes, '\0', n))
        return sbx_err_set(err, SBX_E_USAGE, 0, "NUL in a word of a shell");
    st = quote_sh(out, bytes, n, err);
    if (st && out->data) {
        out->len = len;
        out->data[len] = '\0';
    }
    return st;
}

/* A '%' does not stand for itself in a format. */
static bool is_plain(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-';
}

size_t sbx_quote_octal_len(const char *bytes, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += is_plain(bytes[i]) ? 1 : SBX_QUOTE_OCTAL_MOST;
    return len;
}

/* Octal escapes are all that every printf agrees on; three digits each, so that a digit that
 * follows is not taken in. */
enum sbx_status sbx_quote_octal(struct sbx_buf *out, const char *bytes, size_t n,
                                struct sbx_error *err)
{
    enum sbx_status st = n > SIZE_MAX / SBX_QUOTE_OCTAL_MOST
                             ? sbx_err_set(err, SBX_E_LIMIT, 0, "a name is too long")
                             : sbx_buf_reserve(out, sbx_quote_octal_len(bytes, n), err);
    char *to;

    if (st)
        return st;
    to = out->data + out->len;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (is_plain(bytes[i])) {
            *to++ = bytes[i];
            continue;
        }
        *to++ = '\\';
        *to++ = (char)('0' + (c >> 6));
        *to++ = (char)('0' + (c >> 3 & 7));
        *to++ = (char)('0' + (c & 7));
    }
    *to = '\0';
    out->len = (size_t)(to - out->data);
    return SBX_OK;
}
