#include "base/hash.h"

#include <string.h>

#include "base/attr.h"
#include "tests/support/rows.h"

/* The key 00 01 … 0f and the messages "", 00, 00 01, … of the SipHash paper's appendix. */
static void siphash_as_published(void **state SBX_UNUSED)
{
    static const uint64_t want[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a};
    const unsigned char message[] = {0, 1, 2};
    struct sbx_hash_key key;

    for (unsigned char i = 0; i < sizeof(key.bytes); i++)
        key.bytes[i] = i;
    for (size_t n = 0; n < N_ELEMENTS(want); n++)
        assert_true(sbx_hash(&key, 0, message, n) == want[n]);
    assert_true(sbx_hash(&key, 0, NULL, 0) == want[0]);
}

static void preparing_twice_is_fine(void **state SBX_UNUSED)
{
    assert_true(sbx_hash_init());
    assert_true(sbx_hash_init());
}

static void key_and_seed_and_bytes_all_count(void **state SBX_UNUSED)
{
    struct sbx_hash_key a, b;
    uint64_t h;

    sbx_hash_key_new(&a);
    sbx_hash_key_new(&b);
    assert_memory_not_equal(&a, &b, sizeof(a));
    h = sbx_hash(&a, 1, "name", 4);
    assert_true(h == sbx_hash(&a, 1, "name", 4));
    assert_true(h != sbx_hash(&b, 1, "name", 4));
    assert_true(h != sbx_hash(&a, 2, "name", 4));
    assert_true(h != sbx_hash(&a, 1, "nama", 4));
    assert_true(h != sbx_hash(&a, 1, "name", 3));
}

struct row {
    const char *name;
    size_t n;
};

static const struct row rows[] = {
    {"no random bytes are an empty text", 0},
    {"a nonce is 32 characters", 16},
    {"more than one round is filled", 100},
};

static void random_hex(void **state)
{
    const struct row *row = *state;
    char a[256], b[256];

    memset(a, '#', sizeof(a));
    sbx_random_hex(a, row->n);
    sbx_random_hex(b, row->n);
    assert_int_equal(strspn(a, "0123456789abcdef"), 2 * row->n);
    assert_int_equal(a[2 * row->n], '\0');
    assert_int_equal(a[2 * row->n + 1], '#');
    if (row->n > 0)
        assert_string_not_equal(a, b);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + 3] = {
        cmocka_unit_test(preparing_twice_is_fine),
        cmocka_unit_test(siphash_as_published),
        cmocka_unit_test(key_and_seed_and_bytes_all_count),
    };
    size_t n = rows_add(tests, 3, ROWS(rows), random_hex);

    return rows_run("hash", tests, n);
}
