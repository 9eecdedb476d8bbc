/* What the tests of the HTTP client share: a server, a client of it, and what came of exchanges. */
#ifndef TESTS_UNIT_TRANSPORT_HTTP_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_HTTP_FIXTURE_H

#include "tests/unit/transport/fixture.h"
#include "tests/unit/transport/http_server.h"

#include "transport/http.h"

#define TOKEN "s3cr3t-t0ken"

/* What came of one exchange. */
struct seen {
    unsigned heads, dones;
    enum sbx_http_end end;
    bool has_head;
    struct sbx_http_head head;
    struct sbx_error why;
    struct sbx_buf body; /* owned; the first bytes */
    uint64_t bytes;
    uint64_t last_ns; /* when the last of them came */
    enum sbx_http_go head_go, body_go;
    void (*then)(void *ctx); /* called from on_done */
    void *then_ctx;
};

struct web {
    const void *row;
    struct fixture *f; /* owned */
    struct server server;
    struct sbx_http *http; /* owned */
    struct sbx_secrets secrets;
    struct seen seen[64];
};

static inline int web_setup(void **state)
{
    struct web *w = calloc(1, sizeof(*w));

    if (!w)
        return -1;
    w->row = *state;
    w->server.fd = -1;
    for (size_t i = 0; i < N_ELEMENTS(w->seen); i++)
        w->seen[i].body = SBX_BUF_INIT(SBX_MIB);
    if (fixture_setup(state))
        return -1;
    w->f = *state;
    *state = w;
    return sbx_secrets_add(&w->secrets, TOKEN, NULL) ? -1 : 0;
}

static inline int web_teardown(void **state)
{
    struct web *w = *state;
    int rc;

    sbx_http_free(w->http);
    server_free(&w->server);
    sbx_secrets_done(&w->secrets);
    for (size_t i = 0; i < N_ELEMENTS(w->seen); i++)
        sbx_buf_done(&w->seen[i].body);
    *state = w->f;
    rc = fixture_teardown(state);
    free(w);
    return rc;
}

static inline void serve(struct web *w, serve_fn *fn, const void *ctx)
{
    assert_true(server_start(&w->server, fn, ctx));
}

/* Plays the one answer of a row to each request. */
static inline void serve_answer(struct server *s, struct peer *p, unsigned nth, const char *request)
{
    (void)nth;
    (void)request;
    peer_answer(p, s->ctx);
}

static inline struct sbx_http_options options_of(struct web *w, unsigned connections)
{
    static const char *const headers[] = {"X-Token: " TOKEN};
    struct sbx_http_options o = {.prefix = "/prefix",
                                 .headers = headers,
                                 .n_headers = 1,
                                 .secrets = &w->secrets,
                                 .connections = connections};

    (void)snprintf(o.authority.host, sizeof(o.authority.host), "127.0.0.1");
    o.authority.port = w->server.port;
    return o;
}

static inline void connect_with(struct web *w, const struct sbx_http_options *o)
{
    struct sbx_error err = {.status = SBX_OK};

    assert_int_equal(sbx_http_new(o, &w->http, &err), SBX_OK);
}

static inline void connect_to(struct web *w, unsigned connections)
{
    const struct sbx_http_options o = options_of(w, connections);

    connect_with(w, &o);
}

static inline enum sbx_http_go seen_head(void *ctx, const struct sbx_http_head *head)
{
    struct seen *s = ctx;

    assert_true(head->status >= 200);
    assert_int_equal(s->dones, 0);
    s->heads++;
    return s->head_go;
}

static inline enum sbx_http_go seen_body(void *ctx, const char *bytes, size_t n)
{
    struct seen *s = ctx;
    size_t room = s->body.max - s->body.len;

    assert_int_equal(s->dones, 0);
    assert_int_equal(sbx_buf_add(&s->body, bytes, n < room ? n : room, NULL), SBX_OK);
    s->bytes += n;
    s->last_ns = sbx_clock_now();
    return s->body_go;
}

static inline void seen_done(void *ctx, enum sbx_http_end end, const struct sbx_http_head *head,
                             const struct sbx_error *why)
{
    struct seen *s = ctx;

    assert_int_equal(s->dones++, 0);
    s->end = end;
    s->has_head = head != NULL;
    if (head)
        s->head = *head;
    s->why = *why;
    if (s->then)
        s->then(s->then_ctx);
}

static inline struct sbx_http_request request_of(struct seen *s)
{
    return (struct sbx_http_request){.method = "GET",
                                     .target = "/t?a=b",
                                     .max_body = SBX_GIB,
                                     .first_ns = 10ull * SBX_NS_PER_S,
                                     .idle_ns = 10ull * SBX_NS_PER_S,
                                     .ctx = s,
                                     .on_head = seen_head,
                                     .on_body = seen_body,
                                     .on_done = seen_done};
}

static inline void begin_request(struct web *w, const struct sbx_http_request *r)
{
    const uint64_t deadline = sbx_clock_after(sbx_clock_now(), 60);

    assert_int_equal(sbx_http_begin(w->http, deadline, r, NULL), SBX_OK);
}

static inline struct seen *begin_get(struct web *w, unsigned i)
{
    const struct sbx_http_request r = request_of(&w->seen[i]);

    begin_request(w, &r);
    return &w->seen[i];
}

/* Goes on until no exchange is under way. */
static inline void finish_all(struct web *w)
{
    const struct sbx_call call = call_within(w->f, 30);

    while (sbx_http_active(w->http) > 0)
        assert_int_equal(sbx_http_step(w->http, &call, -1, SBX_NEVER, NULL), SBX_OK);
}

/* Goes on until the exchange has that many bytes of a body. */
static inline void go_on_until(struct web *w, const struct seen *s, uint64_t bytes)
{
    const struct sbx_call call = call_within(w->f, 30);

    while (s->bytes < bytes && !s->dones)
        assert_int_equal(sbx_http_step(w->http, &call, -1, SBX_NEVER, NULL), SBX_OK);
    assert_int_equal(s->dones, 0);
}

static inline size_t web_rows(struct CMUnitTest *tests, size_t at, const void *table, size_t n,
                              size_t size, CMUnitTestFunction fn)
{
    return rows_add_with(tests, at, table, n, size, fn, web_setup, web_teardown);
}

static inline size_t web_test(struct CMUnitTest *tests, size_t at, const char *name,
                              CMUnitTestFunction fn)
{
    tests[at++] = (struct CMUnitTest){name, fn, web_setup, web_teardown, NULL};
    return at;
}

#endif
