/* Makes the output of a listing script by hand, so that each part of it can be wrong. */
#ifndef TESTS_UNIT_LISTING_STREAM_H
#define TESTS_UNIT_LISTING_STREAM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/coding.h"

#define NONCE "00112233445566778899aabbccddeeff"
#define OTHER "ffeeddccbbaa99887766554433221100"
#define BYTES(s) (s), sizeof(s) - 1

/* A stream to build; what is zero has a sensible value. */
struct stream {
    const char *before; /* noise */
    const char *begin;  /* after "<nonce> begin "; NULL: made from tools */
    const char *tools;  /* NULL: "printf,gzip,base64" */
    const char *payload;
    size_t n_payload;
    const char *extra; /* encoded with it, but not packed */
    size_t n_extra;
    const char *eol;    /* NULL: LF */
    const char *sep;    /* between encoded lines; NULL: as eol */
    size_t width;       /* characters of a line; 0: 16384 */
    const char *middle; /* a line after the first encoded one */
    size_t cut;         /* encoded characters that are missing at their end */
    const char *end;    /* after "<nonce> end "; NULL: made from tools; "-": no such line */
    const char *after;
};

static inline void must(enum sbx_status st)
{
    if (st)
        abort();
}

static inline void add(struct sbx_buf *out, const char *text)
{
    must(sbx_buf_str(out, text, NULL));
}

static inline void stream_pack(struct sbx_buf *out, const char *bytes, size_t n)
{
    z_stream z = {0};
    int rc;

    if (deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    must(sbx_buf_reserve(out, deflateBound(&z, n) + 32, NULL));
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)n;
    z.next_out = (unsigned char *)out->data + out->len;
    z.avail_out = (unsigned)(out->cap - out->len);
    rc = deflate(&z, Z_FINISH);
    if (rc != Z_STREAM_END)
        abort();
    out->len += z.total_out;
    (void)deflateEnd(&z);
}

/* The encoded lines of bytes[0..n). */
static inline void stream_encode(const struct stream *s, bool hex, const char *bytes, size_t n,
                                 struct sbx_buf *out)
{
    SBX_BUF_AUTO struct sbx_buf text = SBX_BUF_INIT(SIZE_MAX);
    const char *eol = s->eol ? s->eol : "\n", *sep = s->sep ? s->sep : eol;
    size_t width = s->width ? s->width : 16384, at = 0, len = hex ? 2 * n : (n + 2) / 3 * 4;

    must(sbx_buf_reserve(&text, len + 1, NULL));
    if (hex)
        sbx_encode_hex(bytes, n, text.data);
    else
        sbx_encode_base64(bytes, n, text.data);
    for (len -= s->cut; at < len; at += width) {
        must(sbx_buf_add(out, text.data + at, len - at < width ? len - at : width, NULL));
        add(out, len - at > width ? sep : eol);
        if (at == 0 && s->middle) {
            add(out, s->middle);
            add(out, eol);
        }
    }
}

static inline void stream_make(const struct stream *s, struct sbx_buf *out)
{
    SBX_BUF_AUTO struct sbx_buf bytes = SBX_BUF_INIT(SIZE_MAX);
    const char *tools = s->tools ? s->tools : "printf,gzip,base64", *eol = s->eol ? s->eol : "\n";

    add(out, s->before ? s->before : "");
    add(out, eol);
    add(out, NONCE " begin ");
    if (s->begin)
        add(out, s->begin);
    else
        must(sbx_buf_printf(out, NULL, "v=1 root=ok now=1000 tools=%s", tools));
    add(out, eol);
    if (strstr(tools, "gzip"))
        stream_pack(&bytes, s->payload, s->n_payload);
    else
        must(sbx_buf_add(&bytes, s->payload, s->n_payload, NULL));
    must(sbx_buf_add(&bytes, s->extra, s->n_extra, NULL));
    stream_encode(s, strstr(tools, "hex") != NULL, bytes.data, bytes.len, out);
    if (!s->end || strcmp(s->end, "-") != 0) {
        add(out, NONCE " end ");
        if (s->end)
            add(out, s->end);
        else
            add(out, strncmp(tools, "stat", 4) == 0 ? "walk=0 find=0 cap=0 pack=0 encode=0"
                                                    : "find=0 cap=0 pack=0 encode=0");
        add(out, eol);
    }
    add(out, s->after ? s->after : "");
}

#endif
