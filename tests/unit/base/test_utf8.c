#include "base/utf8.h"

#include <string.h>

#include "base/attr.h"
#include "tests/support/rows.h"

/* What the four bytes should decode to, from the encoder's side: of all code points the one whose
 * only encoding they begin with. Returns its length, 0 if there is none. */
static size_t reference(const unsigned char *b, size_t n, uint32_t *ret_cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0}, mask[] = {0, 0, 0xe0, 0xf0, 0xf8};

    if (n > 0 && b[0] < 0x80) {
        *ret_cp = b[0];
        return 1;
    }
    for (size_t len = 2; len <= 4 && len <= n; len++) {
        uint32_t cp = b[0] & (unsigned char)~mask[len];

        if ((b[0] & mask[len]) != mark[len])
            continue;
        for (size_t i = 1; i < len; i++) {
            if ((b[i] & 0xc0) != 0x80)
                return 0;
            cp = cp * 64 + (b[i] & 0x3fu);
        }
        if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
            return 0;
        *ret_cp = cp;
        return len;
    }
    return 0;
}

static void compare(const unsigned char b[4], size_t n)
{
    uint32_t want = 0xffffffff, got = 0xffffffff;
    size_t len = reference(b, n, &want);

    /* A passing case costs nothing but the comparison: there are millions. */
    if (sbx_utf8_decode((const char *)b, n, &got) == len && got == want)
        return;
    fail_msg("%02x %02x %02x %02x, %zu bytes: U+%X instead of U+%X", b[0], b[1], b[2], b[3], n, got,
             want);
}

/* Bytes at which a rule of table 3-7 changes its answer, with their neighbours. */
static const unsigned char edges[] = {0x00, 0x41, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x91, 0x9f,
                                      0xa0, 0xa1, 0xbe, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                      0xed, 0xee, 0xef, 0xf0, 0xf4, 0xf5, 0xf8, 0xfe, 0xff};

static void every_lead_and_second_byte(void **state SBX_UNUSED)
{
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            for (size_t i = 0; i < N_ELEMENTS(edges) * N_ELEMENTS(edges); i++) {
                unsigned char b[4] = {(unsigned char)first, (unsigned char)second,
                                      edges[i / N_ELEMENTS(edges)], edges[i % N_ELEMENTS(edges)]};

                compare(b, 4);
            }
        }
    }
}

static void every_cut(void **state SBX_UNUSED)
{
    for (unsigned first = 0; first < 256; first++) {
        for (size_t i = 0; i < N_ELEMENTS(edges) * N_ELEMENTS(edges); i++) {
            unsigned char b[4] = {(unsigned char)first, edges[i / N_ELEMENTS(edges)],
                                  edges[i % N_ELEMENTS(edges)], 0x80};

            for (size_t n = 0; n <= 4; n++)
                compare(b, n);
        }
    }
}

struct row {
    const char *name;
    const char *bytes;
    size_t n;
    bool valid;
};

#define BYTES(s) s, sizeof(s) - 1
static const struct row rows[] = {
    {"nothing is valid", BYTES(""), true},
    {"ASCII with NUL is valid", BYTES("a\0b"), true},
    {"characters of every length are valid", BYTES("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"), true},
    {"noncharacters are characters here", BYTES("\xef\xbf\xbf\xef\xb7\x90"), true},
    {"the last code point is valid", BYTES("\xf4\x8f\xbf\xbf"), true},
    {"an overlong slash is not", BYTES("a\xc0\xaf"), false},
    {"an overlong slash of three bytes is not", BYTES("\xe0\x80\xaf"), false},
    {"half of a surrogate pair is not", BYTES("x\xed\xa0\x80"), false},
    {"a pair of surrogates is not", BYTES("\xed\xa0\xbd\xed\xb8\x80"), false},
    {"U+110000 is not", BYTES("\xf4\x90\x80\x80"), false},
    {"a cut character at the end is not", BYTES("abc\xe2\x82"), false},
    {"a byte of Latin-1 is not", BYTES("a\xff"), false},
    {"a lone continuation is not", BYTES("\x80"), false},
};

static void validity(void **state)
{
    const struct row *row = *state;

    assert_int_equal(sbx_utf8_valid(row->bytes, row->n), row->valid);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + 2] = {
        cmocka_unit_test(every_lead_and_second_byte),
        cmocka_unit_test(every_cut),
    };
    size_t n = rows_add(tests, 2, ROWS(rows), validity);

    return rows_run("utf8", tests, n);
}
