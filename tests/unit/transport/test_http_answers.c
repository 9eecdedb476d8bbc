/* How an exchange ends, for each thing that a server may answer or not answer. */
#include "tests/unit/transport/http_fixture.h"

#define MAX_TESTS 192
#define OK "HTTP/1.1 200 OK\r\n"
#define FIVE OK "Content-Length: 5\r\n\r\nhello"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"
#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"

static const struct row {
    const char *name;
    struct answer answer;
    enum sbx_http_end end;
    int status;       /* of the head; 0: none came */
    const char *body; /* NULL: not looked at */
} rows[] = {
    {"a length is complete", {.text = FIVE}, SBX_HTTP_OK, 200, "hello"},
    {"a length is complete though the connection ends",
     {.text = FIVE, .after = AFTER_CLOSE},
     SBX_HTTP_OK,
     200,
     "hello"},
    {"a byte at a time", {.text = FIVE, .bytewise = true}, SBX_HTTP_OK, 200, "hello"},
    {"no bytes are complete", {.text = OK "Content-Length: 0\r\n\r\n"}, SBX_HTTP_OK, 200, ""},
    {"HTTP/1.0 with a length",
     {.text = "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", .after = AFTER_CLOSE},
     SBX_HTTP_OK,
     200,
     "hello"},
    {"chunks are complete",
     {.text = CHUNKED "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"},
     SBX_HTTP_OK,
     200,
     "hello"},
    {"chunks a byte at a time",
     {.text = CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n", .bytewise = true},
     SBX_HTTP_OK,
     200,
     "hello"},
    {"chunks with trailers",
     {.text = CHUNKED "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"},
     SBX_HTTP_OK,
     200,
     "hello"},
    {"no content has no body", {.text = "HTTP/1.1 204 No Content\r\n\r\n"}, SBX_HTTP_OK, 204, ""},
    {"nothing modified has no body",
     {.text = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"},
     SBX_HTTP_OK,
     304,
     ""},
    {"an error is an answer",
     {.text = "HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nsorry"},
     SBX_HTTP_OK,
     500,
     "sorry"},
    {"interim answers are passed over",
     {.text = CONTINUE "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" FIVE},
     SBX_HTTP_OK,
     200,
     "hello"},
    {"no redirect is followed",
     {.text = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"},
     SBX_HTTP_OK,
     302,
     ""},
    {"no credentials are asked for",
     {.text = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"},
     SBX_HTTP_OK,
     401,
     ""},
    {"closed at once", {.text = "", .after = AFTER_CLOSE}, SBX_HTTP_NO_HEAD, 0, ""},
    {"reset at once", {.text = "", .after = AFTER_RESET}, SBX_HTTP_NO_HEAD, 0, ""},
    {"closed in the status line",
     {.text = "HTTP/1.1 2", .after = AFTER_CLOSE},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"closed after the status line", {.text = OK, .after = AFTER_CLOSE}, SBX_HTTP_NO_HEAD, 0, ""},
    {"closed within a field",
     {.text = OK "Content-Le", .after = AFTER_CLOSE},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"closed before the empty line of a length",
     {.text = OK "Content-Length: 5\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"closed before the empty line of no length",
     {.text = OK "Content-Length: 0\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"closed before the empty line of chunks",
     {.text = OK "Transfer-Encoding: chunked\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"reset within the head",
     {.text = OK "X: y\r\n", .after = AFTER_RESET},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"closed after an interim answer",
     {.text = CONTINUE, .after = AFTER_CLOSE},
     SBX_HTTP_NO_HEAD,
     0,
     ""},
    {"closed before the length was there",
     {.text = OK "Content-Length: 9\r\n\r\nhello", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     "hello"},
    {"closed with nothing of a great length",
     {.text = OK "Content-Length: 9223372036854775807\r\n\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     ""},
    {"closed within a chunk",
     {.text = CHUNKED "9\r\nhello", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     "hello"},
    {"closed between chunks",
     {.text = CHUNKED "5\r\nhello\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     "hello"},
    {"closed within the size of a chunk",
     {.text = CHUNKED "5\r\nhello\r\n1", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     "hello"},
    {"closed before the end of the last chunk",
     {.text = CHUNKED "5\r\nhello\r\n0\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     "hello"},
    {"closed before the first chunk",
     {.text = CHUNKED, .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     ""},
    {"closed within trailers",
     {.text = CHUNKED "5\r\nhello\r\n0\r\nX-Su", .after = AFTER_CLOSE},
     SBX_HTTP_CUT,
     200,
     "hello"},
    {"reset within the body",
     {.text = OK "Content-Length: 9\r\n\r\nhello", .after = AFTER_RESET},
     SBX_HTTP_RESET,
     200,
     "hello"},
    {"reset within a chunk",
     {.text = CHUNKED "9\r\nhello", .after = AFTER_RESET},
     SBX_HTTP_RESET,
     200,
     "hello"},
    {"reset within a body without a length",
     {.text = OK "\r\nhello", .after = AFTER_RESET},
     SBX_HTTP_RESET,
     200,
     "hello"},
    {"neither length nor chunks",
     {.text = OK "\r\nhello", .after = AFTER_CLOSE},
     SBX_HTTP_UNFRAMED,
     200,
     "hello"},
    {"neither, and it says so",
     {.text = OK "Connection: close\r\n\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_UNFRAMED,
     200,
     ""},
    {"no HTTP",
     {.text = "SSH-2.0-OpenSSH_9.2\r\n", .after = AFTER_CLOSE},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"HTTP/0.9", {.text = "<html>hello</html>", .after = AFTER_CLOSE}, SBX_HTTP_PROTOCOL, 0, ""},
    {"HTTP/2", {.text = "HTTP/2 200\r\n\r\nhello", .after = AFTER_CLOSE}, SBX_HTTP_PROTOCOL, 0, ""},
    {"a switch of protocols",
     {.text = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
      .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"two lengths",
     {.text = OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"a length and chunks",
     {.text = OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"a negative length",
     {.text = OK "Content-Length: -5\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"a length that does not fit",
     {.text = OK "Content-Length: 9223372036854775808\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"gzip",
     {.text = OK "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"gzip for the transfer",
     {.text = OK "Transfer-Encoding: gzip\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"a continued field",
     {.text = OK "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     0,
     ""},
    {"a chunk that is no number",
     {.text = CHUNKED "zz\r\nhello\r\n", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     200,
     ""},
    {"a chunk of 2^64 - 1",
     {.text = CHUNKED "ffffffffffffffff\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     200,
     NULL},
    {"a chunk with a size of 40 digits",
     {.text = CHUNKED "0000000000000000000000000000000000000005\r\nhello\r\n", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     200,
     ""},
    {"a chunk that is longer than it says",
     {.text = CHUNKED "3\r\nhello\r\n0\r\n\r\n", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     200,
     "hel"},
    {"a length as trailer",
     {.text = CHUNKED "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n", .after = AFTER_HANG},
     SBX_HTTP_PROTOCOL,
     200,
     "hello"},
    {"interim answers for ever",
     {.text = "", .after = AFTER_FLOOD, .loop = CONTINUE},
     SBX_HTTP_LIMIT,
     0,
     ""},
    {"fields for ever",
     {.text = OK, .after = AFTER_FLOOD, .loop = "X: y\r\n"},
     SBX_HTTP_LIMIT,
     0,
     ""},
    {"trailers for ever",
     {.text = CHUNKED "0\r\n", .after = AFTER_FLOOD, .loop = "X: y\r\n"},
     SBX_HTTP_LIMIT,
     200,
     ""},
    {"a field without an end",
     {.text = OK "X: ", .after = AFTER_FLOOD, .loop = LONG},
     SBX_HTTP_LIMIT,
     0,
     ""},
    {"a status line without an end",
     {.text = "HTTP/1.1 200 ", .after = AFTER_FLOOD, .loop = LONG},
     SBX_HTTP_LIMIT,
     0,
     ""},
    {"a trailer without an end",
     {.text = CHUNKED "0\r\nX: ", .after = AFTER_FLOOD, .loop = LONG},
     SBX_HTTP_PROTOCOL,
     200,
     ""},
    {"long fields for ever",
     {.text = OK, .after = AFTER_FLOOD, .loop = "X: " LONG LONG LONG LONG "\r\n"},
     SBX_HTTP_LIMIT,
     0,
     ""},
};

/* The message names the server, and says something else besides. */
static void check_why(const struct web *w, const struct seen *s)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "127.0.0.1:%u: ", w->server.port);
    assert_has(s->why.msg, name);
    assert_true(strlen(s->why.msg) > strlen(name));
    assert_null(strstr(s->why.msg, TOKEN));
    assert_int_equal(s->why.status, sbx_http_status(s->end));
}

static void check_row(void **state)
{
    struct web *w = *state;
    const struct row *row = w->row;
    const struct seen *s;

    serve(w, serve_answer, &row->answer);
    connect_to(w, 2);
    s = begin_get(w, 0);
    finish_all(w);
    assert_int_equal(s->dones, 1);
    assert_int_equal(s->end, row->end);
    assert_int_equal(s->has_head ? s->head.status : 0, row->status);
    assert_int_equal(s->heads, row->status ? 1 : 0);
    if (row->body)
        assert_text(&s->body, row->body);
    if (s->end == SBX_HTTP_OK)
        assert_int_equal(s->why.status, SBX_OK);
    else
        check_why(w, s);
    server_stop(&w->server);
    assert_int_equal(w->server.n_requests, 1);
}

/* What is waited for in vain, with clocks of 0.3 s. */
static const struct row silences[] = {
    {"nothing at all", {.text = "", .after = AFTER_HANG}, SBX_HTTP_STUCK, 0, ""},
    {"half a head", {.text = OK "Conte", .after = AFTER_HANG}, SBX_HTTP_STUCK, 0, ""},
    {"an interim answer and no more",
     {.text = CONTINUE, .after = AFTER_HANG},
     SBX_HTTP_STUCK,
     0,
     ""},
    {"a head that comes field by field",
     {.text = OK, .after = AFTER_DRIP, .loop = "X: y\r\n"},
     SBX_HTTP_STUCK,
     0,
     ""},
    {"a head that comes byte by byte",
     {.text = OK "X: ", .after = AFTER_DRIP, .loop = "y"},
     SBX_HTTP_STUCK,
     0,
     ""},
    {"a head and no more",
     {.text = OK "Content-Length: 5\r\n\r\n", .after = AFTER_HANG},
     SBX_HTTP_STUCK,
     200,
     ""},
    {"half a body",
     {.text = OK "Content-Length: 9\r\n\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_STUCK,
     200,
     "hello"},
    {"a body of no length and no more",
     {.text = OK "\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_STUCK,
     200,
     "hello"},
    {"half a chunk",
     {.text = CHUNKED "9\r\nhello", .after = AFTER_HANG},
     SBX_HTTP_STUCK,
     200,
     "hello"},
    {"the size of a chunk for ever",
     {.text = CHUNKED "5;", .after = AFTER_DRIP, .loop = "x"},
     SBX_HTTP_STUCK,
     200,
     ""},
    {"no end of trailers",
     {.text = CHUNKED "5\r\nhello\r\n0\r\n", .after = AFTER_HANG},
     SBX_HTTP_STUCK,
     200,
     "hello"},
};

static void check_silence(void **state)
{
    struct web *w = *state;
    const struct row *row = w->row;
    struct sbx_http_request r = request_of(&w->seen[0]);
    uint64_t began = sbx_clock_now();

    serve(w, serve_answer, &row->answer);
    connect_to(w, 2);
    r.first_ns = r.idle_ns = 300 * (uint64_t)SBX_NS_PER_MS;
    begin_request(w, &r);
    finish_all(w);
    assert_int_equal(w->seen[0].end, row->end);
    assert_int_equal(w->seen[0].has_head ? w->seen[0].head.status : 0, row->status);
    assert_text(&w->seen[0].body, row->body);
    check_why(w, &w->seen[0]);
    assert_true(seconds_since(began) >= 0.29);
    assert_true(seconds_since(began) < 3);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS];
    size_t n = web_rows(tests, 0, ROWS(rows), check_row);

    if (sbx_http_init(NULL))
        return 1;
    n = web_rows(tests, n, ROWS(silences), check_silence);
    return rows_run("answers to the HTTP client", tests, n);
}
