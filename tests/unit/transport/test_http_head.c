/* Heads of answers, line by line: what counts of them, and what is refused. */
#include "tests/support/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "transport/http_head.h"

#define MAX_TESTS 192
#define OK "HTTP/1.1 200 OK\r\n"
#define MOST "9223372036854775807"

/* Gives text to the reader, a line at a time. The first failure ends it. */
static enum sbx_status read_lines(struct sbx_http_head_reader *r, const char *text, size_t n)
{
    enum sbx_status st = SBX_OK;
    struct sbx_error err = {.status = SBX_OK};

    while (n > 0 && !st) {
        const char *lf = memchr(text, '\n', n);
        size_t line = lf ? (size_t)(lf - text) + 1 : n;

        st = sbx_http_head_line(r, text, line, &err);
        assert_int_equal(err.status, st);
        assert_true(!st || err.msg[0]);
        text += line;
        n -= line;
    }
    return st;
}

static const struct good {
    const char *name, *text;
    struct sbx_http_head want;
} goods[] = {
    {"a status and nothing else", OK "\r\n", {.status = 200}},
    {"HTTP/1.0", "HTTP/1.0 404 Not Found\r\n\r\n", {.status = 404}},
    {"no reason", "HTTP/1.1 200\r\n\r\n", {.status = 200}},
    {"an empty reason", "HTTP/1.1 200 \r\n\r\n", {.status = 200}},
    {"a reason that is no UTF-8", "HTTP/1.1 200 \377\r\n\r\n", {.status = 200}},
    {"the highest status", "HTTP/1.1 999 X\r\n\r\n", {.status = 999}},
    {"lines that end in LF alone",
     "HTTP/1.1 200 OK\nContent-Length: 3\n\n",
     {.status = 200, .has_length = true, .length = 3}},
    {"a length",
     OK "Content-Length: 12\r\n\r\n",
     {.status = 200, .has_length = true, .length = 12}},
    {"a length of nothing", OK "Content-Length: 0\r\n\r\n", {.status = 200, .has_length = true}},
    {"the greatest length",
     OK "Content-Length: " MOST "\r\n\r\n",
     {.status = 200, .has_length = true, .length = INT64_MAX}},
    {"a length with zeros in front",
     OK "Content-Length: 0012\r\n\r\n",
     {.status = 200, .has_length = true, .length = 12}},
    {"names in any letters",
     OK "cONTENT-lENGTH:12\r\n\r\n",
     {.status = 200, .has_length = true, .length = 12}},
    {"blanks and tabs around a value",
     OK "Content-Length: \t 12 \t \r\n\r\n",
     {.status = 200, .has_length = true, .length = 12}},
    {"the same length twice",
     OK "Content-Length: 12\r\nContent-Length: 12\r\n\r\n",
     {.status = 200, .has_length = true, .length = 12}},
    {"chunks", OK "Transfer-Encoding: Chunked\r\n\r\n", {.status = 200, .chunked = true}},
    {"identity", OK "Content-Encoding: identity\r\n\r\n", {.status = 200}},
    {"a range",
     "HTTP/1.1 206 P\r\nContent-Range: bytes 3-7/11\r\n\r\n",
     {.status = 206, .has_range = true, .total_known = true, .first = 3, .last = 7, .total = 11}},
    {"a range of one byte",
     "HTTP/1.1 206 P\r\nContent-Range: Bytes 0-0/1\r\n\r\n",
     {.status = 206, .has_range = true, .total_known = true, .total = 1}},
    {"a range of a total that nobody knows",
     "HTTP/1.1 206 P\r\nContent-Range: bytes 3-7/*\r\n\r\n",
     {.status = 206, .has_range = true, .first = 3, .last = 7}},
    {"no range, and a total",
     "HTTP/1.1 416 N\r\nContent-Range: bytes */11\r\n\r\n",
     {.status = 416, .has_range = true, .unsatisfied = true, .total_known = true, .total = 11}},
    {"a wish to wait",
     "HTTP/1.1 503 B\r\nRetry-After: 2\r\n\r\n",
     {.status = 503, .retry_after_s = 2}},
    {"a wish to wait for ever",
     "HTTP/1.1 503 B\r\nRetry-After: 99999999999\r\n\r\n",
     {.status = 503, .retry_after_s = UINT32_MAX}},
    {"a date to wait for",
     "HTTP/1.1 503 B\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n",
     {.status = 503}},
    {"what nobody asks for",
     OK "Set-Cookie: a=b\r\nX_!#$%&'*+-.^`|~1: \377\r\nEmpty:\r\n\r\n",
     {.status = 200}},
    {"an interim head leaves nothing behind",
     "HTTP/1.1 103 Hints\r\nContent-Length: 5\r\nRetry-After: 1\r\n\r\n" OK "\r\n",
     {.status = 200}},
    {"eight interim heads",
     "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\n"
     "HTTP/1.1 102 C\r\n\r\nHTTP/1.1 103 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 199 C\r\n\r\n" OK
     "\r\n",
     {.status = 200}},
    {"trailers change nothing",
     OK "Transfer-Encoding: chunked\r\n\r\nX-Sum: 1\r\nContent-Range: bytes 0-0/1\r\n\r\n",
     {.status = 200, .chunked = true}},
};

static void check_good(void **state)
{
    const struct good *g = *state;
    struct sbx_http_head_reader r = {.begun = false};

    assert_int_equal(read_lines(&r, g->text, strlen(g->text)), SBX_OK);
    assert_true(r.done);
    assert_int_equal(r.head.status, g->want.status);
    assert_int_equal(r.head.chunked, g->want.chunked);
    assert_int_equal(r.head.has_length, g->want.has_length);
    assert_int_equal(r.head.length, g->want.length);
    assert_int_equal(r.head.has_range, g->want.has_range);
    assert_int_equal(r.head.unsatisfied, g->want.unsatisfied);
    assert_int_equal(r.head.total_known, g->want.total_known);
    assert_int_equal(r.head.first, g->want.first);
    assert_int_equal(r.head.last, g->want.last);
    assert_int_equal(r.head.total, g->want.total);
    assert_int_equal(r.head.retry_after_s, g->want.retry_after_s);
}

#define LINE(text) text, sizeof(text) - 1

static const struct bad {
    const char *name, *text;
    size_t n;
} bads[] = {
    {"no HTTP", LINE("SSH-2.0-OpenSSH_9.2\r\n")},
    {"HTTP/2", LINE("HTTP/2 200\r\n")},
    {"HTTP/1.2", LINE("HTTP/1.2 200 OK\r\n")},
    {"HTTP/0.9", LINE("<html>\r\n")},
    {"http in small letters", LINE("http/1.1 200 OK\r\n")},
    {"a field before the status", LINE("Content-Length: 1\r\n")},
    {"a status of two digits", LINE("HTTP/1.1 20 OK\r\n")},
    {"a status of four digits", LINE("HTTP/1.1 2000 OK\r\n")},
    {"a status below 100", LINE("HTTP/1.1 099 OK\r\n")},
    {"a status with a sign", LINE("HTTP/1.1 +20 OK\r\n")},
    {"a status that is no number", LINE("HTTP/1.1 2x0 OK\r\n")},
    {"two blanks before the status", LINE("HTTP/1.1  200 OK\r\n")},
    {"a tab behind the status", LINE("HTTP/1.1 200\tOK\r\n")},
    {"a switch of protocols", LINE("HTTP/1.1 101 Switching\r\n")},
    {"two status lines", LINE(OK OK "\r\n")},
    {"a CR in a value", LINE(OK "X: a\rb\r\n")},
    {"a CR in a reason", LINE("HTTP/1.1 200 O\rK\r\n")},
    {"two CR at the end", LINE(OK "X: a\r\r\n")},
    {"a NUL in a value", LINE(OK "X: a\0b\r\n")},
    {"a NUL in a name", LINE(OK "X\0: a\r\n")},
    {"a line that goes on with a blank", LINE(OK "X: a\r\n b\r\n")},
    {"a line that goes on with a tab", LINE(OK "X: a\r\n\tb\r\n")},
    {"a blank before the first field", LINE(OK " X: a\r\n")},
    {"no colon", LINE(OK "Content-Length 12\r\n")},
    {"no name", LINE(OK ": 12\r\n")},
    {"a blank before the colon", LINE(OK "Content-Length : 12\r\n")},
    {"a name with a slash", LINE(OK "X/Y: 12\r\n")},
    {"a name that is no ASCII", LINE(OK "X\303\244: 12\r\n")},
    {"a length that is empty", LINE(OK "Content-Length:\r\n")},
    {"a length with a sign", LINE(OK "Content-Length: +5\r\n")},
    {"a negative length", LINE(OK "Content-Length: -1\r\n")},
    {"a length in hexadecimal", LINE(OK "Content-Length: 0x5\r\n")},
    {"a length with a blank", LINE(OK "Content-Length: 1 2\r\n")},
    {"a length with a comma", LINE(OK "Content-Length: 12, 12\r\n")},
    {"a length with a unit", LINE(OK "Content-Length: 12b\r\n")},
    {"a length of 2^63", LINE(OK "Content-Length: 9223372036854775808\r\n")},
    {"a length of 2^64 and a bit", LINE(OK "Content-Length: 18446744073709551617\r\n")},
    {"a length of 30 digits", LINE(OK "Content-Length: 000000000000000000000000000012\r\n")},
    {"two lengths", LINE(OK "Content-Length: 12\r\nContent-Length: 13\r\n")},
    {"a length of nothing, and another", LINE(OK "Content-Length: 0\r\nContent-Length: 1\r\n")},
    {"a length, then chunks", LINE(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")},
    {"chunks, then a length", LINE(OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n")},
    {"both in an interim head",
     LINE("HTTP/1.1 100 C\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n")},
    {"gzip as transfer", LINE(OK "Transfer-Encoding: gzip\r\n")},
    {"gzip, then chunks", LINE(OK "Transfer-Encoding: gzip, chunked\r\n")},
    {"identity as transfer", LINE(OK "Transfer-Encoding: identity\r\n")},
    {"chunks twice", LINE(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
    {"chunks with a parameter", LINE(OK "Transfer-Encoding: chunked;a=b\r\n")},
    {"an empty transfer", LINE(OK "Transfer-Encoding:\r\n")},
    {"gzip", LINE(OK "Content-Encoding: gzip\r\n")},
    {"gzip beside identity", LINE(OK "Content-Encoding: identity, gzip\r\n")},
    {"identity, then gzip", LINE(OK "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n")},
    {"a range without a total", LINE(OK "Content-Range: bytes 0-9\r\n")},
    {"a range without a unit", LINE(OK "Content-Range: 0-9/10\r\n")},
    {"a range of another unit", LINE(OK "Content-Range: lines 0-9/10\r\n")},
    {"a range without an end", LINE(OK "Content-Range: bytes 0-/10\r\n")},
    {"a range without a start", LINE(OK "Content-Range: bytes -9/10\r\n")},
    {"a range with a blank", LINE(OK "Content-Range: bytes 0 - 9/10\r\n")},
    {"a range of nothing at all", LINE(OK "Content-Range: bytes \r\n")},
    {"a range of a slash", LINE(OK "Content-Range: bytes /\r\n")},
    {"a slash before the range", LINE(OK "Content-Range: b/tes 0-9\r\n")},
    {"a range with two totals", LINE(OK "Content-Range: bytes 0-9/10/11\r\n")},
    {"a range of a total with a sign", LINE(OK "Content-Range: bytes 0-9/+10\r\n")},
    {"a range that ends before it begins", LINE(OK "Content-Range: bytes 11-10/11\r\n")},
    {"a range beyond its total", LINE(OK "Content-Range: bytes 0-10/10\r\n")},
    {"neither range nor total", LINE(OK "Content-Range: bytes */*\r\n")},
    {"two ranges", LINE(OK "Content-Range: bytes 0-9/10\r\nContent-Range: bytes 0-9/10\r\n")},
    {"a length as trailer", LINE(OK "Transfer-Encoding: chunked\r\n\r\nContent-Length: 5\r\n")},
    {"chunks as trailer",
     LINE(OK "Transfer-Encoding: chunked\r\n\r\nTransfer-Encoding: chunked\r\n")},
    {"a status line as trailer", LINE(OK "\r\n" OK)},
};

static void check_bad(void **state)
{
    const struct bad *b = *state;
    struct sbx_http_head_reader r = {.begun = false};

    assert_int_equal(read_lines(&r, b->text, b->n), SBX_E_REMOTE);
}

/* Gives n lines, each with `len` bytes. */
static enum sbx_status read_many(struct sbx_http_head_reader *r, size_t n, size_t len)
{
    static char line[2 * SBX_HTTP_HEAD];
    enum sbx_status st = SBX_OK;

    assert_in_range(len, 4, sizeof(line));
    memset(line, 'x', len);
    line[1] = ':';
    line[len - 1] = '\n';
    for (size_t i = 0; i < n && !st; i++)
        st = sbx_http_head_line(r, line, len, NULL);
    return st;
}

static void lines_are_bounded_in_number(void **state)
{
    struct sbx_http_head_reader r = {.begun = false};

    (void)state;
    assert_int_equal(read_lines(&r, OK, strlen(OK)), SBX_OK);
    assert_int_equal(read_many(&r, SBX_HTTP_LINES - 1, 4), SBX_OK);
    assert_int_equal(read_many(&r, 1, 4), SBX_E_LIMIT);
}

static void bytes_of_all_lines_are_bounded(void **state)
{
    struct sbx_http_head_reader r = {.begun = false};

    (void)state;
    assert_int_equal(read_lines(&r, OK, strlen(OK)), SBX_OK);
    assert_int_equal(read_many(&r, 15, 4096), SBX_OK);
    assert_int_equal(read_many(&r, 1, 4096 - strlen(OK)), SBX_OK);
    assert_int_equal(read_many(&r, 1, 4), SBX_E_LIMIT);
}

static void one_long_line_is_a_limit(void **state)
{
    struct sbx_http_head_reader r = {.begun = false};

    (void)state;
    assert_int_equal(read_lines(&r, OK, strlen(OK)), SBX_OK);
    assert_int_equal(read_many(&r, 1, SBX_HTTP_HEAD + 1), SBX_E_LIMIT);
}

static void trailers_count_with_their_head(void **state)
{
    static const char head[] = OK "Transfer-Encoding: chunked\r\n\r\n";
    struct sbx_http_head_reader r = {.begun = false};

    (void)state;
    assert_int_equal(read_lines(&r, head, strlen(head)), SBX_OK);
    assert_int_equal(read_many(&r, SBX_HTTP_LINES - 3, 4), SBX_OK);
    assert_int_equal(read_many(&r, 1, 4), SBX_E_LIMIT);
}

static void interim_heads_are_bounded_in_number(void **state)
{
    static const char head[] = "HTTP/1.1 100 C\r\n\r\n";
    struct sbx_http_head_reader r = {.begun = false};

    (void)state;
    for (unsigned i = 0; i < SBX_HTTP_INTERIM; i++)
        assert_int_equal(read_lines(&r, head, strlen(head)), SBX_OK);
    assert_false(r.done);
    assert_int_equal(r.head.status, 0);
    assert_int_equal(read_lines(&r, head, strlen(head)), SBX_E_LIMIT);
}

static void a_head_is_done_with_its_empty_line(void **state)
{
    struct sbx_http_head_reader r = {.begun = false};

    (void)state;
    assert_int_equal(read_lines(&r, OK "X: y\r\n", strlen(OK "X: y\r\n")), SBX_OK);
    assert_true(r.begun);
    assert_false(r.done);
    assert_int_equal(read_lines(&r, "\r\n", 2), SBX_OK);
    assert_true(r.done);
}

static void a_message_shows_nothing_of_the_peer(void **state)
{
    struct sbx_http_head_reader r = {.begun = false};
    struct sbx_error err = {.status = SBX_OK};

    (void)state;
    assert_int_equal(sbx_http_head_line(&r, "secret\x1b[2J\r\n", 12, &err), SBX_E_REMOTE);
    assert_null(strstr(err.msg, "secret"));
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS] = {
        cmocka_unit_test(lines_are_bounded_in_number),
        cmocka_unit_test(bytes_of_all_lines_are_bounded),
        cmocka_unit_test(one_long_line_is_a_limit),
        cmocka_unit_test(trailers_count_with_their_head),
        cmocka_unit_test(interim_heads_are_bounded_in_number),
        cmocka_unit_test(a_head_is_done_with_its_empty_line),
        cmocka_unit_test(a_message_shows_nothing_of_the_peer),
    };
    size_t n = rows_add(tests, 7, ROWS(goods), check_good);

    n = rows_add(tests, n, ROWS(bads), check_bad);
    return rows_run("heads of HTTP answers", tests, n);
}
