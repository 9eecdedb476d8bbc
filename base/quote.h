/* The one way by which text of a peer reaches a message, a log, a report or a terminal, and the one
 * way by which it reaches a shell. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "sbx/error.h"

/* Room for a quoted name in a message, the terminating NUL included. */
#define SBX_QUOTE_MAX 160

/* Writes bytes as printable text into out[0..cap), always terminated, cut with "..." where it does
 * not fit (never inside an escape). `\` becomes `\\`; C0, DEL, C1, U+061C, U+200B-200F,
 * U+2028-202E, U+2060-206F, U+FEFF and what is not UTF-8 become `\xHH` byte by byte. Other
 * characters outside ASCII stay as UTF-8 (sbx_quote) or become `\xHH` too (sbx_quote_ascii).
 * Returns out. */
const char *sbx_quote(char *out, size_t cap, const char *bytes, size_t n);
const char *sbx_quote_ascii(char *out, size_t cap, const char *bytes, size_t n);

/* For messages: SBX_QUOTE("a\nb") is a char array of the enclosing block; ASCII only. */
#define SBX_QUOTE(s) sbx_quote_ascii((char[SBX_QUOTE_MAX]){0}, SBX_QUOTE_MAX, (s), strlen(s))
#define SBX_QUOTE_N(s, n) sbx_quote_ascii((char[SBX_QUOTE_MAX]){0}, SBX_QUOTE_MAX, (s), (n))

/* Appends bytes as one single-quoted word of POSIX sh. No NUL may be among them. */
SBX_MUST_CHECK enum sbx_status sbx_quote_sh(struct sbx_buf *out, const char *bytes, size_t n,
                                            struct sbx_error *err);

/* Appends bytes as part of a format of printf, within single quotes: letters, digits, `_`, `.`, `/`
 * and `-` stand for themselves, all else becomes `\ooo`. Nothing is appended on failure. */
SBX_MUST_CHECK enum sbx_status sbx_quote_octal(struct sbx_buf *out, const char *bytes, size_t n,
                                               struct sbx_error *err);
size_t sbx_quote_octal_len(const char *bytes, size_t n); /* how many bytes that appends */
#define SBX_QUOTE_OCTAL_MOST 4                           /* for each byte at most */

/* A path that begins with one of these is an option or an operator to find. */
#define SBX_QUOTE_ODD "-!(),"

#endif
