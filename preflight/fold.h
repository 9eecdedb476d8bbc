/* The alias key of a component: two spellings with one key may be one name somewhere.
 *
 * NFD -> full case folding -> default-ignorable code points removed -> NFC, repeated until stable
 * (Unicode, UAX #15 and chapter 3.13; by utf8proc). A component of more than SBX_MAX_KEYED bytes,
 * which is refused as too-long everywhere, is its own key. */
#ifndef PREFLIGHT_FOLD_H
#define PREFLIGHT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Replaces the contents of `out` by the key of the valid UTF-8 bytes[0..n). The key may be empty.
 * SBX_E_NOMEM, SBX_E_LIMIT. ASCII takes a fast path with the same answer. */
SBX_MUST_CHECK enum sbx_status sbx_pre_key(const char *bytes, size_t n, struct sbx_buf *out,
                                           struct sbx_error *err);

/* The same without memory of its own, for n <= SBX_MAX_KEYED: writes the key into out, which has
 * SBX_PRE_KEY_ROOM(n) bytes, not terminated, and returns its length. */
#define SBX_PRE_KEY_ROOM(n) (3 * (n) + 4)
size_t sbx_pre_key_at(const char *bytes, size_t n, char *out);

/* Default_Ignorable_Code_Point: nothing of it is seen, and no key has one. */
bool sbx_pre_ignorable(uint32_t cp);

#endif
