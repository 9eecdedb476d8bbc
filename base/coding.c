/* Encoded text of a peer comes in, trusted with nothing and cut anywhere; out come bytes, which are
 * no more trusted, or what is wrong with the encoding. */
#include "base/coding.h"

/* What a character is: DIGIT with its value in the bits below, or one of the others. A table, since
 * a listing of 32 MiB passes through here; DIGIT survives an & of four if all have it. */
#define FOREIGN 0x00
#define BLANK 0x01
#define PAD 0x02
#define DIGIT 0x40

static const unsigned char base64_class[256] = {
    ['\t'] = BLANK,     ['\n'] = BLANK,     ['\r'] = BLANK,     [' '] = BLANK,
    ['='] = PAD,        ['A'] = DIGIT | 0,  ['B'] = DIGIT | 1,  ['C'] = DIGIT | 2,
    ['D'] = DIGIT | 3,  ['E'] = DIGIT | 4,  ['F'] = DIGIT | 5,  ['G'] = DIGIT | 6,
    ['H'] = DIGIT | 7,  ['I'] = DIGIT | 8,  ['J'] = DIGIT | 9,  ['K'] = DIGIT | 10,
    ['L'] = DIGIT | 11, ['M'] = DIGIT | 12, ['N'] = DIGIT | 13, ['O'] = DIGIT | 14,
    ['P'] = DIGIT | 15, ['Q'] = DIGIT | 16, ['R'] = DIGIT | 17, ['S'] = DIGIT | 18,
    ['T'] = DIGIT | 19, ['U'] = DIGIT | 20, ['V'] = DIGIT | 21, ['W'] = DIGIT | 22,
    ['X'] = DIGIT | 23, ['Y'] = DIGIT | 24, ['Z'] = DIGIT | 25, ['a'] = DIGIT | 26,
    ['b'] = DIGIT | 27, ['c'] = DIGIT | 28, ['d'] = DIGIT | 29, ['e'] = DIGIT | 30,
    ['f'] = DIGIT | 31, ['g'] = DIGIT | 32, ['h'] = DIGIT | 33, ['i'] = DIGIT | 34,
    ['j'] = DIGIT | 35, ['k'] = DIGIT | 36, ['l'] = DIGIT | 37, ['m'] = DIGIT | 38,
    ['n'] = DIGIT | 39, ['o'] = DIGIT | 40, ['p'] = DIGIT | 41, ['q'] = DIGIT | 42,
    ['r'] = DIGIT | 43, ['s'] = DIGIT | 44, ['t'] = DIGIT | 45, ['u'] = DIGIT | 46,
    ['v'] = DIGIT | 47, ['w'] = DIGIT | 48, ['x'] = DIGIT | 49, ['y'] = DIGIT | 50,
    ['z'] = DIGIT | 51, ['0'] = DIGIT | 52, ['1'] = DIGIT | 53, ['2'] = DIGIT | 54,
    ['3'] = DIGIT | 55, ['4'] = DIGIT | 56, ['5'] = DIGIT | 57, ['6'] = DIGIT | 58,
    ['7'] = DIGIT | 59, ['8'] = DIGIT | 60, ['9'] = DIGIT | 61, ['+'] = DIGIT | 62,
    ['/'] = DIGIT | 63,
};

static const unsigned char hex_class[256] = {
    ['\t'] = BLANK,     ['\n'] = BLANK,     ['\r'] = BLANK,     [' '] = BLANK,
    ['0'] = DIGIT | 0,  ['1'] = DIGIT | 1,  ['2'] = DIGIT | 2,  ['3'] = DIGIT | 3,
    ['4'] = DIGIT | 4,  ['5'] = DIGIT | 5,  ['6'] = DIGIT | 6,  ['7'] = DIGIT | 7,
    ['8'] = DIGIT | 8,  ['9'] = DIGIT | 9,  ['a'] = DIGIT | 10, ['b'] = DIGIT | 11,
    ['c'] = DIGIT | 12, ['d'] = DIGIT | 13, ['e'] = DIGIT | 14, ['f'] = DIGIT | 15,
    ['A'] = DIGIT | 10, ['B'] = DIGIT | 11, ['C'] = DIGIT | 12, ['D'] = DIGIT | 13,
    ['E'] = DIGIT | 14, ['F'] = DIGIT | 15,
};

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char hex_digits[] = "0123456789abcdef";

static enum sbx_status foreign(char c, const char *what, struct sbx_error *err)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "%s: foreign character 0x%02x", what,
                       (unsigned)(unsigned char)c);
}

/* Decodes whole quanta of four digits from in[0..n) as long as nothing else is among them. Returns
 * the number of characters used. */
static size_t whole_quanta(const char *in, size_t n, char *out)
{
    const unsigned char *t = base64_class, *p = (const unsigned char *)in;
    size_t i;

    for (i = 0; i + 4 <= n; i += 4, p += 4, out += 3) {
        uint32_t a = t[p[0]], b = t[p[1]], c = t[p[2]], d = t[p[3]], v;

        if (!(a & b & c & d & DIGIT))
            break;
        v = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
        out[0] = (char)(v >> 16);
        out[1] = (char)(v >> 8);
        out[2] = (char)v;
    }
    return i;
}

static enum sbx_status base64_pad(struct sbx_decoder *d, char **out, struct sbx_error *err)
{
    if (d->digits < 2)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "base64: padding where none may be");
    if (d->bits & (d->digits == 2 ? 0xfu : 0x3u))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "base64: left-over bits before padding");
    d->pad++;
    if (d->digits + d->pad < 4)
        return SBX_OK;
    if (d->digits == 2) {
        *(*out)++ = (char)(d->bits >> 4);
    } else {
        *(*out)++ = (char)(d->bits >> 10);
        *(*out)++ = (char)(d->bits >> 2);
    }
    d->digits = d->pad = 0;
    d->bits = 0;
    d->ended = true;
    return SBX_OK;
}

static enum sbx_status base64_one(struct sbx_decoder *d, char c, char **out, struct sbx_error *err)
{
    unsigned char class = base64_class[(unsigned char)c];

    if (class == BLANK)
        return SBX_OK;
    if (class == FOREIGN)
        return foreign(c, "base64", err);
    if (d->ended)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "base64: data after padding");
    if (class == PAD)
        return base64_pad(d, out, err);
    if (d->pad > 0)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "base64: incomplete padding");
    d->bits = d->bits << 6 | (class & 63u);
    if (++d->digits < 4)
        return SBX_OK;
    *(*out)++ = (char)(d->bits >> 16);
    *(*out)++ = (char)(d->bits >> 8);
    *(*out)++ = (char)d->bits;
    d->digits = 0;
    d->bits = 0;
    return SBX_OK;
}

static enum sbx_status base64(struct sbx_decoder *d, const char *in, size_t n, char **out,
                              struct sbx_error *err)
{
    size_t i = 0;

    while (i < n) {
        enum sbx_status st;

        if (d->digits == 0 && !d->ended) {
            size_t used = whole_quanta(in + i, n - i, *out);

            *out += used / 4 * 3;
            i += used;
            if (i == n)
                break;
        }
        st = base64_one(d, in[i++], out, err);
        if (st)
            return st;
    }
    return SBX_OK;
}

static enum sbx_status hex(struct sbx_decoder *d, const char *in, size_t n, char **out,
                           struct sbx_error *err)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char class = hex_class[(unsigned char)in[i]];

        if (class == BLANK)
            continue;
        if (class == FOREIGN)
            return foreign(in[i], "hex", err);
        d->bits = d->bits << 4 | (class & 0xfu);
        if (++d->digits == 2) {
            *(*out)++ = (char)d->bits;
            d->digits = 0;
            d->bits = 0;
        }
    }
    return SBX_OK;
}

enum sbx_status sbx_decode(struct sbx_decoder *d, const char *in, size_t n, char *out,
                           size_t *ret_n, struct sbx_error *err)
{
    char *end = out;
    enum sbx_status st =
        d->coding == SBX_CODING_HEX ? hex(d, in, n, &end, err) : base64(d, in, n, &end, err);

    if (st)
        return st;
    *ret_n = (size_t)(end - out);
    return SBX_OK;
}

enum sbx_status sbx_decode_end(const struct sbx_decoder *d, struct sbx_error *err)
{
    if (d->digits == 0)
        return SBX_OK;
    return sbx_err_set(err, SBX_E_REMOTE, 0, "%s: ends in the middle of a byte",
                       d->coding == SBX_CODING_HEX ? "hex" : "base64");
}

void sbx_encode_base64(const void *bytes, size_t n, char *out)
{
    const unsigned char *b = bytes;

    for (; n > 0; b += 3) {
        uint32_t v = (uint32_t)b[0] << 16 | (n > 1 ? (uint32_t)b[1] << 8 : 0) | (n > 2 ? b[2] : 0);

        *out++ = base64_digits[v >> 18];
        *out++ = base64_digits[v >> 12 & 63];
        *out++ = '=';
        *out++ = '=';
        if (n > 1)
            out[-2] = base64_digits[v >> 6 & 63];
        if (n > 2)
            out[-1] = base64_digits[v & 63];
        n -= n < 3 ? n : 3;
    }
    *out = '\0';
}

void sbx_encode_hex(const void *bytes, size_t n, char *out)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i++) {
        *out++ = hex_digits[b[i] >> 4];
        *out++ = hex_digits[b[i] & 0xf];
    }
    *out = '\0';
}
