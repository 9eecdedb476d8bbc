/* One exchange of the HTTP client: its libcurl handle, and what its callbacks have seen. */
#ifndef TRANSPORT_HTTP_EASY_H
#define TRANSPORT_HTTP_EASY_H

#include <curl/curl.h>

#include "base/buf.h"
#include "transport/http.h"

struct sbx_http_exchange {
    struct sbx_http_exchange *next;
    CURL *easy;                /* owned by the client's pool; NULL while it waits for its turn */
    struct curl_slist *fields; /* owned; NULL: the client's */
    struct sbx_http_request request;
    struct sbx_buf target; /* owned; what request.target points to */
    uint64_t deadline_ns;
    struct sbx_http_head_reader reader;
    bool asked;        /* the request was sent, or is being sent */
    uint64_t body;     /* bytes that came of it */
    uint64_t heard_ns; /* when the peer last did something, or should have begun to */
    bool ours;         /* ended by a callback: `end` and `why` say how */
    enum sbx_http_end end;
    struct sbx_error why;
    char error[CURL_ERROR_SIZE]; /* libcurl's */
};

/* What all exchanges of a client have in common. */
struct sbx_http_origin {
    struct sbx_buf url;               /* owned; scheme, authority and prefix */
    char name[SBX_URL_HOST_MAX + 16]; /* host and port, for messages */
    struct curl_slist *fields;        /* owned */
    const struct sbx_secrets *secrets;
    char *cacert; /* owned; NULL: the system's */
    bool direct;  /* no proxy */
};

/* A handle with everything set that does not change; NULL where memory is refused. */
CURL *sbx_http_easy_new(const struct sbx_http_origin *origin);

/* Sets what belongs to this exchange, which has a handle. */
SBX_MUST_CHECK enum sbx_status sbx_http_easy_aim(const struct sbx_http_origin *origin,
                                                 struct sbx_http_exchange *x,
                                                 struct sbx_error *err);

/* How it ended, as libcurl and the callbacks tell; fills x->end and x->why. */
void sbx_http_easy_judge(const struct sbx_http_origin *origin, struct sbx_http_exchange *x,
                         CURLcode rc);

/* Ends it with a message of ours, such as "nothing came for 30 s". */
void sbx_http_easy_fail(const struct sbx_http_origin *origin, struct sbx_http_exchange *x,
                        enum sbx_http_end end, const char *what);

/* Whether one of its clocks has run out; *ret_ns is when the next one will. */
bool sbx_http_easy_stuck(const struct sbx_http_exchange *x, uint64_t now, uint64_t *ret_ns);

#endif
