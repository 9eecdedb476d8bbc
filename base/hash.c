#include "base/hash.h"

#include <sodium.h>
#include <string.h>

#include "base/coding.h"

bool sbx_hash_init(void)
{
    return sodium_init() >= 0;
}

void sbx_hash_key_new(struct sbx_hash_key *ret)
{
    _Static_assert(sizeof(ret->bytes) == crypto_shorthash_KEYBYTES, "key of SipHash");
    randombytes_buf(ret->bytes, sizeof(ret->bytes));
}

/* The seed goes into the key: a copy of the bytes is not needed, and no two seeds share a hash
 * function that a peer could learn about. */
uint64_t sbx_hash(const struct sbx_hash_key *key, uint64_t seed, const void *bytes, size_t n)
{
    unsigned char seeded[crypto_shorthash_KEYBYTES], out[crypto_shorthash_BYTES];
    uint64_t half, hash;

    memcpy(seeded, key->bytes, sizeof(seeded));
    memcpy(&half, seeded, sizeof(half));
    half ^= seed;
    memcpy(seeded, &half, sizeof(half));
    (void)crypto_shorthash(out, n ? bytes : (const void *)"", n, seeded);
    memcpy(&hash, out, sizeof(hash));
    return hash;
}

void sbx_random_hex(char *out, size_t n)
{
    unsigned char bytes[32];

    while (n > 0) {
        size_t part = n < sizeof(bytes) ? n : sizeof(bytes);

        randombytes_buf(bytes, part);
        sbx_encode_hex(bytes, part, out);
        out += 2 * part;
        n -= part;
    }
    *out = '\0';
}
