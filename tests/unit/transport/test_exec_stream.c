/* The stream of a fetch script, valid and not, cut in every way. */
#include "tests/unit/transport/fixture.h"

#include "transport/exec_stream.h"

#define NONCE "00112233445566778899aabbccddeeff"

/* A stream is told as a small text, in which each word makes a part of it:
 *   ok, vanished, denied, notreg, odd   the state line of the next file
 *   <content|status|record>             an encoded body; "\0" ends the record unless it says "cut"
 *   done, done:N                        the end line of that file, with status N of the encoder
 *   end                                 the last line
 *   raw:TEXT                            TEXT and a newline */
struct row {
    const char *name;
    const char *stream;
    size_t sizes[4]; /* of the files asked for */
    size_t n;
    const char *results; /* a letter for each file: ovdncsp as in letters[], '-' not ended */
    const char *contents[4];
    const char *records[4];
    const char *says; /* NULL: the stream is fine */
};

static const struct row rows[] = {
    {"a whole file comes with its record",
     "ok <abc|0|3 1 2 a> done end",
     {3},
     1,
     "o",
     {"abc"},
     {"3 1 2 a"},
     NULL},
    {"an empty file comes with its record",
     "ok <|0|0 1 2 a> done end",
     {0},
     1,
     "o",
     {""},
     {"0 1 2 a"},
     NULL},
    {"files come one after another",
     "ok <abc|0|r> done vanished ok <d|0|s> done end",
     {3, 5, 1},
     3,
     "ovo",
     {"abc", NULL, "d"},
     {"r", NULL, "s"},
     NULL},
    {"noise before the first line is skipped",
     "raw:V2VsY29tZQo= raw:hello ok <abc|0|r> done end",
     {3},
     1,
     "o",
     {"abc"},
     {"r"},
     NULL},
    {"blank lines mean nothing",
     "raw: ok raw: <abc|0|r> raw: done raw: end raw:",
     {3},
     1,
     "o",
     {"abc"},
     {"r"},
     NULL},
    {"noise after the last line is skipped",
     "ok <abc|0|r> done end raw:logout",
     {3},
     1,
     "o",
     {"abc"},
     {"r"},
     NULL},
    {"each state is a result",
     "denied notreg vanished end",
     {1, 1, 1},
     3,
     "dnv",
     {NULL},
     {NULL},
     NULL},
    {"fewer bytes than listed are for the record to explain",
     "ok <ab|0|2 1 2 a> done end",
     {3},
     1,
     "o",
     {"ab"},
     {"2 1 2 a"},
     NULL},
    {"no record and no bytes: it vanished", "ok <|1|-> done end", {3}, 1, "v", {""}, {NULL}, NULL},
    {"no record after bytes: it changed",
     "ok <abc|0|-> done end",
     {3},
     1,
     "c",
     {"abc"},
     {NULL},
     NULL},
    {"no record after a failed read: it vanished",
     "ok <ab|1|-> done end",
     {3},
     1,
     "v",
     {"ab"},
     {NULL},
     NULL},
    {"a failed read is the server's failure",
     "ok <ab|1|3 1 2 a> done end",
     {3},
     1,
     "s",
     {"ab"},
     {NULL},
     NULL},
    {"a missing head is the server's failure",
     "ok <|127|3 1 2 a> done end",
     {3},
     1,
     "s",
     {""},
     {NULL},
     NULL},
    {"a failed encoder is the server's failure",
     "ok done:127 ok <b|0|r> done end",
     {3, 1},
     2,
     "so",
     {"", "b"},
     {NULL, "r"},
     NULL},
    {"more bytes than asked for break the stream",
     "ok <abcd|0|r> done end",
     {3},
     1,
     "-",
     {NULL},
     {NULL},
     "more bytes than were asked for"},
    {"a stream that ends early leaves its file",
     "ok <abc|0|r>",
     {3},
     1,
     "-",
     {"abc"},
     {NULL},
     NULL},
    {"a file out of order breaks the stream",
     "raw:" NONCE " file 1 ok",
     {3, 3},
     2,
     "--",
     {NULL},
     {NULL},
     "out of order"},
    {"a file that was not asked for breaks the stream",
     "vanished vanished",
     {3},
     1,
     "v",
     {NULL},
     {NULL},
     "out of order"},
    {"a file with an unknown state breaks the stream",
     "odd",
     {3},
     1,
     "-",
     {NULL},
     {NULL},
     "unknown state"},
    {"a file inside another breaks the stream",
     "ok ok",
     {3, 3},
     2,
     "--",
     {NULL},
     {NULL},
     "inside another"},
    {"the end of no file breaks the stream",
     "vanished done",
     {3, 3},
     2,
     "v-",
     {NULL},
     {NULL},
     "did not begin"},
    {"an end before the last file breaks the stream",
     "vanished end",
     {3, 3},
     2,
     "v-",
     {NULL},
     {NULL},
     "out of order"},
    {"an end inside a file breaks the stream",
     "ok <abc|0|r> end",
     {3},
     1,
     "-",
     {"abc"},
     {NULL},
     "out of order"},
    {"foreign bytes between files break the stream",
     "vanished raw:V2VsY29tZQo= vanished end",
     {3, 3},
     2,
     "v-",
     {NULL},
     {NULL},
     "foreign bytes"},
    {"foreign bytes in a file break the stream",
     "ok raw:%s <abc|0|r> done end",
     {3},
     1,
     "-",
     {""},
     {NULL},
     "damaged encoding"},
    {"an encoding that is cut breaks the stream",
     "ok raw:YW done end",
     {3},
     1,
     "-",
     {NULL},
     {NULL},
     "damaged encoding"},
    {"a file without its marker breaks the stream",
     "ok raw:YWJj done end",
     {3},
     1,
     "-",
     {NULL},
     {NULL},
     "without its record"},
    {"a record without its NUL breaks the stream",
     "ok <abc|0|cut> done end",
     {3},
     1,
     "-",
     {"abc"},
     {NULL},
     "damaged record"},
    {"two records break the stream",
     "ok <abc|0|two> done end",
     {3},
     1,
     "-",
     {"abc"},
     {NULL},
     "damaged record"},
    {"a status that is no number breaks the stream",
     "ok <abc|x|r> done end",
     {3},
     1,
     "-",
     {"abc"},
     {NULL},
     "damaged record"},
    {"an endless record breaks the stream",
     "ok <abc|0|endless> done end",
     {3},
     1,
     "-",
     {"abc"},
     {NULL},
     "endless record"},
    {"a line of ours that means nothing breaks the stream",
     "raw:" NONCE " hello",
     {3},
     1,
     "-",
     {NULL},
     {NULL},
     "out of order"},
    {"lines with another nonce are noise",
     "raw:ff112233445566778899aabbccddeeff\tend vanished end",
     {3},
     1,
     "v",
     {NULL},
     {NULL},
     NULL},
};

static const char letters[] = {
    [SBX_FETCH_OK] = 'o',          [SBX_FETCH_VANISHED] = 'v', [SBX_FETCH_DENIED] = 'd',
    [SBX_FETCH_NOT_REGULAR] = 'n', [SBX_FETCH_CHANGED] = 'c',  [SBX_FETCH_SHORT] = '?',
    [SBX_FETCH_PROTOCOL] = 'p',    [SBX_FETCH_SERVER] = 's'};

static void add_encoded(struct sbx_buf *out, const struct sbx_buf *plain, enum sbx_coding coding)
{
    char *text = calloc(1, 2 * plain->len + 8);

    assert_non_null(text);
    if (coding == SBX_CODING_HEX)
        sbx_encode_hex(plain->data, plain->len, text);
    else
        sbx_encode_base64(plain->data, plain->len, text);
    for (size_t at = 0; at < strlen(text); at += 76)
        assert_int_equal(sbx_buf_printf(out, NULL, "%.76s\n", text + at), SBX_OK);
    free(text);
}

/* "<content|status|record>" */
static void add_body(struct sbx_buf *out, const char *word, size_t n, enum sbx_coding coding)
{
    const char *status = memchr(word, '|', n), *record = strchr(status + 1, '|');
    struct sbx_buf plain = SBX_BUF_INIT(SBX_MIB);
    size_t record_n = n - 1 - (size_t)(record + 1 - word);

    assert_int_equal(sbx_buf_printf(&plain, NULL, "%.*s\n" NONCE " %.*s ", (int)(status - word - 1),
                                    word + 1, (int)(record - status - 1), status + 1),
                     SBX_OK);
    record++;
    if (strncmp(record, "endless", 7) == 0)
        for (int i = 0; i < 20000; i++)
            assert_int_equal(sbx_buf_str(&plain, "x", NULL), SBX_OK);
    else if (strncmp(record, "two", 3) == 0)
        assert_int_equal(sbx_buf_add(&plain, "1 2 3 a\0001 2 3 b", 16, NULL), SBX_OK);
    else if (record[0] != '-')
        assert_int_equal(sbx_buf_add(&plain, record, record_n, NULL), SBX_OK);
    if (record[0] != '-' && strncmp(record, "cut", 3) != 0)
        assert_int_equal(sbx_buf_add(&plain, "", 1, NULL), SBX_OK);
    add_encoded(out, &plain, coding);
    sbx_buf_done(&plain);
}

static void add_word(struct sbx_buf *out, const char *word, size_t n, size_t *index,
                     enum sbx_coding coding)
{
    enum sbx_status st = SBX_OK;

    if (word[0] == '<')
        add_body(out, word, n, coding);
    else if (strncmp(word, "raw:", 4) == 0)
        st = sbx_buf_printf(out, NULL, "%.*s\n", (int)n - 4, word + 4);
    else if (strncmp(word, "done", 4) == 0)
        st = sbx_buf_printf(out, NULL, "\n" NONCE " done %zu %.*s\n", (*index)++,
                            n > 5 ? (int)n - 5 : 1, n > 5 ? word + 5 : "0");
    else if (strncmp(word, "end", 3) == 0)
        st = sbx_buf_str(out, "\n" NONCE " end\n", NULL);
    else
        st = sbx_buf_printf(out, NULL, "\n" NONCE " file %zu %.*s\n",
                            strncmp(word, "ok", 2) == 0 ? *index : (*index)++, (int)n, word);
    assert_int_equal(st, SBX_OK);
}

/* Words are parted by blanks; a body may hold blanks itself, and the noise lines of ours too. */
static size_t word_len(const char *word)
{
    if (word[0] == '<')
        return strcspn(word, ">") + 1;
    if (strncmp(word, "raw:" NONCE, 4 + 32) == 0)
        return strlen(word);
    return strcspn(word, " ");
}

static void make_stream(struct sbx_buf *out, const char *words, enum sbx_coding coding)
{
    size_t index = 0;

    while (*words) {
        size_t n = word_len(words);

        add_word(out, words, n, &index, coding);
        words += n;
        words += *words == ' ';
    }
}

static void check_files(const struct fixture *f, const struct row *row)
{
    for (size_t i = 0; i < row->n; i++) {
        const struct file *file = &f->files[i];

        if (row->results[i] == '-') {
            assert_int_equal(file->ended, 0);
        } else {
            assert_int_equal(file->ended, 1);
            assert_int_equal(letters[file->result], row->results[i]);
            assert_true(file->result == SBX_FETCH_OK || file->why[0]);
        }
        if (row->contents[i])
            assert_text(&file->content, row->contents[i]);
        assert_int_equal(file->has_record, row->records[i] != NULL);
        if (row->records[i])
            assert_text(&file->record, row->records[i]);
    }
}

static void check_cut(struct fixture *f, const struct row *row, enum sbx_coding coding,
                      size_t piece)
{
    const struct sbx_wanted *files[MAX_FILES];
    struct sbx_queue queue = queue_of(f);
    struct sbx_exec_stream stream;
    enum sbx_status st = SBX_OK;

    for (size_t i = 0; i < row->n; i++) {
        f->files[i].begun = f->files[i].ended = 0;
        f->files[i].has_record = false;
        sbx_buf_clear(&f->files[i].content);
        sbx_buf_clear(&f->files[i].record);
        files[i] = &f->files[i].wanted;
    }
    sbx_exec_stream_init(&stream, &queue, files, row->n, NONCE, coding);
    for (size_t at = 0; at < f->out.len && !st; at += piece)
        st = sbx_exec_stream_write(&stream, f->out.data + at,
                                   f->out.len - at < piece ? f->out.len - at : piece, &f->err);
    sbx_exec_stream_done(&stream);
    assert_int_equal(st, row->says ? SBX_E_REMOTE : SBX_OK);
    assert_int_equal(stream.broken, row->says != NULL);
    if (row->says)
        assert_has(f->err.msg, row->says);
    check_files(f, row);
}

static void test_row(void **state)
{
    struct fixture *f = *state;
    const struct row *row = f->row;

    for (size_t i = 0; i < row->n; i++)
        (void)want(f, "a", row->sizes[i]);
    for (int hex = 0; hex < 2; hex++) {
        enum sbx_coding coding = hex ? SBX_CODING_HEX : SBX_CODING_BASE64;

        if (hex && strstr(row->stream, "raw:YW"))
            continue; /* these are base64 */
        sbx_buf_clear(&f->out);
        make_stream(&f->out, row->stream, coding);
        for (size_t piece = 1; piece < f->out.len && piece < 200; piece++)
            check_cut(f, row, coding, piece);
        check_cut(f, row, coding, f->out.len);
    }
}

static void test_noise(void **state)
{
    struct fixture *f = *state;
    struct sbx_queue queue = queue_of(f);
    const struct sbx_wanted *files[1] = {&want(f, "a", 1)->wanted};
    struct sbx_exec_stream stream;
    enum sbx_status st = SBX_OK;
    size_t n = 0;

    sbx_exec_stream_init(&stream, &queue, files, 1, NONCE, SBX_CODING_BASE64);
    for (; !st && n < SBX_MIB; n += 8)
        st = sbx_exec_stream_write(&stream, "welcome\n", 8, &f->err);
    sbx_exec_stream_done(&stream);
    assert_int_equal(st, SBX_E_REMOTE);
    assert_in_range(n, SBX_MAX_NOISE, SBX_MAX_NOISE + 64);
}

/* The bytes that a refused file still has to send are dropped, and the next one comes. */
static void check_refused(struct fixture *f, size_t refuse_at)
{
    static const struct row row = {
        "",  "ok <abc|0|r> done ok <d|0|s> done end", {3, 1}, 2, "-o", {NULL, "d"}, {NULL, "s"},
        NULL};

    make_stream(&f->out, row.stream, SBX_CODING_BASE64);
    want(f, "a", 3)->refuse = true;
    f->files[0].refuse_at = refuse_at;
    (void)want(f, "b", 1);
    for (size_t piece = 1; piece <= f->out.len; piece++) {
        struct row copy = row;

        copy.results = "so";
        f->files[0].why[0] = 'x';
        check_cut(f, &copy, SBX_CODING_BASE64, piece);
    }
}

static void test_refused_begin(void **state)
{
    check_refused(*state, 0);
}

static void test_refused_write(void **state)
{
    check_refused(*state, 1);
}

/* Content that looks like the marker of this very stream up to its last byte. */
static void test_near_marker(void **state)
{
    struct fixture *f = *state;
    static const struct row row = {"", "", {110}, 1, "o", {NULL}, {"r"}, NULL};
    struct sbx_buf plain = SBX_BUF_INIT(SBX_MIB);
    size_t n;

    for (int i = 0; i < 3; i++)
        assert_int_equal(sbx_buf_str(&plain, "\n" NONCE "x\n\n", NULL), SBX_OK);
    n = plain.len;
    assert_int_equal(sbx_buf_add(&plain, "\n" NONCE " 0 r", 38, NULL), SBX_OK);
    (void)want(f, "a", 110);
    assert_int_equal(sbx_buf_str(&f->out, "\n" NONCE " file 0 ok\n", NULL), SBX_OK);
    add_encoded(&f->out, &plain, SBX_CODING_BASE64);
    assert_int_equal(sbx_buf_str(&f->out, "\n" NONCE " done 0 0\n\n" NONCE " end\n", NULL), SBX_OK);
    for (size_t piece = 1; piece <= f->out.len; piece++) {
        check_cut(f, &row, SBX_CODING_BASE64, piece);
        assert_bytes(&f->files[0].content, plain.data, n);
    }
    sbx_buf_done(&plain);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + 4];
    size_t n = add_rows(tests, 0, ROWS(rows), test_row);

    n = add_test(tests, n, "noise before the first line is bounded", test_noise);
    n = add_test(tests, n, "a file refused at its begin is read past", test_refused_begin);
    n = add_test(tests, n, "a file refused in its middle is read past", test_refused_write);
    n = add_test(tests, n, "content that is nearly a marker stays content", test_near_marker);
    return run_all("transport/exec_stream", tests, n);
}
