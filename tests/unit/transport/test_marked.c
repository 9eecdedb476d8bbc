/* Lines with a nonce are found in any stream, however it is cut. */
#include "tests/unit/transport/fixture.h"

#include "transport/marked.h"

#define NONCE "00112233445566778899aabbccddeeff"

struct row {
    const char *name;
    const char *in;
    const char *bytes; /* what goes to `bytes` */
    const char *lines; /* what goes to `line`, each followed by ';' */
};

static const struct row rows[] = {
    {"a stream without a marked line passes as it is", "one\ntwo\r\n\r\n\nthree",
     "one\ntwo\r\n\r\n\nthree", ""},
    {"a marked line at the very start is found", NONCE " exit 0\n", "", "exit 0;"},
    {"the newline before a marked line stays", "abc\n" NONCE " exit 3\n", "abc\n", "exit 3;"},
    {"the CR LF of a marked line goes with it", "abc\r\n" NONCE " exit 3\r\nrest", "abc\r\nrest",
     "exit 3;"},
    {"marked lines may follow each other", NONCE " a\n" NONCE " b\n\n" NONCE " c\n", "\n",
     "a;b;c;"},
    {"bytes between marked lines stay", NONCE " a\nx\ny\n" NONCE " b\nz", "x\ny\nz", "a;b;"},
    {"a nonce in the middle of a line is output", "x" NONCE " exit 0\n", "x" NONCE " exit 0\n", ""},
    {"a nonce after a CR alone is output", "x\r" NONCE " exit 0\n", "x\r" NONCE " exit 0\n", ""},
    {"another nonce is output", "\n00112233445566778899aabbccddeefe exit 0\n",
     "\n00112233445566778899aabbccddeefe exit 0\n", ""},
    {"a nonce without its blank is output", "\n" NONCE "\n" NONCE "x exit 0\n",
     "\n" NONCE "\n" NONCE "x exit 0\n", ""},
    {"an upper-case nonce is output", "\n00112233445566778899AABBCCDDEEFF exit 0\n",
     "\n00112233445566778899AABBCCDDEEFF exit 0\n", ""},
    {"a nonce begun twice is found", "\n0011\n" NONCE " a\n", "\n0011\n", "a;"},
    {"newlines before the newline of a marked line stay", "\n\r\n\r\r\n" NONCE " a\n",
     "\n\r\n\r\r\n", "a;"},
    {"a line that its reader does not take is output", "x\n" NONCE " no\ny\n" NONCE " a\n",
     "x\n" NONCE " no\ny\n", "a;"},
    {"a line that is not taken keeps its CR", "x\n" NONCE " no\r\ny", "x\n" NONCE " no\r\ny", ""},
    {"a marked line without an end is output", "x\n" NONCE " a", "x\n" NONCE " a", ""},
    {"a marked line that is too long is output",
     "\n" NONCE " "
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "0123456789012345678901234567890123456789\nx",
     "\n" NONCE " "
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "0123456789012345678901234567890123456789\nx",
     ""},
    {"a last CR is not lost", "x\r", "x\r", ""},
};

struct seen {
    struct sbx_buf *bytes, *lines;
};

static enum sbx_status on_bytes(void *ctx, const char *bytes, size_t n, struct sbx_error *err)
{
    struct seen *seen = ctx;

    return sbx_buf_add(seen->bytes, bytes, n, err);
}

static enum sbx_status on_line(void *ctx, const char *text, bool *ret_taken, struct sbx_error *err)
{
    struct seen *seen = ctx;

    *ret_taken = strcmp(text, "no") != 0;
    return *ret_taken ? sbx_buf_printf(seen->lines, err, "%s;", text) : SBX_OK;
}

static void check_cut(struct fixture *f, const struct row *row, size_t piece)
{
    struct seen seen = {&f->out, &f->diag};
    struct sbx_marked m = {.nonce = NONCE, .ctx = &seen, .bytes = on_bytes, .line = on_line};
    size_t n = strlen(row->in);

    sbx_buf_clear(&f->out);
    sbx_buf_clear(&f->diag);
    for (size_t at = 0; at < n; at += piece)
        assert_int_equal(sbx_marked_push(&m, row->in + at, n - at < piece ? n - at : piece, NULL),
                         SBX_OK);
    assert_int_equal(sbx_marked_end(&m, NULL), SBX_OK);
    assert_text(&f->out, row->bytes);
    assert_text(&f->diag, row->lines);
}

static void test_row(void **state)
{
    struct fixture *f = *state;
    const struct row *row = f->row;

    for (size_t piece = 1; piece <= strlen(row->in); piece++)
        check_cut(f, row, piece);
}

static void test_held(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {&f->out, &f->diag};
    struct sbx_marked m = {.nonce = NONCE, .ctx = &seen, .bytes = on_bytes, .line = on_line};

    assert_int_equal(sbx_marked_push(&m, "abc\n0012", 8, NULL), SBX_OK);
    assert_text(&f->out, "abc\n0012");
    assert_int_equal(sbx_marked_push(&m, "def\n0011", 8, NULL), SBX_OK);
    assert_text(&f->out, "abc\n0012def\n");
    assert_int_equal(sbx_marked_push(&m, "\n", 1, NULL), SBX_OK);
    assert_text(&f->out, "abc\n0012def\n0011\n");
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + 1];
    size_t n = add_rows(tests, 0, ROWS(rows), test_row);

    n = add_test(tests, n, "only what may become a marked line is held back", test_held);
    return run_all("transport/marked", tests, n);
}
