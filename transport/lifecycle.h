/* OpenSandbox's lifecycle server: whether a sandbox lives, until when, and where its execd is. It
 * is trusted with that, and its answers are still bounded and checked. */
#ifndef TRANSPORT_LIFECYCLE_H
#define TRANSPORT_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "sbx/transport.h"
#include "transport/execd.h"
#include "transport/http.h"

struct sbx_lifecycle {
    struct sbx_http *http; /* owned; to the server, with the API key */
    const char *id;        /* borrowed; of the sandbox: letters, digits, '-', '_', '.' */
    struct sbx_url_authority authority; /* the server's own */
    const char *prefix;                 /* borrowed; before "/v1" */
    bool tls;
};

struct sbx_lifecycle_facts {
    bool expires;  /* the sandbox has an end */
    int64_t end_s; /* seconds since 1970, rounded down */
};

/* SBX_OK only for a sandbox that runs (or whose state the server does not know). SBX_E_GONE: the
 * server does not know it, or it has ended. SBX_E_UNREACHABLE: it is paused or not ready yet, or
 * the server does not answer. SBX_E_UNAUTHORISED. SBX_E_REMOTE: a malformed answer. */
SBX_MUST_CHECK enum sbx_status sbx_lifecycle_look(const struct sbx_lifecycle *l,
                                                  const struct sbx_call *call,
                                                  struct sbx_lifecycle_facts *ret,
                                                  struct sbx_error *err);

/* Asks for an end at until_s. The server would also make the sandbox's life shorter, so never call
 * it with an earlier time than that of a look just before. */
SBX_MUST_CHECK enum sbx_status sbx_lifecycle_renew(const struct sbx_lifecycle *l,
                                                   const struct sbx_call *call, int64_t until_s,
                                                   struct sbx_error *err);

/* Finds the endpoint of execd: fills in authority, prefix and headers of *ret, whose texts go into
 * `texts`; header values are added to `secrets`. through_server: reached through the lifecycle
 * server, whose own address it then has to be. */
SBX_MUST_CHECK enum sbx_status
sbx_lifecycle_endpoint(const struct sbx_lifecycle *l, const struct sbx_call *call,
                       bool through_server, struct sbx_arena *texts, struct sbx_secrets *secrets,
                       const char *headers[SBX_EXECD_HEADERS], struct sbx_execd_server *ret,
                       struct sbx_error *err);

/* RFC 3339 in UTC, as the server writes it: "2026-06-13T10:00:00Z", a fraction or "+00:00" may be
 * there. False for anything else. */
bool sbx_lifecycle_time(const char *text, size_t n, int64_t *ret_s);

#endif
