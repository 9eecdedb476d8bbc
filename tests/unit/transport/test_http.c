/* What the HTTP client asks, over which connections, and how it waits. How answers end is in
 * test_http_answers.c, how they are left in test_http_leave.c. */
#include "tests/unit/transport/http_fixture.h"

#define MAX_TESTS 64
#define OK "HTTP/1.1 200 OK\r\n"
#define FIVE OK "Content-Length: 5\r\n\r\nhello"

static const struct answer five = {.text = FIVE};

/* 200 and the request's target as body. */
static void serve_target(struct server *s, struct peer *p, unsigned nth, const char *request)
{
    const char *target = strchr(request, ' ') + 1;
    size_t n = strcspn(target, " ");
    char text[256];

    (void)s;
    (void)nth;
    (void)snprintf(text, sizeof(text), OK "Content-Length: %zu\r\n\r\n%.*s", n, (int)n, target);
    (void)peer_text(p, text);
}

static void the_request_is_this_and_nothing_else(void **state)
{
    struct web *w = *state;
    struct sbx_http_request r = request_of(&w->seen[0]);
    char want[512];

    serve(w, serve_answer, &five);
    connect_to(w, 1);
    r.has_range = true;
    r.first = 16777216;
    r.last = 9223372036854775806;
    r.accept = "text/plain";
    begin_request(w, &r);
    finish_all(w);
    (void)snprintf(want, sizeof(want),
                   "GET /prefix/t?a=b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                   "Range: bytes=16777216-9223372036854775806\r\n",
                   w->server.port);
    server_stop(&w->server);
    assert_int_equal(w->server.n_requests, 1);
    assert_memory_equal(w->server.requests[0], want, strlen(want));
    assert_has(w->server.requests[0], "\r\nAccept-Encoding: identity\r\n");
    assert_has(w->server.requests[0], "\r\nAccept: text/plain\r\n");
    assert_has(w->server.requests[0], "\r\nX-Token: " TOKEN "\r\n");
    assert_has(w->server.requests[0], "\r\nUser-Agent: sbx-sync/");
    assert_null(strstr(w->server.requests[0], "Cookie"));
    assert_null(strstr(w->server.requests[0], "Authorization"));
    assert_null(strstr(w->server.requests[0], "Content-"));
}

static void methods_and_bodies_are_sent_over_one_handle(void **state)
{
    struct web *w = *state;
    static char big[4000];
    struct sbx_http_request r = request_of(&w->seen[0]);

    memset(big, 'b', sizeof(big));
    serve(w, serve_answer, &five);
    connect_to(w, 1);
    r.method = "POST";
    r.send = big;
    r.send_len = sizeof(big);
    begin_request(w, &r);
    r = request_of(&w->seen[1]);
    r.method = "DELETE";
    begin_request(w, &r);
    r = request_of(&w->seen[2]);
    r.method = "POST";
    begin_request(w, &r);
    (void)begin_get(w, 3);
    finish_all(w);
    server_stop(&w->server);
    assert_int_equal(w->server.n_requests, 4);
    assert_has(w->server.requests[0], "POST /prefix/t?a=b HTTP/1.1\r\n");
    assert_has(w->server.requests[0], "\r\nContent-Type: application/json\r\n");
    assert_has(w->server.requests[0], "\r\nContent-Length: 4000\r\n");
    assert_null(strstr(w->server.requests[0], "Expect"));
    assert_has(w->server.requests[0], "\r\n\r\nbbbbbb");
    assert_has(w->server.requests[1], "DELETE /prefix/t?a=b HTTP/1.1\r\n");
    assert_null(strstr(w->server.requests[1], "bbb"));
    assert_has(w->server.requests[2], "POST /prefix/t?a=b HTTP/1.1\r\n");
    assert_has(w->server.requests[2], "\r\nContent-Length: 0\r\n");
    assert_has(w->server.requests[3], "GET /prefix/t?a=b HTTP/1.1\r\n");
    assert_null(strstr(w->server.requests[3], "Content-"));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(w->seen[i].end, SBX_HTTP_OK);
}

/* A relay of cookies would be one way to follow a client around. */
static void nothing_of_an_answer_comes_back(void **state)
{
    static const struct answer answer = {
        .text = "HTTP/1.1 302 Found\r\nSet-Cookie: a=cookie\r\nLocation: /elsewhere\r\n"
                "Alt-Svc: h2=\":1\"\r\nContent-Length: 0\r\n\r\n"};
    struct web *w = *state;

    serve(w, serve_answer, &answer);
    connect_to(w, 1);
    for (unsigned i = 0; i < 3; i++)
        (void)begin_get(w, i);
    finish_all(w);
    server_stop(&w->server);
    assert_int_equal(w->server.n_requests, 3);
    assert_int_equal(server_count(&w->server, "cookie"), 0);
    assert_int_equal(server_count(&w->server, "elsewhere"), 0);
}

/* Cut in two at each byte. */
static void serve_cut(struct server *s, struct peer *p, unsigned nth, const char *request)
{
    const char *text = s->ctx;

    (void)request;
    (void)peer_send(p, text, nth + 1);
    (void)usleep(2000);
    (void)peer_text(p, text + nth + 1);
}

static void where_an_answer_is_cut_makes_no_difference(void **state)
{
    static const char text[] =
        "HTTP/1.1 100 Continue\r\n\r\n" OK
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n";
    struct web *w = *state;

    serve(w, serve_cut, text);
    connect_to(w, 1);
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        struct seen *s = &w->seen[0];

        s->dones = 0;
        sbx_buf_clear(&s->body);
        (void)begin_get(w, 0);
        finish_all(w);
        assert_int_equal(s->end, SBX_HTTP_OK);
        assert_text(&s->body, "hello");
    }
    assert_int_equal(server_peers(&w->server), 1);
}

static void serve_slowly(struct server *s, struct peer *p, unsigned nth, const char *request)
{
    (void)s;
    (void)nth;
    (void)request;
    (void)usleep(50000);
    (void)peer_text(p, FIVE);
}

static void waiting_for_a_connection_stops_the_clock(void **state)
{
    struct web *w = *state;

    serve(w, serve_slowly, NULL);
    connect_to(w, 3);
    for (unsigned i = 0; i < 30; i++) {
        struct sbx_http_request r = request_of(&w->seen[i]);

        /* All of them take 0.5 s, and each has 0.4 s. */
        r.first_ns = r.idle_ns = 400 * (uint64_t)SBX_NS_PER_MS;
        begin_request(w, &r);
    }
    assert_int_equal(sbx_http_active(w->http), 30);
    finish_all(w);
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(w->seen[i].end, SBX_HTTP_OK);
    server_stop(&w->server);
    assert_int_equal(w->server.most_at_once, 3);
    assert_int_equal(w->server.n_peers, 3);
}

static void begin_next(void *ctx)
{
    struct web *w = ctx;
    unsigned *left = w->seen[1].then_ctx;

    if (*left == 0)
        return;
    --*left;
    w->seen[0].dones = 0;
    (void)begin_get(w, 0);
}

static void another_may_be_begun_when_one_is_done(void **state)
{
    struct web *w = *state;
    unsigned left = 200;

    serve(w, serve_target, NULL);
    connect_to(w, 2);
    w->seen[0].then = begin_next;
    w->seen[0].then_ctx = w;
    w->seen[1].then_ctx = &left;
    (void)begin_get(w, 0);
    finish_all(w);
    assert_int_equal(w->seen[0].end, SBX_HTTP_OK);
    assert_int_equal(left, 0);
    assert_int_equal(w->seen[0].bytes, 201 * strlen("/prefix/t?a=b"));
    assert_int_equal(server_peers(&w->server), 1);
}

static void a_fresh_connection_is_another_one(void **state)
{
    struct web *w = *state;
    struct sbx_http_request r = request_of(&w->seen[1]);

    serve(w, serve_answer, &five);
    connect_to(w, 1);
    (void)begin_get(w, 0);
    finish_all(w);
    r.fresh = true;
    begin_request(w, &r);
    finish_all(w);
    assert_int_equal(w->seen[1].end, SBX_HTTP_OK);
    assert_int_equal(server_peers(&w->server), 2);
}

/* Answers the first request of each connection, and closes at the second. */
static void serve_once(struct server *s, struct peer *p, unsigned nth, const char *request)
{
    (void)s;
    (void)nth;
    (void)request;
    if (p->written_ns)
        peer_close(p);
    else
        (void)peer_text(p, FIVE);
}

static void a_post_is_never_sent_twice(void **state)
{
    struct web *w = *state;
    struct sbx_http_request r = request_of(&w->seen[1]);

    serve(w, serve_once, NULL);
    connect_to(w, 1);
    (void)begin_get(w, 0);
    finish_all(w);
    r.method = "POST";
    r.send = "{}";
    r.send_len = 2;
    begin_request(w, &r);
    finish_all(w);
    assert_int_equal(w->seen[1].end, SBX_HTTP_OK);
    assert_int_equal(server_count(&w->server, "POST "), 1);
    assert_int_equal(server_peers(&w->server), 2);
}

static void a_get_survives_the_end_of_an_idle_connection(void **state)
{
    struct web *w = *state;

    serve(w, serve_once, NULL);
    connect_to(w, 1);
    for (unsigned i = 0; i < 4; i++) {
        (void)begin_get(w, i);
        finish_all(w);
        assert_int_equal(w->seen[i].end, SBX_HTTP_OK);
    }
}

static void nobody_listens(void **state)
{
    struct web *w = *state;
    struct sbx_http_options o;

    serve(w, serve_answer, &five);
    o = options_of(w, 1);
    server_stop(&w->server);
    connect_with(w, &o);
    (void)begin_get(w, 0);
    finish_all(w);
    assert_int_equal(w->seen[0].end, SBX_HTTP_CONNECT);
    assert_false(w->seen[0].has_head);
    assert_has(w->seen[0].why.msg, "127.0.0.1:");
    assert_int_equal(w->seen[0].why.status, SBX_E_UNREACHABLE);
}

static void a_body_ends_at_its_limit(void **state)
{
    static const struct answer flood = {
        .text = OK "\r\n", .after = AFTER_FLOOD, .loop = "0123456789abcdef"};
    struct web *w = *state;
    struct sbx_http_request r = request_of(&w->seen[0]);

    serve(w, serve_answer, &flood);
    connect_to(w, 1);
    r.max_body = 1000;
    begin_request(w, &r);
    finish_all(w);
    assert_int_equal(w->seen[0].end, SBX_HTTP_LIMIT);
    assert_int_equal(w->seen[0].bytes, 1000);
    assert_int_equal(w->seen[0].why.status, SBX_E_LIMIT);
}

static void a_body_of_just_its_limit_is_whole(void **state)
{
    struct web *w = *state;
    struct sbx_http_request r = request_of(&w->seen[0]);

    serve(w, serve_answer, &five);
    connect_to(w, 1);
    r.max_body = 5;
    begin_request(w, &r);
    finish_all(w);
    assert_int_equal(w->seen[0].end, SBX_HTTP_OK);
}

/* A dead port as proxy of everything. */
static void set_proxy(unsigned port)
{
    char url[64];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    assert_int_equal(setenv("http_proxy", url, 1), 0);
    assert_int_equal(setenv("all_proxy", url, 1), 0);
    assert_int_equal(unsetenv("no_proxy"), 0);
}

static int unset_proxy(void **state)
{
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    return web_teardown(state);
}

static void loopback_is_reached_without_a_proxy(void **state)
{
    struct web *w = *state;

    set_proxy(1);
    serve(w, serve_answer, &five);
    connect_to(w, 1);
    (void)begin_get(w, 0);
    finish_all(w);
    assert_int_equal(w->seen[0].end, SBX_HTTP_OK);
}

static void other_hosts_are_reached_through_the_proxy(void **state)
{
    struct web *w = *state;
    struct sbx_http_options o;

    serve(w, serve_answer, &five);
    set_proxy(w->server.port);
    o = options_of(w, 1);
    (void)snprintf(o.authority.host, sizeof(o.authority.host), "sandbox.example");
    o.authority.port = 0;
    connect_with(w, &o);
    (void)begin_get(w, 0);
    finish_all(w);
    assert_int_equal(w->seen[0].end, SBX_HTTP_OK);
    assert_int_equal(server_count(&w->server, "GET http://sandbox.example/prefix/t?a=b HTTP/1.1\r\n"
                                              "Host: sandbox.example\r\n"),
                     1);
}

static void a_step_ends_when_it_is_woken(void **state)
{
    struct web *w = *state;
    const struct sbx_call call = call_within(w->f, 30);
    uint64_t began = sbx_clock_now();
    int wake[2];

    connect_to(w, 1);
    assert_int_equal(pipe(wake), 0);
    assert_int_equal(write(wake[1], "x", 1), 1);
    assert_int_equal(sbx_http_step(w->http, &call, wake[0], SBX_NEVER, NULL), SBX_OK);
    assert_true(seconds_since(began) < 0.5);
    (void)close(wake[0]);
    (void)close(wake[1]);
}

static void a_step_ends_at_its_time(void **state)
{
    struct web *w = *state;
    const struct sbx_call call = call_within(w->f, 30);
    uint64_t began = sbx_clock_now();

    connect_to(w, 1);
    assert_int_equal(sbx_http_step(w->http, &call, -1, began + 100 * (uint64_t)SBX_NS_PER_MS, NULL),
                     SBX_OK);
    assert_true(seconds_since(began) >= 0.09 && seconds_since(began) < 0.8);
}

static void a_cancelled_step_fails(void **state)
{
    struct web *w = *state;
    const struct sbx_call call = call_within(w->f, 30);

    connect_to(w, 1);
    assert_int_equal(eventfd_write(w->f->cancel_fd, 1), 0);
    assert_int_equal(sbx_http_step(w->http, &call, -1, SBX_NEVER, NULL), SBX_E_CANCELLED);
}

static void a_step_fails_once_the_deadline_has_passed(void **state)
{
    static const struct answer hang = {.text = "", .after = AFTER_HANG};
    struct web *w = *state;
    const struct sbx_call call = call_within(w->f, 0.2);
    uint64_t began = sbx_clock_now();
    enum sbx_status st = SBX_OK;

    serve(w, serve_answer, &hang);
    connect_to(w, 1);
    (void)begin_get(w, 0);
    while (!st)
        st = sbx_http_step(w->http, &call, -1, SBX_NEVER, NULL);
    assert_int_equal(st, SBX_E_DEADLINE);
    assert_true(seconds_since(began) < 1);
    assert_int_equal(w->seen[0].dones, 0);
}

static void signals_of_the_thread_stay_as_they_are(void **state)
{
    struct web *w = *state;
    sigset_t pipe_only, before, after, pending;

    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    serve(w, serve_answer, &five);
    connect_to(w, 1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe_only, &before), 0);
    assert_int_equal(pthread_kill(pthread_self(), SIGPIPE), 0);
    (void)begin_get(w, 0);
    finish_all(w);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 1); /* it was there before */
    assert_int_equal(sigwaitinfo(&pipe_only, NULL), SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    (void)begin_get(w, 1);
    finish_all(w);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    assert_int_equal(sigismember(&after, SIGPIPE), sigismember(&before, SIGPIPE));
}

/* sbx_http_ask() */
static enum sbx_status ask(struct web *w, double seconds, size_t most,
                           struct sbx_http_answer *answer)
{
    const struct sbx_call call = call_within(w->f, seconds);
    const struct sbx_http_request r = request_of(NULL);

    w->f->out.max = most;
    return sbx_http_ask(w->http, &call, &r, &w->f->out, answer, &w->f->err);
}

static const struct question {
    const char *name;
    struct answer answer;
    enum sbx_status st;
    enum sbx_http_end end;
    int status;
    const char *body;
} questions[] = {
    {"an answer is given", {.text = FIVE}, SBX_OK, SBX_HTTP_OK, 200, "hello"},
    {"so is a refusal",
     {.text = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"},
     SBX_OK,
     SBX_HTTP_OK,
     403,
     "no"},
    {"an answer without a length is told from others",
     {.text = OK "\r\nhello", .after = AFTER_CLOSE},
     SBX_OK,
     SBX_HTTP_UNFRAMED,
     200,
     "hello"},
    {"no answer is none", {.text = "", .after = AFTER_CLOSE}, SBX_E_UNREACHABLE, 0, 0, NULL},
    {"a bad one fails", {.text = "HTTP/2\r\n", .after = AFTER_HANG}, SBX_E_REMOTE, 0, 0, NULL},
    {"a longer one than wanted fails",
     {.text = OK "Content-Length: 11\r\n\r\nhello there"},
     SBX_E_LIMIT,
     0,
     0,
     NULL},
    {"silence ends at the deadline", {.text = "", .after = AFTER_HANG}, SBX_E_DEADLINE, 0, 0, NULL},
};

static void check_question(void **state)
{
    struct web *w = *state;
    const struct question *q = w->row;
    struct sbx_http_answer answer = {.end = SBX_HTTP_FAILED};

    serve(w, serve_answer, &q->answer);
    connect_to(w, 1);
    assert_int_equal(ask(w, q->st == SBX_E_DEADLINE ? 0.2 : 20, 10, &answer), q->st);
    assert_int_equal(sbx_http_active(w->http), 0);
    if (q->st) {
        assert_int_equal(w->f->err.status, q->st);
        assert_int_equal(answer.end, SBX_HTTP_FAILED);
        return;
    }
    assert_int_equal(answer.end, q->end);
    assert_int_equal(answer.head.status, q->status);
    assert_text(&w->f->out, q->body);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS];
    size_t n = web_rows(tests, 0, ROWS(questions), check_question);

#define TEST(fn) n = web_test(tests, n, #fn, fn)
    TEST(the_request_is_this_and_nothing_else);
    TEST(methods_and_bodies_are_sent_over_one_handle);
    TEST(nothing_of_an_answer_comes_back);
    TEST(where_an_answer_is_cut_makes_no_difference);
    TEST(waiting_for_a_connection_stops_the_clock);
    TEST(another_may_be_begun_when_one_is_done);
    TEST(a_fresh_connection_is_another_one);
    TEST(a_post_is_never_sent_twice);
    TEST(a_get_survives_the_end_of_an_idle_connection);
    TEST(nobody_listens);
    TEST(a_body_ends_at_its_limit);
    TEST(a_body_of_just_its_limit_is_whole);
    TEST(a_step_ends_when_it_is_woken);
    TEST(a_step_ends_at_its_time);
    TEST(a_cancelled_step_fails);
    TEST(a_step_fails_once_the_deadline_has_passed);
    TEST(signals_of_the_thread_stay_as_they_are);
#undef TEST
    tests[n++] =
        (struct CMUnitTest){"loopback is reached without a proxy",
                            loopback_is_reached_without_a_proxy, web_setup, unset_proxy, NULL};
    tests[n++] = (struct CMUnitTest){"other hosts are reached through the proxy",
                                     other_hosts_are_reached_through_the_proxy, web_setup,
                                     unset_proxy, NULL};
    return sbx_http_init(NULL) ? 1 : rows_run("the HTTP client", tests, n);
}
