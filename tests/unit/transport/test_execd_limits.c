/* What a stream of execd's events may cost. */
#include "tests/unit/transport/events.h"

#include <stdlib.h>
#include <sys/resource.h>

#define MAX_TESTS 64
#define EVENTS 10000000u /* that nobody needs */
#define BLOCK (64 * SBX_KIB)
#define NOISE "0123456789012345678901234567890123456789012345678901234567890123456789"

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const char head[] = "{\"type\":\"stdout\",\"text\":\"", tail[] = "\"}";

static enum sbx_status count(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    uint64_t *sum = ctx;

    (void)bytes;
    (void)err;
    *sum += n;
    return SBX_OK;
}

/* Texts are counted and dropped. */
static void begin_counting(uint64_t *out, uint64_t *diag)
{
    begin();
    sbx_execd_events_init(&fx.events, (struct sbx_sink){count, out}, (struct sbx_sink){count, diag},
                          &fx.secrets);
}

/* Appends n bytes 'x' to fx.body. */
static void add_text(size_t n)
{
    assert_int_equal(sbx_buf_reserve(&fx.body, n, NULL), SBX_OK);
    memset(fx.body.data + fx.body.len, 'x', n);
    fx.body.len += n;
}

/* One stdout event in fx.body whose line is n bytes long, its end not counted. */
static void make_line(size_t n, const char *end)
{
    sbx_buf_clear(&fx.body);
    assert_int_equal(sbx_buf_str(&fx.body, head, NULL), SBX_OK);
    add_text(n - strlen(head) - strlen(tail));
    assert_int_equal(sbx_buf_str(&fx.body, tail, NULL), SBX_OK);
    assert_int_equal(fx.body.len, n);
    assert_int_equal(sbx_buf_str(&fx.body, end, NULL), SBX_OK);
}

static enum sbx_status feed_by(size_t piece)
{
    enum sbx_status st = SBX_OK;

    for (size_t at = 0; at < fx.body.len && !st; at += piece)
        st = feed(fx.body.data + at, fx.body.len - at < piece ? fx.body.len - at : piece);
    return st;
}

static const struct line_row {
    const char *name;
    size_t n, piece;
    const char *end;
    enum sbx_status status;
} line_rows[] = {
    {"the longest line", SBX_EVENT_LINE, SBX_MIB * 2, "\n", SBX_OK},
    {"the longest line in parts", SBX_EVENT_LINE, 4099, "\n", SBX_OK},
    {"the longest line, byte by byte", SBX_EVENT_LINE, 1, "\n", SBX_OK},
    {"one byte more", SBX_EVENT_LINE + 1, SBX_MIB * 2, "\n", SBX_E_LIMIT},
    {"one byte more in parts", SBX_EVENT_LINE + 1, 4099, "\n", SBX_E_LIMIT},
    {"one byte more, byte by byte", SBX_EVENT_LINE + 1, 1, "\n", SBX_E_LIMIT},
    {"a CR is a byte more", SBX_EVENT_LINE, 4099, "\r\n", SBX_E_LIMIT},
    {"one byte more and no end yet", SBX_EVENT_LINE + 1, 4099, "", SBX_E_LIMIT},
};

static void check_line(void **state)
{
    const struct line_row *row = *state;
    uint64_t out = 0, diag = 0;

    make_line(row->n, row->end);
    begin_counting(&out, &diag);
    assert_int_equal(feed_by(row->piece), row->status);
    assert_int_equal(out, row->status ? 0 : row->n - strlen(head) - strlen(tail) + 1);
    assert_true(fx.events.line.len <= SBX_EVENT_LINE);
    if (row->status)
        assert_non_null(strstr(fx.err.msg, "a line of more than 1048576 bytes"));
}

/* Events that go on for ever, with how many bytes of output each. */
static const struct endless_row {
    const char *name;
    const char *event;
    unsigned text;
} endless[] = {
    {"pings without end", "{\"type\":\"ping\"}\n\n", 0},
    {"empty output without end", "{\"type\":\"stdout\"}\n\n", 0},
    {"output of a byte a line without end", "{\"type\":\"stdout\",\"text\":\"a\"}\n\n", 1},
    {"standard error without end",
     "{\"type\":\"stderr\",\"text\":\"" NOISE NOISE NOISE NOISE "\"}\n\n", 0},
    {"comments without end", ": " NOISE "\n: " NOISE "\n", 0},
    {"line ends without end", "\n\r\n\n\n\r\n\n\n\r\n\n\n\r\n\n", 0},
};

static void check_endless(void **state)
{
    const struct endless_row *row = *state;
    const size_t n = strlen(row->event);
    uint64_t out = 0, diag = 0, raw, useful;
    enum sbx_status st = SBX_OK;
    unsigned many;

    begin_counting(&out, &diag);
    for (many = 0; many < EVENTS && !st; many++)
        st = feed(row->event, n);
    assert_int_equal(st, SBX_E_LIMIT);
    raw = (uint64_t)n * many;
    useful = (uint64_t)row->text * many;
    assert_true(raw > SBX_EVENT_SLACK + SBX_EVENT_FACTOR * (useful - row->text));
    assert_true(raw - 2 * n <= SBX_EVENT_SLACK + SBX_EVENT_FACTOR * (useful + 1));
}

/* Streams as a listing makes them, of more text than could be taken for noise. */
static const struct honest_row {
    const char *name;
    size_t text; /* bytes of a line */
} honest[] = {
    {"lines of 256 bytes", 256},
    {"lines of 16,384 bytes", 16384},
    {"lines of 65,536 bytes", 65536},
};

static void check_honest(void **state)
{
    const struct honest_row *row = *state;
    uint64_t out = 0, diag = 0;
    enum sbx_status st = SBX_OK;
    struct rusage before, after;

    make_line(row->text + strlen(head) + strlen(tail), "\n\n");
    begin_counting(&out, &diag);
    st = feed_by(BLOCK);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    while (!st && out < 4 * SBX_EVENT_SLACK)
        st = feed_by(BLOCK);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_int_equal(st, SBX_OK);
    assert_int_equal(out % (row->text + 1), 0);
    assert_true(fx.events.line.cap <= 2 * (row->text + 1024));
#if !SANITIZED
    assert_true(after.ru_maxrss - before.ru_maxrss < 4 * 1024); /* KiB */
#endif
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(line_rows), check_line);
    n = rows_add(tests, n, ROWS(endless), check_endless);
    n = rows_add(tests, n, ROWS(honest), check_honest);
    return _cmocka_run_group_tests("limits of execd's events", tests, n, group_setup,
                                   group_teardown);
}
