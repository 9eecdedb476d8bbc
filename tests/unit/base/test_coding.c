#include "base/coding.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "tests/support/rows.h"

#define REFUSED NULL

struct row {
    const char *name;
    enum sbx_coding coding;
    const char *in;
    const char *out; /* REFUSED: by sbx_decode() or sbx_decode_end() */
    const char *why; /* part of the message of a refusal */
};

static const struct row rows[] = {
    {"base64: nothing is nothing", SBX_CODING_BASE64, "", "", NULL},
    {"base64: a whole quantum", SBX_CODING_BASE64, "Zm9v", "foo", NULL},
    {"base64: one padding character", SBX_CODING_BASE64, "Zm8=", "fo", NULL},
    {"base64: two padding characters", SBX_CODING_BASE64, "Zg==", "f", NULL},
    {"base64: several quanta", SBX_CODING_BASE64, "Zm9vYmFyZm9vYmFy", "foobarfoobar", NULL},
    {"base64: every digit has its value", SBX_CODING_BASE64,
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
     "\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f\x41\x14\x93\x51\x55\x97\x61\x96\x9b\x71\xd7"
     "\x9f\x82\x18\xa3\x92\x59\xa7\xa2\x9a\xab\xb2\xdb\xaf\xc3\x1c\xb3\xd3\x5d\xb7\xe3\x9e\xbb\xf3"
     "\xdf\xbf",
     NULL},
    {"base64: line ends, blanks and tabs anywhere", SBX_CODING_BASE64,
     "\r\n Z\tm9\r\nvYmF \n y\n\n", "foobar", NULL},
    {"base64: line ends within and after padding", SBX_CODING_BASE64, "Zg=\r\n=\r\n \n", "f", NULL},
    {"base64: one missing digit", SBX_CODING_BASE64, "Zm9", REFUSED, "middle"},
    {"base64: a lone digit", SBX_CODING_BASE64, "Zm9vZ", REFUSED, "middle"},
    {"base64: one of two padding characters", SBX_CODING_BASE64, "Zg=", REFUSED, "middle"},
    {"base64: padding without digits", SBX_CODING_BASE64, "=", REFUSED, "none may"},
    {"base64: padding behind a whole quantum", SBX_CODING_BASE64, "Zm9v=", REFUSED, "none may"},
    {"base64: padding behind one digit", SBX_CODING_BASE64, "A===", REFUSED, "none may"},
    {"base64: a third padding character", SBX_CODING_BASE64, "Zg===", REFUSED, "after padding"},
    {"base64: a digit within padding", SBX_CODING_BASE64, "Zg=Z", REFUSED, "incomplete"},
    {"base64: a quantum after padding", SBX_CODING_BASE64, "Zm8=Zm9v", REFUSED, "after padding"},
    {"base64: a quantum on a line after padding", SBX_CODING_BASE64, "Zg==\nZm9v", REFUSED,
     "after padding"},
    {"base64: two left-over bits", SBX_CODING_BASE64, "Zm9=", REFUSED, "left-over"},
    {"base64: four left-over bits", SBX_CODING_BASE64, "Zk==", REFUSED, "left-over"},
    {"base64: the lowest left-over bit", SBX_CODING_BASE64, "Zh==", REFUSED, "left-over"},
    {"base64: a letter of the URL alphabet", SBX_CODING_BASE64, "Zm9-", REFUSED, "0x2d"},
    {"base64: the other letter of it", SBX_CODING_BASE64, "Zm9_", REFUSED, "0x5f"},
    {"base64: a byte of UTF-8 in the first place", SBX_CODING_BASE64, "\xc3m9v", REFUSED, "0xc3"},
    {"base64: an escape in the middle", SBX_CODING_BASE64, "Zm9vZ\033[0m", REFUSED, "0x1b"},
    {"base64: a form feed is no blank", SBX_CODING_BASE64, "Zm9v\f", REFUSED, "0x0c"},
    {"base64: a foreign character after the end", SBX_CODING_BASE64, "Zg==!", REFUSED, "0x21"},
    {"hex: nothing is nothing", SBX_CODING_HEX, "", "", NULL},
    {"hex: pairs in either case", SBX_CODING_HEX, "666F6f", "foo", NULL},
    {"hex: every digit has its value", SBX_CODING_HEX, "0123456789abcdefABCDEF",
     "\x01\x23\x45\x67\x89\xab\xcd\xef\xab\xcd\xef", NULL},
    {"hex: as od prints it", SBX_CODING_HEX, " 66 6f 6f\n 62 61\r\n", "fooba", NULL},
    {"hex: a pair cut by a line end", SBX_CODING_HEX, "6\n6", "f", NULL},
    {"hex: half of a pair", SBX_CODING_HEX, "666", REFUSED, "middle"},
    {"hex: a foreign letter", SBX_CODING_HEX, "6g", REFUSED, "0x67"},
    {"hex: padding", SBX_CODING_HEX, "66=", REFUSED, "0x3d"},
    {"hex: a prefix", SBX_CODING_HEX, "0x66", REFUSED, "0x78"},
};

struct result {
    enum sbx_status status;
    char out[256];
    size_t n;
    struct sbx_error err;
};

/* Decodes in pieces, the lengths of which `cuts` tells: a set bit i cuts behind character i. */
static void decode(enum sbx_coding coding, const char *in, size_t n, uint64_t cuts,
                   struct result *ret)
{
    struct sbx_decoder d = {.coding = coding};
    size_t at = 0;

    *ret = (struct result){0};
    for (size_t i = 0; i < n && !ret->status; i++) {
        size_t got = 0;

        if (i + 1 < n && i < 64 && !(cuts >> i & 1))
            continue;
        ret->status = sbx_decode(&d, in + at, i + 1 - at, ret->out + ret->n, &got, &ret->err);
        ret->n += got;
        at = i + 1;
    }
    if (!ret->status)
        ret->status = sbx_decode_end(&d, &ret->err);
}

/* All 2^(n-1) splits of short texts; of longer ones every single cut, every part length, and some
 * hundred mixed ones. */
static uint64_t split(size_t n, size_t k)
{
    uint64_t every = 0;

    if (n <= 12)
        return k;
    if (k < n)
        return k == 0 ? 0 : 1ull << (k - 1);
    if (k >= 2 * n)
        return k * 0x9e3779b97f4a7c15ull;
    for (size_t i = k - n; i < 64; i += k - n + 1)
        every |= 1ull << i;
    return every;
}

static void check(const struct row *row, const struct result *r)
{
    if (row->out) {
        assert_int_equal(r->status, SBX_OK);
        assert_memory_equal(r->out, row->out, r->n);
        return;
    }
    assert_int_equal(r->status, SBX_E_REMOTE);
    assert_int_equal(r->err.status, SBX_E_REMOTE);
    assert_non_null(strstr(r->err.msg, row->why));
}

static void decodes(void **state)
{
    const struct row *row = *state;
    size_t n = strlen(row->in), splits = n <= 12 ? 1ull << (n ? n - 1 : 0) : 2 * n + 500;
    struct result whole;

    decode(row->coding, row->in, n, 0, &whole);
    check(row, &whole);
    if (row->out && whole.n != strlen(row->out))
        assert_int_equal(whole.n, 48); /* the one row with NUL in it */
    for (size_t k = 0; k < splits; k++) {
        struct result r;

        decode(row->coding, row->in, n, split(n, k), &r);
        check(row, &r);
        if (row->out)
            assert_int_equal(r.n, whole.n);
    }
}

static void a_refusal_leaves_the_count_alone(void **state SBX_UNUSED)
{
    struct sbx_decoder d = {0};
    size_t n = 77;
    char out[16];

    assert_int_equal(sbx_decode(&d, "Zm9v!", 5, out, &n, NULL), SBX_E_REMOTE);
    assert_int_equal(n, 77);
}

/* Whatever was encoded comes back, and what is written stays within the room that is promised. */
static void round_trip(enum sbx_coding coding, size_t n, size_t part)
{
    struct sbx_decoder d = {.coding = coding};
    unsigned char bytes[200];
    char text[SBX_ENCODE_ROOM(200) + 2 * 200], out[200 + 8];
    size_t len, total = 0;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i * 167 + n);
    if (coding == SBX_CODING_HEX)
        sbx_encode_hex(bytes, n, text);
    else
        sbx_encode_base64(bytes, n, text);
    len = strlen(text);
    assert_int_equal(len, coding == SBX_CODING_HEX ? 2 * n : SBX_ENCODE_ROOM(n) - 1);
    for (size_t at = 0; at < len; at += part) {
        size_t chars = part < len - at ? part : len - at, got = 0;
        char *exact = malloc(SBX_DECODE_ROOM(chars)); /* a sanitizer watches its end */
        enum sbx_status st = sbx_decode(&d, text + at, chars, exact, &got, NULL);

        if (!st)
            memcpy(out + total, exact, got);
        free(exact);
        assert_int_equal(st, SBX_OK);
        total += got;
    }
    assert_int_equal(sbx_decode_end(&d, NULL), SBX_OK);
    assert_int_equal(total, n);
    assert_memory_equal(out, bytes, n);
}

static void what_was_encoded_comes_back(void **state SBX_UNUSED)
{
    for (size_t n = 0; n <= 200; n++) {
        for (size_t part = 1; part <= 9; part++) {
            round_trip(SBX_CODING_BASE64, n, part);
            round_trip(SBX_CODING_HEX, n, part);
        }
        round_trip(SBX_CODING_BASE64, n, 1000);
        round_trip(SBX_CODING_HEX, n, 1000);
    }
}

static void every_foreign_byte_is_refused(void **state SBX_UNUSED)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char hex[] = "0123456789abcdefABCDEF";

    for (unsigned c = 0; c < 256; c++) {
        for (size_t place = 0; place < 4; place++) {
            bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
            bool digit64 = c && strchr(base64, (int)c), digit16 = c && strchr(hex, (int)c);
            struct result r;
            char in[5] = "0000";

            in[place] = (char)c;
            decode(SBX_CODING_HEX, in, 4, 0, &r);
            assert_int_equal(r.status, digit16 ? SBX_OK : SBX_E_REMOTE); /* a blank: odd digits */
            if (c == '=')                                                /* its own rules */
                continue;
            memcpy(in, "AAAA", 4);
            in[place] = (char)c;
            decode(SBX_CODING_BASE64, in, 4, 0, &r);
            assert_int_equal(r.status, digit64 ? SBX_OK : SBX_E_REMOTE);
            assert_int_equal(strstr(r.err.msg, "foreign") == NULL, digit64 || blank);
        }
    }
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + 3] = {
        cmocka_unit_test(a_refusal_leaves_the_count_alone),
        cmocka_unit_test(what_was_encoded_comes_back),
        cmocka_unit_test(every_foreign_byte_is_refused),
    };
    size_t n = rows_add(tests, 3, ROWS(rows), decodes);

    return rows_run("coding", tests, n);
}
