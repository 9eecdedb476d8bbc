#include "listing/decode.h"

#include <stdio.h>

#include "base/limits.h"
#include "tests/support/rows.h"
#include "tests/unit/listing/stream.h"

#define RECORDS                                                                                    \
    "1 2.5 3.5 a\0"                                                                                \
    "2 2.5 3.5 b/c\n.\0"                                                                           \
    "end 0\0"
#define PLAIN "printf,plain,base64"

static char noise[66 * 1024]; /* a line of text */
static char noise_at_limit[66 * 1024];

static const struct decode_row {
    const char *why;
    struct stream s;
    uint64_t max; /* 0: 1 MiB */
    enum sbx_status want;
    const char *message; /* part of it */
    bool no_payload;     /* nothing is decoded */
} rows[] = {
    {"gzip and base64", {.payload = BYTES(RECORDS)}, 0, SBX_OK, NULL, false},
    {"plain base64", {.payload = BYTES(RECORDS), .tools = PLAIN}, 0, SBX_OK, NULL, false},
    {"gzip and hex",
     {.payload = BYTES(RECORDS), .tools = "printf,gzip,hex"},
     0,
     SBX_OK,
     NULL,
     false},
    {"plain hex", {.payload = BYTES(RECORDS), .tools = "stat,plain,hex"}, 0, SBX_OK, NULL, false},
    {"nothing but an empty stream", {.payload = BYTES("")}, 0, SBX_OK, NULL, true},
    {"CRLF for line ends",
     {.payload = BYTES(RECORDS), .eol = "\r\n", .width = 20},
     0,
     SBX_OK,
     NULL,
     false},
    {"CR alone for line ends",
     {.payload = BYTES(RECORDS), .eol = "\r", .width = 20},
     0,
     SBX_OK,
     NULL,
     false},
    {"blank lines between all lines",
     {.payload = BYTES(RECORDS), .eol = "\n\n \t\n\r\n", .width = 20},
     0,
     SBX_OK,
     NULL,
     false},
    {"lines shorter than a quantum",
     {.payload = BYTES(RECORDS), .width = 3},
     0,
     SBX_OK,
     NULL,
     false},
    {"blanks inside encoded lines",
     {.payload = BYTES(RECORDS), .sep = " \t", .width = 2},
     0,
     SBX_OK,
     NULL,
     false},
    {"the last line end is lost",
     {.payload = BYTES(RECORDS), .end = "-", .after = NONCE " end find=0 cap=0 pack=0 encode=0"},
     0,
     SBX_OK,
     NULL,
     false},
    {"blank lines after the end",
     {.payload = BYTES(RECORDS), .after = "\n \r\n\t\n"},
     0,
     SBX_OK,
     NULL,
     false},
    {"a greeting before the begin line",
     {.payload = BYTES(RECORDS), .before = "\x1b[33mOnly these folders persist\n"},
     0,
     SBX_OK,
     NULL,
     false},
    {"a greeting without a line end",
     {.payload = BYTES(RECORDS), .before = "\x1b[33mOnly these folders persist"},
     0,
     SBX_OK,
     NULL,
     false},
    {"a greeting that is valid base64",
     {.payload = BYTES(RECORDS), .before = "V2VsY29tZQo=\n"},
     0,
     SBX_OK,
     NULL,
     false},
    {"a forged begin line of another nonce before ours",
     {.payload = BYTES(RECORDS), .before = OTHER " begin v=1 root=missing now=1 tools=" PLAIN "\n"},
     0,
     SBX_OK,
     NULL,
     false},
    {"the script's own text is echoed before",
     {.payload = BYTES(RECORDS), .before = "n=" NONCE "\n" NONCE "\n"},
     0,
     SBX_OK,
     NULL,
     false},
    {"our nonce in the middle of a noise line",
     {.payload = BYTES(RECORDS), .before = "x " NONCE " begin v=1 root=missing now=1 tools=" PLAIN},
     0,
     SBX_OK,
     NULL,
     false},
    {"an end line before the begin line is noise",
     {.payload = BYTES(RECORDS), .before = NONCE " end find=1\n"},
     0,
     SBX_OK,
     NULL,
     false},
    {"64 KiB of noise",
     {.payload = BYTES(RECORDS), .before = noise_at_limit},
     0,
     SBX_OK,
     NULL,
     false},
    {"a byte more noise than 64 KiB",
     {.payload = BYTES(RECORDS), .before = noise},
     0,
     SBX_E_REMOTE,
     "no begin line within 65536 bytes",
     false},
    {"nothing but noise",
     {.payload = BYTES(""), .begin = "v=1", .before = "", .end = "-"},
     0,
     SBX_E_REMOTE,
     "begin line without",
     true},
    {"a missing root",
     {.payload = BYTES(""),
      .tools = PLAIN,
      .begin = "v=1 root=missing now=5 tools=" PLAIN,
      .end = "-"},
     0,
     SBX_OK,
     NULL,
     true},
    {"a root that is no directory",
     {.payload = BYTES(""),
      .tools = PLAIN,
      .begin = "v=1 root=notdir now=5 tools=" PLAIN,
      .end = "-",
      .after = "\r\n"},
     0,
     SBX_OK,
     NULL,
     true},
    {"data after a missing root",
     {.payload = BYTES(RECORDS),
      .tools = PLAIN,
      .begin = "v=1 root=missing now=5 tools=" PLAIN,
      .end = "-"},
     0,
     SBX_E_REMOTE,
     "text after the end",
     true},
    {"an end line after a missing root",
     {.payload = BYTES(""), .tools = PLAIN, .begin = "v=1 root=missing now=5 tools=" PLAIN},
     0,
     SBX_E_REMOTE,
     "text after the end",
     true},
    {"a foreign line in the middle",
     {.payload = BYTES(RECORDS), .width = 20, .middle = "... reconnecting"},
     0,
     SBX_E_REMOTE,
     "base64: foreign character",
     true},
    {"a banner of valid base64 in the middle",
     {.payload = BYTES(RECORDS), .width = 20, .middle = "V2VsY29tZQo="},
     0,
     SBX_E_REMOTE,
     "",
     true},
    {"base64 without padding in the middle of a packed stream",
     {.payload = BYTES(RECORDS), .width = 20, .middle = "V2VsY29t"},
     0,
     SBX_E_REMOTE,
     "packed stream",
     true},
    {"a forged begin line of another nonce in the middle",
     {.payload = BYTES(RECORDS),
      .tools = PLAIN,
      .width = 20,
      .middle = OTHER " begin v=1 root=ok now=1 tools=" PLAIN},
     0,
     SBX_E_REMOTE,
     "base64",
     true},
    {"a forged end line of another nonce in the middle",
     {.payload = BYTES(RECORDS),
      .tools = PLAIN,
      .width = 20,
      .middle = OTHER " end find=0 cap=0 pack=0 encode=0"},
     0,
     SBX_E_REMOTE,
     "base64",
     true},
    {"a second begin line of ours",
     {.payload = BYTES(RECORDS),
      .width = 20,
      .middle = NONCE " begin v=1 root=ok now=1 tools=" PLAIN},
     0,
     SBX_E_REMOTE,
     "unexpected line",
     true},
    {"our nonce alone on a line",
     {.payload = BYTES(RECORDS), .width = 20, .middle = NONCE},
     0,
     SBX_E_REMOTE,
     "unexpected line",
     true},
    {"a line that begins like our nonce is data",
     {.payload = BYTES("\xd3\x4d\x75\xdb\x6d\xb7"),
      .tools = PLAIN,
      .begin = "v=1 root=ok now=1 tools=" PLAIN "\n0011223344556677",
      .width = 16},
     0,
     SBX_OK,
     NULL,
     true},
    {"text after the end line",
     {.payload = BYTES(RECORDS), .after = "logout\n"},
     0,
     SBX_E_REMOTE,
     "text after the end",
     true},
    {"text after the end line without a line end",
     {.payload = BYTES(RECORDS), .after = "V2VsY29tZQo="},
     0,
     SBX_E_REMOTE,
     "text after the end",
     true},
    {"a second end line",
     {.payload = BYTES(RECORDS), .after = NONCE " end find=0 cap=0 pack=0 encode=0\n"},
     0,
     SBX_E_REMOTE,
     "text after the end",
     true},
    {"the nonce alone after the end line",
     {.payload = BYTES(RECORDS), .after = "00112233"},
     0,
     SBX_E_REMOTE,
     "text after the end",
     true},
    {"the stream ends without an end line",
     {.payload = BYTES(RECORDS), .end = "-"},
     0,
     SBX_E_REMOTE,
     "no end line",
     true},
    {"cut inside a quantum",
     {.payload = BYTES(RECORDS), .tools = PLAIN, .cut = 18, .end = "-"},
     0,
     SBX_E_REMOTE,
     "no end line",
     true},
    {"cut inside a quantum, but with an end line",
     {.payload = BYTES(RECORDS), .tools = PLAIN, .cut = 18},
     0,
     SBX_E_REMOTE,
     "base64: ends in the middle",
     true},
    {"cut inside a pair of hex, but with an end line",
     {.payload = BYTES(RECORDS), .tools = "printf,plain,hex", .cut = 5},
     0,
     SBX_E_REMOTE,
     "hex: ends in the middle",
     true},
    {"a packed stream cut at a quantum, but with an end line",
     {.payload = BYTES(RECORDS), .cut = 16},
     0,
     SBX_E_REMOTE,
     "packed stream was cut",
     true},
    {"a packed stream that never came",
     {.payload = BYTES(""), .tools = PLAIN, .begin = "v=1 root=ok now=1 tools=printf,gzip,base64"},
     0,
     SBX_E_REMOTE,
     "packed stream was cut",
     true},
    {"bytes after the packed stream",
     {.payload = BYTES(RECORDS), .extra = BYTES("\0\0\0\0")},
     0,
     SBX_E_REMOTE,
     "data after the packed stream",
     true},
    {"a second packed stream",
     {.payload = BYTES(RECORDS), .extra = BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0")},
     0,
     SBX_E_REMOTE,
     "data after the packed stream",
     true},
    {"a packed stream of another kind",
     {.payload = BYTES(""),
      .tools = PLAIN,
      .extra = BYTES("\x78\x9c\x03\0\0\0\0\1"),
      .begin = "v=1 root=ok now=1 tools=printf,gzip,base64"},
     0,
     SBX_E_REMOTE,
     "packed stream is damaged",
     true},
    {"a wrong checksum",
     {.payload = BYTES(""),
      .tools = PLAIN,
      .extra = BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\1\0\0\0\0\0\0\0"),
      .begin = "v=1 root=ok now=1 tools=printf,gzip,base64"},
     0,
     SBX_E_REMOTE,
     "packed stream is damaged",
     true},
    {"a wrong length",
     {.payload = BYTES(""),
      .tools = PLAIN,
      .extra = BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\1\0\0\0"),
      .begin = "v=1 root=ok now=1 tools=printf,gzip,base64"},
     0,
     SBX_E_REMOTE,
     "packed stream is damaged",
     true},
    {"as many decoded bytes as allowed",
     {.payload = BYTES(RECORDS)},
     sizeof(RECORDS) - 1,
     SBX_OK,
     NULL,
     false},
    {"a decoded byte more",
     {.payload = BYTES(RECORDS)},
     sizeof(RECORDS) - 2,
     SBX_E_LIMIT,
     "more decoded bytes",
     true},
    {"a decoded byte more, plain",
     {.payload = BYTES(RECORDS), .tools = PLAIN},
     sizeof(RECORDS) - 2,
     SBX_E_LIMIT,
     "more decoded bytes",
     true},
    {"of a limit and a fault the first counts: the limit",
     {.payload = BYTES(RECORDS), .tools = PLAIN, .width = 40, .middle = "?"},
     20,
     SBX_E_LIMIT,
     "more decoded bytes",
     true},
    {"of a limit and a fault the first counts: the fault",
     {.payload = BYTES(RECORDS), .tools = PLAIN, .width = 8, .middle = "?"},
     20,
     SBX_E_REMOTE,
     "foreign character 0x3f",
     true},
    {"remote find was killed",
     {.payload = BYTES(RECORDS), .end = "find=141 cap=0 pack=0 encode=0"},
     0,
     SBX_E_REMOTE,
     "remote find ended with status 141",
     true},
    {"gzip is not there",
     {.payload = BYTES(""),
      .tools = PLAIN,
      .begin = "v=1 root=ok now=1 tools=printf,gzip,base64",
      .end = "find=0 cap=0 pack=127 encode=0"},
     0,
     SBX_E_REMOTE,
     "remote tool missing: gzip",
     true},
};

struct outcome {
    enum sbx_status st;
    struct sbx_error err;
    struct sbx_buf decoded; /* owned */
    struct sbx_list_frame frame;
};

struct fixture {
    struct sbx_buf text, want;  /* owned */
    struct outcome whole, cut;  /* owned */
    struct sbx_list_decoder *d; /* owned */
};

static struct fixture fx;

static int teardown(void **state)
{
    (void)state;
    sbx_list_decoder_free(fx.d);
    sbx_buf_done(&fx.text);
    sbx_buf_done(&fx.whole.decoded);
    sbx_buf_done(&fx.cut.decoded);
    fx = (struct fixture){.d = NULL};
    return 0;
}

static enum sbx_status keep(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    return sbx_buf_add(ctx, bytes, n, err);
}

/* Decodes text[0..n) cut at every position in cuts of `piece` bytes after the first. */
static void decode(uint64_t max, size_t first, size_t piece, struct outcome *ret)
{
    const char *p = fx.text.data;
    size_t left = fx.text.len, n = first;
    enum sbx_status st;

    sbx_buf_done(&ret->decoded);
    *ret = (struct outcome){.decoded = SBX_BUF_INIT(SIZE_MAX)};
    st = sbx_list_decoder_new(NONCE, max, (struct sbx_sink){keep, &ret->decoded}, &fx.d, &ret->err);
    assert_int_equal(st, SBX_OK);
    while (left > 0 && !st) {
        n = n < left ? n : left;
        st = sbx_list_decoder_push(fx.d, p, n, &ret->err);
        p += n;
        left -= n;
        n = piece;
    }
    if (st) /* for good */
        assert_int_equal(sbx_list_decoder_push(fx.d, "\n", 1, NULL), st);
    ret->st = sbx_list_decoder_end(fx.d, &ret->err);
    if (st)
        assert_int_equal(ret->st, st);
    ret->frame = *sbx_list_decoder_frame(fx.d);
    sbx_list_decoder_free(fx.d);
    fx.d = NULL;
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->st, b->st);
    assert_string_equal(a->err.msg, b->err.msg);
    assert_int_equal(a->decoded.len, b->decoded.len);
    if (a->decoded.len)
        assert_memory_equal(a->decoded.data, b->decoded.data, a->decoded.len);
    assert_memory_equal(&a->frame, &b->frame, sizeof(a->frame));
}

static void check_decode(void **state)
{
    const struct decode_row *row = *state;
    uint64_t max = row->max ? row->max : SBX_MIB;
    size_t step;

    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&row->s, &fx.text);
    decode(max, fx.text.len, 1, &fx.whole);
    if (fx.whole.st != row->want)
        print_error("%s\n", fx.whole.err.msg);
    assert_int_equal(fx.whole.st, row->want);
    if (row->message)
        assert_non_null(strstr(fx.whole.err.msg, row->message));
    if (!row->no_payload && !row->want) {
        assert_int_equal(fx.whole.decoded.len, row->s.n_payload);
        assert_memory_equal(fx.whole.decoded.data, row->s.payload, row->s.n_payload);
        assert_int_equal(fx.whole.frame.root, SBX_ROOT_OK);
    }
    /* every split, and byte by byte; long noise is cut less often */
    step = fx.text.len > 2048 ? 1009 : 1;
    for (size_t at = 0; at <= fx.text.len; at += step) {
        decode(max, at, fx.text.len, &fx.cut);
        assert_same(&fx.whole, &fx.cut);
    }
    decode(max, 1, 1, &fx.cut);
    assert_same(&fx.whole, &fx.cut);
    decode(max, 7, 7, &fx.cut);
    assert_same(&fx.whole, &fx.cut);
}

static void frame_facts(void **state)
{
    const struct stream s = {.payload = BYTES(RECORDS),
                             .begin = "now=-7 tools=stat,gzip,base64 root=ok v=1",
                             .end = "encode=0 skipped=3 pack=0 walk=1 cap=0 find=123"};

    (void)state;
    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    decode(SBX_MIB, fx.text.len, 1, &fx.whole);
    assert_int_equal(fx.whole.st, SBX_OK);
    assert_int_equal(fx.whole.frame.now, -7);
    assert_string_equal(fx.whole.frame.tools, "stat,gzip,base64");
    assert_int_equal(fx.whole.frame.find, 123);
    assert_int_equal(fx.whole.frame.walk, 1);
    assert_int_equal(fx.whole.frame.skipped, 3);
}

int main(void)
{
    struct CMUnitTest tests[128];
    size_t n = 0;

    memset(noise, 'x', SBX_MAX_NOISE); /* and the line end that the script puts after it */
    memset(noise_at_limit, 'x', SBX_MAX_NOISE - 1);
    n = rows_add(tests, n, ROWS(rows), check_decode);
    tests[n++] =
        (struct CMUnitTest){.name = "both lines are told in the frame", .test_func = frame_facts};
    for (size_t i = 0; i < n; i++)
        tests[i].teardown_func = teardown;
    return rows_run("listing decode", tests, n);
}
