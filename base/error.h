/* Filling in struct sbx_error. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/attr.h"
#include "sbx/error.h"

/* Starts a message. A non-zero os_errno is appended by name, as in "…: ENOSPC (No space left on
 * device)". err may be NULL. Returns status, so that it can be the return expression. */
enum sbx_status sbx_err_set(struct sbx_error *err, enum sbx_status status, int os_errno,
                            const char *fmt, ...) SBX_PRINTF(4, 5);

/* The same for a system call that failed on the host: status SBX_E_HOST (SBX_E_NOMEM for ENOMEM),
 * err->step is `call`, and the message is "call: fmt…: ENAME (text)". */
enum sbx_status sbx_err_host(struct sbx_error *err, int os_errno, const char *call, const char *fmt,
                             ...) SBX_PRINTF(4, 5);

/* Puts "context: " before the message that is there. Returns status unchanged. */
enum sbx_status sbx_err_wrap(struct sbx_error *err, enum sbx_status status, const char *fmt, ...)
    SBX_PRINTF(3, 4);

/* SBX_E_NOMEM with a message. */
enum sbx_status sbx_err_nomem(struct sbx_error *err);

/* The name of an errno value such as "ENOSPC", or "E?" and never NULL. */
const char *sbx_errno_name(int os_errno);

#endif
