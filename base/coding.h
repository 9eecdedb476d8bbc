/* Strict incremental decoders of base64 (RFC 4648, section 4, with padding) and of hex pairs. */
#ifndef BASE_CODING_H
#define BASE_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum sbx_coding { SBX_CODING_BASE64, SBX_CODING_HEX };

/* One encoded stream; zero it and set `coding`. Any split of the input gives the same answer. */
struct sbx_decoder {
    enum sbx_coding coding;
    uint32_t bits;   /* undelivered */
    unsigned digits; /* of the current quantum (base64) or pair (hex) */
    unsigned pad;    /* padding characters seen in the current quantum */
    bool ended;      /* padding was seen and complete: nothing may follow */
};

/* Room that sbx_decode() needs for n characters. */
#define SBX_DECODE_ROOM(n) ((n) / 4 * 3 + 3 + (n) / 2)

/* Decodes in[0..n), where blanks, tabs, CR and LF carry no meaning, into out (SBX_DECODE_ROOM(n)
 * bytes). SBX_E_REMOTE: a foreign character, wrong padding, left-over bits, data after padding. */
SBX_MUST_CHECK enum sbx_status sbx_decode(struct sbx_decoder *d, const char *in, size_t n,
                                          char *out, size_t *ret_n, struct sbx_error *err);
/* SBX_E_REMOTE unless the stream may end here: no incomplete quantum or pair. */
SBX_MUST_CHECK enum sbx_status sbx_decode_end(const struct sbx_decoder *d, struct sbx_error *err);

/* Characters of base64, terminated, for n bytes: out needs SBX_ENCODE_ROOM(n). */
#define SBX_ENCODE_ROOM(n) (((n) + 2) / 3 * 4 + 1)
void sbx_encode_base64(const void *bytes, size_t n, char *out);
/* Lower-case hex, terminated: out needs 2 * n + 1. */
void sbx_encode_hex(const void *bytes, size_t n, char *out);

#endif
