/* OpenSandbox's execd: commands through POST /command, files through GET /files/download. Used by
 * the transport execd itself and by those that find out first where an execd is. */
#ifndef TRANSPORT_EXECD_H
#define TRANSPORT_EXECD_H

#include "base/buf.h"
#include "base/error.h"
#include "sbx/transport.h"
#include "transport/secrets.h"
#include "transport/url.h"

#define SBX_EXECD_PORT 44772u

struct sbx_execd;

struct sbx_execd_server {
    bool tls;
    struct sbx_url_authority authority;
    const char *prefix;         /* of every target, "" or "/..." */
    const char *const *headers; /* "Name: value", sent with every request */
    size_t n_headers;
    const struct sbx_secrets *secrets; /* borrowed for the life of the object */
    const char *cacert;                /* or NULL */
    const char *root;                  /* absolute directory, for file names */
};

/* Copies all but the secrets. Connects to nothing yet. */
SBX_MUST_CHECK enum sbx_status sbx_execd_new(const struct sbx_execd_server *server,
                                             struct sbx_execd **ret, struct sbx_error *err);
void sbx_execd_free(struct sbx_execd *execd); /* NULL is fine */

/* As `run` and `fetch` of struct sbx_transport_ops; one of each at a time, from two threads. */
enum sbx_status sbx_execd_run(struct sbx_execd *execd, const struct sbx_call *call,
                              const char *script, size_t script_len, struct sbx_sink out,
                              struct sbx_sink diag, struct sbx_exit *ret_exit,
                              struct sbx_error *err);
enum sbx_status sbx_execd_fetch(struct sbx_execd *execd, const struct sbx_call *call,
                                const struct sbx_queue *queue, struct sbx_sink diag,
                                struct sbx_error *err);

/* SBX_E_USAGE: not an absolute directory in UTF-8, which is all that a JSON text can carry. */
SBX_MUST_CHECK enum sbx_status sbx_execd_check_root(const char *root, struct sbx_error *err);

/* Adds "name: value" to `headers`, and the value to the secrets. SBX_E_USAGE: a value with control
 * characters. */
SBX_MUST_CHECK enum sbx_status sbx_execd_add_header(const char *name, const char *value,
                                                    struct sbx_buf *header,
                                                    struct sbx_secrets *secrets,
                                                    struct sbx_error *err);

#endif
