/* Strict UTF-8 (Unicode 15, table 3-7; RFC 3629). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character of bytes[0..n). Returns its length in bytes, or 0 if what stands
 * there is overlong, a surrogate, above U+10FFFF, cut, or n is 0; then *ret_cp is untouched. */
size_t sbx_utf8_decode(const char *bytes, size_t n, uint32_t *ret_cp);

bool sbx_utf8_valid(const char *bytes, size_t n);

#endif
