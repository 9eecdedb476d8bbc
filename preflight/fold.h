/* The alias key of a component: two spellings with one key may be one name somewhere.
 *
 * NFD -> full case folding -> default-ignorable code points removed -> NFC, repeated until stable
 * (Unicode, UAX #15 and chapter 3.13; by utf8proc). */
#ifndef PREFLIGHT_FOLD_H
#define PREFLIGHT_FOLD_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* Replaces the contents of `out` by the key of the valid UTF-8 bytes[0..n). The key may be empty.
 * SBX_E_NOMEM, SBX_E_LIMIT. ASCII takes a fast path with the same answer. */
SBX_MUST_CHECK enum sbx_status sbx_pre_key(const char *bytes, size_t n, struct sbx_buf *out,
                                           struct sbx_error *err);

#endif
