/* The remote commands, beside the format that they yield (docs/ARCHITECTURE.md, "Listing"). */
#ifndef LISTING_SCRIPT_H
#define LISTING_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define SBX_NONCE_BYTES 16
#define SBX_NONCE_CHARS (2 * SBX_NONCE_BYTES)

/* What a script is made for. Borrowed. */
struct sbx_list_script {
    const char *nonce;  /* SBX_NONCE_CHARS of lower-case hex, new for each run */
    const char *root;   /* remote directory, bytes; trailing slashes are dropped here */
    uint64_t max_bytes; /* decoded bytes that may be sent; the script sends one more if there are */
    const char *const *prune; /* plain names that the walk does not enter or list */
    size_t n_prune;
};

/* Appends the script that lists every regular file below the root, but those whose base name
 * matches the pattern in the shell variable sbx_own, if it is set: a transport that itself keeps
 * files in the sandbox while a script runs sets it before the script. */
SBX_MUST_CHECK enum sbx_status sbx_list_script(const struct sbx_list_script *args,
                                               struct sbx_buf *out, struct sbx_error *err);

/* Appends the script that prints the records of the n given paths as they are now, in the same
 * frame and with the same tools; those that are no regular files any more are left out. */
struct sbx_list_name {
    const char *path; /* bytes, relative to the root */
    size_t path_len;
};
SBX_MUST_CHECK enum sbx_status sbx_list_confirm_script(const struct sbx_list_script *args,
                                                       const struct sbx_list_name *names, size_t n,
                                                       struct sbx_buf *out, struct sbx_error *err);

/* Appends what struct sbx_call calls the snippet, for the tools= value of the listing.
 * SBX_E_REMOTE: a value that the listing script cannot have printed. */
SBX_MUST_CHECK enum sbx_status sbx_list_snippet(const char *root, const char *tools,
                                                struct sbx_buf *out, struct sbx_error *err);

#endif
