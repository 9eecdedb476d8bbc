#include "base/digest.h"

#include <string.h>

/* libsodium wants its state on a 64-byte boundary, which neither malloc nor a table that grows
 * gives to a struct that holds one. So the state lives in plain bytes and is copied into place for
 * each call: 384 bytes, next to nothing beside hashing. */
void sbx_digest_init(struct sbx_digest *digest)
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, SBX_DIGEST_LEN);
    memcpy(digest->state, &state, sizeof(state));
}

void sbx_digest_add(struct sbx_digest *digest, const void *bytes, size_t n)
{
    crypto_generichash_state state;

    if (n == 0)
        return;
    memcpy(&state, digest->state, sizeof(state));
    (void)crypto_generichash_update(&state, bytes, n);
    memcpy(digest->state, &state, sizeof(state));
}

void sbx_digest_final(struct sbx_digest *digest, unsigned char ret[SBX_DIGEST_LEN])
{
    crypto_generichash_state state;

    memcpy(&state, digest->state, sizeof(state));
    (void)crypto_generichash_final(&state, ret, SBX_DIGEST_LEN);
}
