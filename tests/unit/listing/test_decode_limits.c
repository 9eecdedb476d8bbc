#include "listing/decode.h"

#include <stdio.h>

#include "base/limits.h"
#include "tests/support/rows.h"
#include "tests/unit/listing/stream.h"

#define RECORDS                                                                                    \
    "1 2.5 3.5 a\0"                                                                                \
    "end 0\0"
#define PLAIN "printf,plain,base64"

struct fixture {
    struct sbx_buf text;        /* owned */
    struct sbx_list_decoder *d; /* owned */
    struct sbx_error err;
};

static struct fixture fx;

static int teardown(void **state)
{
    (void)state;
    sbx_list_decoder_free(fx.d);
    sbx_buf_done(&fx.text);
    fx = (struct fixture){.d = NULL};
    return 0;
}

static void start(uint64_t max)
{
    assert_int_equal(sbx_list_decoder_new(NONCE, max, (struct sbx_sink){NULL, NULL}, &fx.d, NULL),
                     SBX_OK);
}

static enum sbx_status push(const char *bytes, size_t n)
{
    return sbx_list_decoder_push(fx.d, bytes, n, &fx.err);
}

static const struct endless_row {
    const char *why;
    const char *tools;
    const char *first; /* once, then `then` for ever */
    const char *then;
    size_t n_then;
    uint64_t most; /* bytes taken before it fails, at most */
    enum sbx_status want;
    const char *message;
} endless_rows[] = {
    {"valid base64 for ever", PLAIN, "", BYTES("MSAxIDEgYQAA\n"), 2 * SBX_MIB, SBX_E_LIMIT,
     "decoded"},
    {"a line of base64 that never ends", PLAIN, "", BYTES("MSAxIDEgYQAA"), 2 * SBX_MIB, SBX_E_LIMIT,
     "decoded"},
    {"hex for ever", "stat,plain,hex", "", BYTES(" 31 20 31 20\n"), 4 * SBX_MIB, SBX_E_LIMIT,
     "decoded"},
    {"a packed stream of nothing", "printf,gzip,base64",
     "H4sIAAAAAAAAA"
     "wAA"
     "AP//\n",
     BYTES("AAAA//8AAAD//wAAAP//\n"), 2 * SBX_MIB, SBX_E_LIMIT, "encoded"},
    {"blank lines for ever", PLAIN, "", BYTES("\r\n"), 4 * SBX_MIB, SBX_E_LIMIT, "raw"},
    {"blanks for ever", PLAIN, "", BYTES("    "), 4 * SBX_MIB, SBX_E_LIMIT, "raw"},
    {"our nonce and a line that never ends", PLAIN, NONCE " ", BYTES("x"), 128 * SBX_KIB,
     SBX_E_REMOTE, "endless line"},
    {"blank lines after the end", PLAIN, NONCE " end find=0 cap=0 pack=0 encode=0\n", BYTES(" \n"),
     4 * SBX_MIB, SBX_E_LIMIT, "raw"},
};

static void check_endless(void **state)
{
    const struct endless_row *row = *state;
    char begin[200];
    uint64_t sent = 0;
    enum sbx_status st = SBX_OK;

    start(SBX_MIB);
    (void)snprintf(begin, sizeof(begin), NONCE " begin v=1 root=ok now=1 tools=%s\n", row->tools);
    assert_int_equal(push(begin, strlen(begin)), SBX_OK);
    assert_int_equal(push(row->first, strlen(row->first)), SBX_OK);
    for (; !st && sent < 4 * row->most; sent += row->n_then)
        st = push(row->then, row->n_then);
    assert_int_equal(st, row->want);
    assert_non_null(strstr(fx.err.msg, row->message));
    assert_in_range(sent, 0, row->most);
}

static void endless_noise(void **state)
{
    enum sbx_status st = SBX_OK;
    size_t sent = 0;

    (void)state;
    start(SBX_MIB);
    for (; !st && sent < SBX_MIB; sent += 16)
        st = push("aaaaaaaaaaaaaaaa", 16);
    assert_int_equal(st, SBX_E_REMOTE);
    assert_in_range(sent, SBX_MAX_NOISE, SBX_MAX_NOISE + 16);
}

/* 1000 : 1, as gzip goes at best. */
static void bomb(void **state)
{
    struct stream s = {.n_payload = 64 * SBX_MIB};
    char *zeros = calloc(1, s.n_payload); /* freed below, before any assertion */

    (void)state;
    s.payload = zeros;
    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    free(zeros);
    start(SBX_MIB);
    assert_int_equal(push(fx.text.data, fx.text.len), SBX_E_LIMIT);
}

static enum sbx_status refuse(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    (void)bytes;
    (void)n;
    (void)err;
    return *(enum sbx_status *)ctx;
}

static void failing_sink(void **state)
{
    enum sbx_status busy = SBX_E_BUSY;
    const struct stream s = {.payload = BYTES(RECORDS)};

    (void)state;
    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    assert_int_equal(
        sbx_list_decoder_new(NONCE, SBX_MIB, (struct sbx_sink){refuse, &busy}, &fx.d, NULL),
        SBX_OK);
    assert_int_equal(push(fx.text.data, fx.text.len), SBX_E_BUSY);
    busy = SBX_OK;
    assert_int_equal(push("\n", 1), SBX_E_BUSY);
    assert_int_equal(sbx_list_decoder_end(fx.d, NULL), SBX_E_BUSY);
}

static void nothing_came(void **state)
{
    (void)state;
    start(SBX_MIB);
    assert_int_equal(sbx_list_decoder_end(fx.d, &fx.err), SBX_E_REMOTE);
    assert_string_equal(fx.err.msg, "no begin line");
    assert_int_equal(sbx_list_decoder_frame(fx.d)->root, SBX_ROOT_UNKNOWN);
}

static void bad_nonce(void **state)
{
    (void)state;
    assert_int_equal(
        sbx_list_decoder_new("abc", SBX_MIB, (struct sbx_sink){NULL, NULL}, &fx.d, NULL),
        SBX_E_USAGE);
    assert_null(fx.d);
}

int main(void)
{
    struct CMUnitTest tests[32];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(endless_rows), check_endless);
    tests[n++] = (struct CMUnitTest){.name = "noise for ever ends soon after its limit",
                                     .test_func = endless_noise};
    tests[n++] = (struct CMUnitTest){
        .name = "a packed stream that opens to 64 MiB stops at the limit", .test_func = bomb};
    tests[n++] =
        (struct CMUnitTest){.name = "a failure of the receiver is kept and returned unchanged",
                            .test_func = failing_sink};
    tests[n++] =
        (struct CMUnitTest){.name = "no output at all is no listing", .test_func = nothing_came};
    tests[n++] =
        (struct CMUnitTest){.name = "a nonce of another length is refused", .test_func = bad_nonce};
    for (size_t i = 0; i < n; i++)
        tests[i].teardown_func = teardown;
    return rows_run("listing decode limits", tests, n);
}
