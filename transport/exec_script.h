/* The script that brings a batch of files as one stream of text. The reading side is exec_stream.
 * For a file by itself:
 *
 *   <nonce> file <index> ok|vanished|denied|notreg
 *
 * and after ok: lines of base64 or hex of content (at most the listed size), LF, nonce, blank,
 * status of `head`, blank, and the record with its NUL or nothing; then
 *
 *   <nonce> done <index> <status of enc>
 *
 * For a group:
 *
 *   <nonce> group <index of the first> <count>
 *
 * lines of records, LF, nonce, blank, contents of all files, LF, nonce, blank, records; then
 *
 *   <nonce> done <index of the first> <status of enc>
 *
 * Files come in the order asked for, and last
 *
 *   <nonce> end
 */
#ifndef TRANSPORT_EXEC_SCRIPT_H
#define TRANSPORT_EXEC_SCRIPT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "sbx/transport.h"

/* Appends the script for files[0..n), of which files[0..singles) go one by one. `snippet` as in
 * struct sbx_call. */
SBX_MUST_CHECK enum sbx_status sbx_exec_script(const char *nonce, const char *snippet,
                                               const struct sbx_wanted *const files[], size_t n,
                                               size_t singles, struct sbx_buf *out,
                                               struct sbx_error *err);

#endif
