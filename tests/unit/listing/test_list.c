#include "listing/list.h"

#include "base/limits.h"
#include "tests/support/rows.h"
#include "tests/unit/listing/stream.h"

#define OK_EXIT                                                                                    \
    {                                                                                              \
        SBX_EXIT_EXITED, 0                                                                         \
    }
#define FIND1 "find=1 cap=0 pack=0 encode=0"
#define STAT "stat,plain,base64"

#define GOOD(records, seen)                                                                        \
    BYTES(records), NULL, NULL, OK_EXIT, {0, 0}, SBX_OK, SBX_LISTING_COMPLETE, seen
#define BAD(records, message)                                                                      \
    BYTES(records), NULL, NULL, OK_EXIT, {0, 0}, SBX_E_REMOTE, SBX_LISTING_DAMAGED, message
#define ENDED(kind, code, message)                                                                 \
    BYTES("1 2.5 3.5 a\0"                                                                          \
          "end 0\0"),                                                                              \
        NULL, NULL, {kind, code}, {0, 0}, SBX_E_REMOTE, SBX_LISTING_DAMAGED, message

static const struct list_row {
    const char *why;
    const char *records;
    size_t n_records;
    const char *tools; /* NULL: printf,plain,base64 */
    const char *end;   /* NULL: all went well */
    struct sbx_exit exit;
    struct sbx_list_limits limits; /* 0: 1 MiB, 100 */
    enum sbx_status want;
    enum sbx_listing_state state;
    const char *seen; /* "path flags,…" in the order of the result; or part of the message */
} rows[] = {
    {"an empty directory is a complete listing", GOOD("end 0\0", "")},
    {"records come out in path order", GOOD("1 2.5 3.5 b\0"
                                            "1 2.5 3.5 a/x\0"
                                            "1 2.5 3.5 B\0"
                                            "1 2.5 3.5 a\0"
                                            "end 0\0",
                                            "B 0,a 0,a/x 0,b 0,")},
    {"a record of two lines", GOOD("1 2.5 3.5 a\nb\0"
                                   "end 0\0",
                                   "a\nb 0,")},
    {"a path that is not UTF-8 is one record among others", GOOD("1 2.5 3.5 a\xff\0"
                                                                 "1 2.5 3.5 a\xfe\0"
                                                                 "end 0\0",
                                                                 "a\xfe 0,a\xff 0,")},
    {"a path that is named like the last record", GOOD("1 2.5 3.5 end 0\0"
                                                       "end 0\0",
                                                       "end 0 0,")},
    {"a bad time is marked", GOOD("1 nan 3.5 a\0"
                                  "1 1e400 3.5 b\0"
                                  "end 0\0",
                                  "a 1,b 1,")},
    {"an exact duplicate is one entry and a warning",
     BYTES("1 2.5 3.5 a\0"
           "1 2.5 3.5 b\0"
           "1 2.5 3.5 a\0"
           "1 2.5 3.5 a\0"
           "end 0\0"),
     NULL,
     NULL,
     OK_EXIT,
     {0, 0},
     SBX_OK,
     SBX_LISTING_WARNED,
     "a 0,b 0,"},
    {"two sizes of one path are a conflict", GOOD("1 2.5 3.5 a\0"
                                                  "2 2.5 3.5 a\0"
                                                  "end 0\0",
                                                  "a 2,")},
    {"two mtimes of one path are a conflict",
     BYTES("1 2.5 3.5 a\0"
           "1 2.6 3.5 a\0"
           "1 2.5 3.5 a\0"
           "end 0\0"),
     NULL,
     NULL,
     OK_EXIT,
     {0, 0},
     SBX_OK,
     SBX_LISTING_WARNED,
     "a 2,"},
    {"two ctimes of one path are a conflict", GOOD("1 2.5 3.6 a\0"
                                                   "1 2.5 3.5 a\0"
                                                   "end 0\0",
                                                   "a 2,")},
    {"a bad time and zero are a conflict", GOOD("1 x 3.5 a\0"
                                                "1 0 3.5 a\0"
                                                "end 0\0",
                                                "a 2,")},
    {"a ctime of now without a fraction is young", GOOD("1 2 1000 a\0"
                                                        "end 0\0",
                                                        "a 4,")},
    {"a ctime with a zero fraction is young", GOOD("1 2 1000.0000000000 a\0"
                                                   "end 0\0",
                                                   "a 4,")},
    {"a ctime of two seconds ago is young", GOOD("1 2 998 a\0"
                                                 "end 0\0",
                                                 "a 4,")},
    {"a ctime of three seconds ago is not young", GOOD("1 1000 997 a\0"
                                                       "end 0\0",
                                                       "a 0,")},
    {"a ctime of the future is young", GOOD("1 2 4102444800 a\0"
                                            "end 0\0",
                                            "a 4,")},
    {"a ctime with a fraction is never young", GOOD("1 1000 1000.000000001 a\0"
                                                    "end 0\0",
                                                    "a 0,")},
    {"a file that find could not reach is a warning",
     BYTES("1 2.5 3.5 a\0"
           "end 1\0"),
     NULL,
     FIND1,
     OK_EXIT,
     {0, 0},
     SBX_OK,
     SBX_LISTING_WARNED,
     "a 0,"},
    {"stat: a file that vanished is a warning",
     BYTES("1 2.5 3.5 a\0"
           "end 123\0"),
     STAT,
     "walk=0 find=123 cap=0 pack=0 encode=0",
     OK_EXIT,
     {0, 0},
     SBX_OK,
     SBX_LISTING_WARNED,
     "a 0,"},
    {"stat: a directory that find could not reach is a warning",
     BYTES("1 2.5 3.5 a\0"
           "end 0\0"),
     STAT,
     "walk=1 find=0 cap=0 pack=0 encode=0",
     OK_EXIT,
     {0, 0},
     SBX_OK,
     SBX_LISTING_WARNED,
     "a 0,"},
    {"as many records as allowed",
     BYTES("1 2.5 3.5 a\0"
           "1 2.5 3.5 a\0"
           "end 0\0"),
     NULL,
     NULL,
     OK_EXIT,
     {0, 2},
     SBX_OK,
     SBX_LISTING_WARNED,
     "a 0,"},
    {"a record more than allowed, though a duplicate",
     BYTES("1 2.5 3.5 a\0"
           "1 2.5 3.5 a\0"
           "end 0\0"),
     NULL,
     NULL,
     OK_EXIT,
     {0, 1},
     SBX_E_LIMIT,
     SBX_LISTING_TRUNCATED,
     "more than 1 records"},
    {"as many bytes as allowed",
     BYTES("1 2.5 3.5 a\0"
           "end 0\0"),
     NULL,
     NULL,
     OK_EXIT,
     {18, 0},
     SBX_OK,
     SBX_LISTING_COMPLETE,
     "a 0,"},
    {"a byte more than allowed",
     BYTES("1 2.5 3.5 a\0"
           "end 0\0"),
     NULL,
     NULL,
     OK_EXIT,
     {17, 0},
     SBX_E_LIMIT,
     SBX_LISTING_TRUNCATED,
     "decoded bytes"},
    {"find failed and listed nothing",
     BYTES("end 1\0"),
     NULL,
     FIND1,
     OK_EXIT,
     {0, 0},
     SBX_E_REMOTE,
     SBX_LISTING_DAMAGED,
     "listed nothing"},
    {"stat: everything vanished",
     BYTES("end 123\0"),
     STAT,
     "walk=0 find=123 cap=0 pack=0 encode=0",
     OK_EXIT,
     {0, 0},
     SBX_E_REMOTE,
     SBX_LISTING_DAMAGED,
     "listed nothing"},
    {"no last record", BAD("1 2.5 3.5 a\0", "no last record")},
    {"nothing at all between the lines", BAD("", "no last record")},
    {"a last record that is cut", BAD("1 2.5 3.5 a\0"
                                      "end 0",
                                      "no last record")},
    {"bytes after the last record", BAD("end 0\0x", "cut: no last record")},
    {"records after the last record", BAD("end 0\0"
                                          "1 2.5 3.5 a\0",
                                          "after the last one")},
    {"two last records", BAD("end 0\0"
                             "end 0\0",
                             "after the last one")},
    {"an empty record", BAD("1 2.5 3.5 a\0\0"
                            "end 0\0",
                            "without a separator")},
    {"a last record that contradicts the end line", BAD("1 2.5 3.5 a\0"
                                                        "end 141\0",
                                                        "contradicts")},
    {"a last record without a status", BAD("1 2.5 3.5 a\0"
                                           "end \0",
                                           "without a status")},
    {"a size of -1", BAD("-1 2.5 3.5 a\0"
                         "end 0\0",
                         "bad size")},
    {"a size of 2^64 - 1", BAD("18446744073709551615 2.5 3.5 a\0"
                               "end 0\0",
                               "bad size")},
    {"a record without a separator among good ones", BAD("1 2.5 3.5 a\0"
                                                         "abc\0"
                                                         "end 0\0",
                                                         "without a separator")},
    {"the script failed after a whole listing", ENDED(SBX_EXIT_EXITED, 3, "ended with status 3")},
    {"the script was killed after a whole listing", ENDED(SBX_EXIT_SIGNALLED, 9, "by signal 9")},
    {"the script ran into its time limit", ENDED(SBX_EXIT_DEADLINE, 0, "time limit")},
    {"nothing said how the script ended", ENDED(SBX_EXIT_UNKNOWN, 0, "unknown")},
    {"the end of the script explains a missing end line",
     BYTES("1 2.5 3.5 a\0"),
     NULL,
     "-",
     {SBX_EXIT_EXITED, 127},
     {0, 0},
     SBX_E_REMOTE,
     SBX_LISTING_DAMAGED,
     "ended with status 127"},
    {"exit status 0 is no evidence of a whole listing",
     BYTES("1 2.5 3.5 a\0"),
     NULL,
     "-",
     OK_EXIT,
     {0, 0},
     SBX_E_REMOTE,
     SBX_LISTING_DAMAGED,
     "no end line"},
};

struct fixture {
    struct sbx_buf text, seen; /* owned */
    struct sbx_list *list;     /* owned */
    struct sbx_error err;
};

static struct fixture fx;

static int teardown(void **state)
{
    (void)state;
    sbx_list_free(fx.list);
    sbx_buf_done(&fx.text);
    sbx_buf_done(&fx.seen);
    fx = (struct fixture){.list = NULL};
    return 0;
}

static enum sbx_status feed(const struct sbx_list_limits *limits, size_t first, size_t piece,
                            struct sbx_exit ended)
{
    size_t n = first;
    enum sbx_status st = SBX_OK;

    sbx_list_free(fx.list);
    fx.list = NULL;
    assert_int_equal(sbx_list_new(NONCE, limits, &fx.list, NULL), SBX_OK);
    for (size_t at = 0; at < fx.text.len && !st; at += n, n = piece) {
        n = n < fx.text.len - at ? n : fx.text.len - at;
        st = sbx_list_write(fx.list, fx.text.data + at, n, NULL);
    }
    fx.err = (struct sbx_error){.status = SBX_OK};
    return sbx_list_end(fx.list, ended, &fx.err);
}

/* Lists what is in the result, and checks that it is in order and each path terminated. */
static void look(void)
{
    size_t n;
    const struct sbx_record *r = sbx_list_records(fx.list, &n);

    sbx_buf_done(&fx.seen);
    fx.seen = SBX_BUF_INIT(SIZE_MAX);
    add(&fx.seen, "");
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strlen(r[i].path), r[i].path_len);
        if (i > 0)
            assert_true(
                sbx_list_path_cmp(r[i - 1].path, r[i - 1].path_len, r[i].path, r[i].path_len) < 0);
        must(sbx_buf_printf(&fx.seen, NULL, "%s %u,", r[i].path, r[i].flags));
    }
}

static void check_outcome(const struct list_row *row, enum sbx_status st)
{
    size_t n = 77;

    assert_int_equal(st, row->want);
    assert_int_equal(fx.err.status, row->want);
    assert_int_equal(sbx_list_state(fx.list), row->state);
    if (!st) {
        look();
        assert_string_equal(fx.seen.data, row->seen);
        assert_int_equal(sbx_list_bytes(fx.list), row->n_records);
        assert_int_equal(sbx_list_duplicates(fx.list) || sbx_list_find_errors(fx.list),
                         row->state == SBX_LISTING_WARNED);
        return;
    }
    assert_non_null(strstr(fx.err.msg, row->seen));
    (void)sbx_list_records(fx.list, &n);
    assert_int_equal(n, 0);
}

static void check_list(void **state)
{
    const struct list_row *row = *state;
    const char *plain = "printf,plain,base64";
    struct stream s = {.payload = row->records,
                       .n_payload = row->n_records,
                       .tools = row->tools ? row->tools : plain,
                       .end = row->end};
    const struct sbx_list_limits limits = {
        .max_bytes = row->limits.max_bytes ? row->limits.max_bytes : SBX_MIB,
        .max_records = row->limits.max_records ? row->limits.max_records : 100};

    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    for (size_t at = 0; at <= fx.text.len; at++)
        check_outcome(row, feed(&limits, at, fx.text.len, row->exit));
    check_outcome(row, feed(&limits, 1, 1, row->exit));
}

static const struct root_row {
    const char *why;
    const char *begin;
    enum sbx_listing_state state;
} root_rows[] = {
    {"a missing root is no empty one", "v=1 root=missing now=1 tools=printf,gzip,base64",
     SBX_LISTING_MISSING},
    {"a root that is no directory", "v=1 root=notdir now=1 tools=printf,gzip,base64",
     SBX_LISTING_NOTDIR},
    {"a root that may not be looked at", "v=1 root=denied now=1 tools=printf,gzip,base64",
     SBX_LISTING_DENIED},
};

static void check_root(void **state)
{
    const struct root_row *row = *state;
    const struct stream s = {
        .payload = "", .tools = "printf,plain,base64", .begin = row->begin, .end = "-"};
    const struct sbx_list_limits limits = {SBX_MIB, 100};

    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    assert_int_equal(feed(&limits, 1, 1, (struct sbx_exit)OK_EXIT), SBX_OK);
    assert_int_equal(sbx_list_state(fx.list), row->state);
    look();
    assert_string_equal(fx.seen.data, "");
    assert_int_equal(feed(&limits, 1, 1, (struct sbx_exit){SBX_EXIT_EXITED, 1}), SBX_E_REMOTE);
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_DAMAGED);
}

/* A hostile length is a length that came, never a claim. */
static void long_name(void **state)
{
    SBX_BUF_AUTO struct sbx_buf records = SBX_BUF_INIT(SIZE_MAX);
    const struct sbx_list_limits limits = {4 * SBX_MIB, 100};
    struct stream s = {.tools = "printf,gzip,base64"};
    size_t n = 3 * SBX_MIB, n_records;

    (void)state;
    add(&records, "1 2.5 3.5 ");
    must(sbx_buf_reserve(&records, n, NULL));
    memset(records.data + records.len, 'x', n);
    records.len += n;
    must(sbx_buf_add(&records,
                     BYTES("\0"
                           "1 2.5 3.5 a\0"
                           "end 0\0"),
                     NULL));
    s.payload = records.data;
    s.n_payload = records.len;
    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    sbx_buf_done(&records);
    assert_int_equal(feed(&limits, 1000, 1000, (struct sbx_exit)OK_EXIT), SBX_OK);
    assert_int_equal(sbx_list_records(fx.list, &n_records)[1].path_len, n);
    assert_int_equal(n_records, 2);
}

/* Records for ever: reading stops, and what was read is given back. */
static void endless(void **state)
{
    const char line[] = "MSAyLjUgMy41IGEA\n"; /* one record, no padding */
    const struct sbx_list_limits limits = {SBX_MIB, 10000};
    enum sbx_status st;
    size_t sent = 0, n;

    (void)state;
    assert_int_equal(sbx_list_new(NONCE, &limits, &fx.list, NULL), SBX_OK);
    st = sbx_list_write(fx.list,
                        BYTES(NONCE " begin v=1 root=ok now=1 tools=printf,plain,base64\n"), NULL);
    for (; !st && sent < 100000; sent++)
        st = sbx_list_write(fx.list, line, sizeof(line) - 1, &fx.err);
    assert_int_equal(st, SBX_E_LIMIT);
    assert_int_equal(sent, 10001);
    assert_int_equal(sbx_list_seen(fx.list), 10000);
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_TRUNCATED);
    (void)sbx_list_records(fx.list, &n);
    assert_int_equal(n, 0);
    assert_int_equal(sbx_list_end(fx.list, (struct sbx_exit)OK_EXIT, &fx.err), SBX_E_LIMIT);
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_TRUNCATED);
}

static void killed_at_limit(void **state)
{
    const struct stream s = {.payload = BYTES("1 2.5 3.5 a\0"
                                              "end 0\0")};
    const struct sbx_list_limits limits = {8, 100};

    (void)state;
    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    assert_int_equal(feed(&limits, 1, 1, (struct sbx_exit){SBX_EXIT_SIGNALLED, 15}), SBX_E_LIMIT);
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_TRUNCATED);
}

static void facts_before_end(void **state)
{
    const struct stream s = {.payload = BYTES("1 2.5 3.5 a\0"
                                              "end 0\0")};
    const struct sbx_list_limits limits = {SBX_MIB, 100};

    (void)state;
    fx.text = SBX_BUF_INIT(SIZE_MAX);
    stream_make(&s, &fx.text);
    assert_int_equal(sbx_list_new(NONCE, &limits, &fx.list, NULL), SBX_OK);
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_NONE);
    assert_int_equal(sbx_list_write(fx.list, fx.text.data, fx.text.len, NULL), SBX_OK);
    assert_int_equal(sbx_list_seen(fx.list), 1);
    assert_int_equal(sbx_list_frame(fx.list)->now, 1000);
    assert_string_equal(sbx_list_frame(fx.list)->tools, "printf,gzip,base64");
}

int main(void)
{
    struct CMUnitTest tests[128];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(rows), check_list);
    n = rows_add(tests, n, ROWS(root_rows), check_root);
    tests[n++] =
        (struct CMUnitTest){.name = "a name of 3 MiB is one record", .test_func = long_name};
    tests[n++] =
        (struct CMUnitTest){.name = "records for ever stop at the limit", .test_func = endless};
    tests[n++] = (struct CMUnitTest){.name = "a script that was ended at the limit is truncated",
                                     .test_func = killed_at_limit};
    tests[n++] = (struct CMUnitTest){.name = "counts and frame are there before the end",
                                     .test_func = facts_before_end};
    for (size_t i = 0; i < n; i++)
        tests[i].teardown_func = teardown;
    return rows_run("listing list", tests, n);
}
