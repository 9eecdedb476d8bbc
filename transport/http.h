/* An HTTP/1.1 client for one server: one event loop, several exchanges at once, connections kept.
 *
 * No redirect is followed, no content coding accepted, no cookie, .netrc or credential of the
 * environment used, and nothing but http and https spoken. What is sent as a header goes to this
 * very origin only. Loopback and private addresses are reached directly, others through the proxy
 * that the environment names.
 *
 *   sbx_http_new -> { sbx_http_begin... sbx_http_step... } -> sbx_http_leave -> sbx_http_free
 *
 * One thread at a time. */
#ifndef TRANSPORT_HTTP_H
#define TRANSPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sbx/transport.h"
#include "transport/http_head.h"
#include "transport/secrets.h"
#include "transport/url.h"

struct sbx_http;

struct sbx_http_options {
    bool tls;
    struct sbx_url_authority authority;
    const char *prefix;         /* of every target, "" or "/..."; copied */
    const char *const *headers; /* "Name: value", sent with every request; copied */
    size_t n_headers;
    const struct sbx_secrets *secrets; /* borrowed for the life of the client; may be NULL */
    const char *cacert;   /* file of trusted certificates instead of the system's; or NULL */
    unsigned connections; /* open at once, at most; at least 1 */
    /* Leaves an answer that is still coming in the one way that does a server's other clients no
     * harm (see sbx_http_leave). */
    bool gentle;
};

/* How an exchange ended. */
enum sbx_http_end {
    SBX_HTTP_OK = 0,    /* the answer is complete by its own framing */
    SBX_HTTP_STOPPED,   /* a callback asked for it */
    SBX_HTTP_CONNECT,   /* no address, or no connection */
    SBX_HTTP_TLS,       /* no trusted encrypted connection */
    SBX_HTTP_NO_HEAD,   /* closed or reset before a whole head had come */
    SBX_HTTP_CUT,       /* closed before the body was complete by its framing */
    SBX_HTTP_RESET,     /* reset, or lost otherwise, in mid-body */
    SBX_HTTP_UNFRAMED,  /* closed at the end of a body that has neither a length nor chunks */
    SBX_HTTP_PROTOCOL,  /* no valid HTTP, or what sbx_http_head refuses */
    SBX_HTTP_LIMIT,     /* a head, or a body of more than max_body bytes */
    SBX_HTTP_STUCK,     /* no connection or head within first_ns, or no byte within idle_ns */
    SBX_HTTP_CANCELLED, /* left: cancelled, or the deadline passed */
    SBX_HTTP_FAILED,    /* our own side: no memory */
};

/* What a callback wants of the rest of the answer. */
enum sbx_http_go {
    SBX_HTTP_GO,
    SBX_HTTP_STOP, /* close the connection at once: SBX_HTTP_STOPPED */
};

struct sbx_http_request {
    const char *method; /* GET, POST, DELETE; static */
    const char *target; /* path and query after the prefix, encoded; copied */
    bool has_range;     /* Range: bytes=first-last */
    uint64_t first, last;
    const char *send; /* JSON; NULL: none; borrowed until on_done */
    size_t send_len;
    const char *accept; /* NULL, or the value of Accept; static */
    uint64_t max_body;  /* bytes of the answer's body; more is closed at once */
    bool fresh;         /* not on a connection that served another request before; so is any POST */
    uint64_t first_ns;  /* nanoseconds until connected, and then until the head */
    uint64_t idle_ns;   /* nanoseconds without a byte */
    void *ctx;
    /* Once, when the final head is there. May be NULL. */
    enum sbx_http_go (*on_head)(void *ctx, const struct sbx_http_head *head);
    /* Bytes of the body as they come, of whatever status. Also while the client is left. */
    enum sbx_http_go (*on_body)(void *ctx, const char *bytes, size_t n);
    /* Exactly once, last. head: NULL if none came. why: SBX_OK for SBX_HTTP_OK and _STOPPED, else a
     * message that names host and trouble. Another exchange may be begun from here. */
    void (*on_done)(void *ctx, enum sbx_http_end end, const struct sbx_http_head *head,
                    const struct sbx_error *why);
};

/* Once per process, before the first client; see sbx_init(). */
SBX_MUST_CHECK enum sbx_status sbx_http_init(struct sbx_error *err);

SBX_MUST_CHECK enum sbx_status sbx_http_new(const struct sbx_http_options *options,
                                            struct sbx_http **ret, struct sbx_error *err);

/* Begins an exchange. If more are under way than there may be connections, it waits for its turn
 * without its clock running. */
SBX_MUST_CHECK enum sbx_status sbx_http_begin(struct sbx_http *http, uint64_t deadline_ns,
                                              const struct sbx_http_request *request,
                                              struct sbx_error *err);

/* How many exchanges are under way. */
size_t sbx_http_active(const struct sbx_http *http);

/* Moves all exchanges on and waits until something happens, until until_ns at the longest, or until
 * wake_fd (-1: none) is readable. Calls the callbacks. Fails as sbx_transport_check() does; then
 * the client wants to be left. */
SBX_MUST_CHECK enum sbx_status sbx_http_step(struct sbx_http *http, const struct sbx_call *call,
                                             int wake_fd, uint64_t until_ns, struct sbx_error *err);

/* Ends what is under way; each exchange gets its on_done. If gentle, answers are read on for half a
 * second at most (those that end meanwhile are whole), then nothing is read for 0.3 s, and only
 * what is still coming is closed: a server that is blocked in writing to a connection notices its
 * end without a signal. Meanwhile nothing is asked for that was not yet, but for a DELETE. Never
 * waits beyond deadline_ns. */
void sbx_http_leave(struct sbx_http *http, uint64_t deadline_ns);

void sbx_http_free(struct sbx_http *http); /* leaves at once; NULL is fine */

/* One exchange from begin to end, in its own loop: the body (at most max) is appended to `body`,
 * whatever the status. For small questions to a server. Leaves the client if the call ends. */
struct sbx_http_answer {
    enum sbx_http_end end;
    struct sbx_http_head head; /* status 0: none came */
};
SBX_MUST_CHECK enum sbx_status sbx_http_ask(struct sbx_http *http, const struct sbx_call *call,
                                            const struct sbx_http_request *request,
                                            struct sbx_buf *body, struct sbx_http_answer *ret,
                                            struct sbx_error *err);

/* What a trouble with a whole server (not with one file) is as a status: SBX_E_UNREACHABLE,
 * SBX_E_REMOTE, SBX_E_LIMIT, SBX_E_CANCELLED, SBX_E_NOMEM. */
enum sbx_status sbx_http_status(enum sbx_http_end end);

#endif
