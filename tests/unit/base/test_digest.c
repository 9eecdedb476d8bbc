#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/coding.h"
#include "tests/support/rows.h"

struct row {
    const char *name;
    const char *text;
    const char *hex; /* as `b2sum -l 256` prints it */
};

static const struct row rows[] = {
    {"of nothing", "", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {"of abc", "abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
};

static void known_answer(void **state)
{
    const struct row *row = *state;
    unsigned char got[SBX_DIGEST_LEN];
    struct sbx_digest digest;
    char hex[2 * sizeof(got) + 1];

    sbx_digest_init(&digest);
    sbx_digest_add(&digest, row->text, strlen(row->text));
    sbx_digest_final(&digest, got);
    sbx_encode_hex(got, sizeof(got), hex);
    assert_string_equal(hex, row->hex);
}

/* Feeds 1000 bytes in parts, the state at an odd address and moved between the parts. */
static void digest_moving(size_t part, unsigned char ret[SBX_DIGEST_LEN])
{
    struct packed {
        char odd;
        struct sbx_digest digest;
    } here, there;

    sbx_digest_init(&here.digest);
    for (size_t at = 0; at < 1000; at += part) {
        unsigned char bytes[1000];
        size_t n = part < 1000 - at ? part : 1000 - at;

        memset(bytes, (int)(at / 500), sizeof(bytes));
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)((at + i) * 31);
        sbx_digest_add(&here.digest, bytes, n);
        sbx_digest_add(&here.digest, NULL, 0);
        there = here;
        memset(&here, 0xaa, sizeof(here));
        here = there;
    }
    sbx_digest_final(&here.digest, ret);
}

static void parts_and_moves_do_not_matter(void **state SBX_UNUSED)
{
    static const size_t parts[] = {1, 7, 127, 128, 129, 999};
    unsigned char whole[SBX_DIGEST_LEN], got[SBX_DIGEST_LEN];

    digest_moving(1000, whole);
    for (size_t i = 0; i < N_ELEMENTS(parts); i++) {
        digest_moving(parts[i], got);
        assert_memory_equal(got, whole, sizeof(got));
    }
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + 1] = {
        cmocka_unit_test(parts_and_moves_do_not_matter)};
    size_t n = rows_add(tests, 1, ROWS(rows), known_answer);

    return rows_run("digest", tests, n);
}
