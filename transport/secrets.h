/* Tokens and keys that were sent on a connection. A peer knows them, and may send them back in a
 * message; text of a peer passes through here before anybody sees it. */
#ifndef TRANSPORT_SECRETS_H
#define TRANSPORT_SECRETS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* Zero is the empty set. */
struct sbx_secrets {
    char **texts; /* owned, each owned; longest first, so that none hides inside another */
    size_t n, cap;
};

/* Copies the text in; an empty one is no secret. */
SBX_MUST_CHECK enum sbx_status sbx_secrets_add(struct sbx_secrets *secrets, const char *text,
                                               struct sbx_error *err);
/* Appends bytes with "***" for every secret in them; one for those that overlap. */
SBX_MUST_CHECK enum sbx_status sbx_secrets_redact(const struct sbx_secrets *secrets,
                                                  const char *bytes, size_t n, struct sbx_buf *out,
                                                  struct sbx_error *err);
/* Wipes and frees; may be called twice. */
void sbx_secrets_done(struct sbx_secrets *secrets);

#endif
