/* Keyed hashing for tables whose keys a peer chooses, and random names. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key that no peer can know: one per table, from sbx_hash_key_new(). */
struct sbx_hash_key {
    unsigned char bytes[16];
};

/* Prepares libsodium for threads; false if it cannot be used here. Calling it again is fine. */
bool sbx_hash_init(void);

void sbx_hash_key_new(struct sbx_hash_key *ret);

/* SipHash-2-4 (libsodium's crypto_shorthash) of bytes[0..n), with `seed` mixed in. */
uint64_t sbx_hash(const struct sbx_hash_key *key, uint64_t seed, const void *bytes, size_t n);

/* n random bytes in lower-case hex, terminated; out needs 2 * n + 1. */
void sbx_random_hex(char *out, size_t n);

#endif
