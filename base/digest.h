/* BLAKE2b-256 (RFC 7693) of a stream: init, add*, final. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <sodium.h>
#include <stddef.h>

#define SBX_DIGEST_LEN 32

/* May live anywhere and be moved or copied. */
struct sbx_digest {
    unsigned char state[sizeof(crypto_generichash_state)];
};

void sbx_digest_init(struct sbx_digest *digest);
void sbx_digest_add(struct sbx_digest *digest, const void *bytes, size_t n);
void sbx_digest_final(struct sbx_digest *digest, unsigned char ret[SBX_DIGEST_LEN]);

#endif
