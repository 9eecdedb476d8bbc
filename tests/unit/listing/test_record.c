#include "listing/record.h"

#include "tests/support/rows.h"

#define BYTES(s) (s), sizeof(s) - 1
#define REP16(s) s s s s s s s s s s s s s s s s

static const struct record_row {
    const char *why;
    const char *bytes;
    size_t n;
    enum sbx_status want;
    uint64_t size;
    struct sbx_time mtime, ctime;
    uint32_t flags;
    const char *path;
    size_t path_len;
} record_rows[] = {
    {"GNU find prints ten digits after the point",
     BYTES("12 5.1234567890 6.0000000010 a/b"),
     SBX_OK,
     12,
     {5, 123456789},
     {6, 1},
     0,
     BYTES("a/b")},
    {"a time may have no fraction", BYTES("0 5 6 a"), SBX_OK, 0, {5, 0}, {6, 0}, 0, BYTES("a")},
    {"a short fraction counts from the left",
     BYTES("0 5.5 6.000001 a"),
     SBX_OK,
     0,
     {5, 500000000},
     {6, 1000},
     0,
     BYTES("a")},
    {"the path takes all the rest, blanks and newlines too",
     BYTES("1 2 3  a b\n c "),
     SBX_OK,
     1,
     {2, 0},
     {3, 0},
     0,
     BYTES(" a b\n c ")},
    {"a path need not be UTF-8",
     BYTES("1 2 3 a\xff"),
     SBX_OK,
     1,
     {2, 0},
     {3, 0},
     0,
     BYTES("a\xff")},
    {"an empty path is for preflight to refuse",
     BYTES("1 2 3 "),
     SBX_OK,
     1,
     {2, 0},
     {3, 0},
     0,
     BYTES("")},
    {"the largest size",
     BYTES("9223372036854775807 2 3 a"),
     SBX_OK,
     INT64_MAX,
     {2, 0},
     {3, 0},
     0,
     BYTES("a")},
    {"the fraction of a negative time counts forward",
     BYTES("0 -5.0000000000 -1.25 a"),
     SBX_OK,
     0,
     {-5, 0},
     {-1, 250000000},
     0,
     BYTES("a")},
    {"toybox prints negative times as unsigned",
     BYTES("0 18446744073709551611.75 3 a"),
     SBX_OK,
     0,
     {-5, 750000000},
     {3, 0},
     0,
     BYTES("a")},
    {"the earliest time, unsigned",
     BYTES("0 9223372036854775808 3 a"),
     SBX_OK,
     0,
     {INT64_MIN, 0},
     {3, 0},
     0,
     BYTES("a")},
    {"the earliest time, signed",
     BYTES("0 -9223372036854775808.0 3 a"),
     SBX_OK,
     0,
     {INT64_MIN, 0},
     {3, 0},
     0,
     BYTES("a")},
    {"the latest time",
     BYTES("0 9223372036854775807.999999999999 3 a"),
     SBX_OK,
     0,
     {INT64_MAX, 999999999},
     {3, 0},
     0,
     BYTES("a")},
    {"the year 2446",
     BYTES("0 15032385535.0000000000 3 a"),
     SBX_OK,
     0,
     {15032385535, 0},
     {3, 0},
     0,
     BYTES("a")},
    {"the year 99999",
     BYTES("0 3093527980800.0 3 a"),
     SBX_OK,
     0,
     {3093527980800, 0},
     {3, 0},
     0,
     BYTES("a")},
    {"minus zero is zero", BYTES("0 -0 3 a"), SBX_OK, 0, {0, 0}, {3, 0}, 0, BYTES("a")},
    {"mtime nan costs only its entry",
     BYTES("1 nan 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"mtime 1e400",
     BYTES("1 1e400 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"no mtime", BYTES("1  3 a"), SBX_OK, 1, {0, 0}, {3, 0}, SBX_RECORD_BAD_TIME, BYTES("a")},
    {"a bad ctime keeps the mtime",
     BYTES("1 2 x a"),
     SBX_OK,
     1,
     {2, 0},
     {0, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time with a plus",
     BYTES("1 +2 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time of a sign alone",
     BYTES("1 - 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time without an integer part",
     BYTES("1 .5 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time that ends in its point",
     BYTES("1 2. 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time with two points",
     BYTES("1 2.3.4 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a sign within the fraction",
     BYTES("1 2.-3 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a letter far behind the nanoseconds",
     BYTES("1 2.0000000000000x 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time below the earliest",
     BYTES("1 -9223372036854775809 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time of 2^64",
     BYTES("1 18446744073709551616 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a time of hundreds of digits",
     BYTES("1 " REP16(REP16("9")) " 3 a"),
     SBX_OK,
     1,
     {0, 0},
     {3, 0},
     SBX_RECORD_BAD_TIME,
     BYTES("a")},
    {"a negative size", BYTES("-1 2 3 a"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"a size of 2^63",
     BYTES("9223372036854775808 2 3 a"),
     SBX_E_REMOTE,
     0,
     {0, 0},
     {0, 0},
     0,
     NULL,
     0},
    {"a size of 2^64 - 1",
     BYTES("18446744073709551615 2 3 a"),
     SBX_E_REMOTE,
     0,
     {0, 0},
     {0, 0},
     0,
     NULL,
     0},
    {"a size of 2^64 does not wrap",
     BYTES("18446744073709551616 2 3 a"),
     SBX_E_REMOTE,
     0,
     {0, 0},
     {0, 0},
     0,
     NULL,
     0},
    {"a hexadecimal size", BYTES("0x10 2 3 a"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"an empty size", BYTES(" 2 3 a"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"a size with a fraction", BYTES("1.0 2 3 a"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"a size with a plus", BYTES("+1 2 3 a"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"no separator at all", BYTES("abc"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"a separator too few", BYTES("1 2 a"), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
    {"an empty record", BYTES(""), SBX_E_REMOTE, 0, {0, 0}, {0, 0}, 0, NULL, 0},
};

static void check_record(void **state)
{
    const struct record_row *row = *state;
    struct sbx_record got = {.size = 77};
    struct sbx_error err = {0};

    assert_int_equal(sbx_list_record_parse(row->bytes, row->n, &got, &err), row->want);
    assert_int_equal(err.status, row->want);
    if (row->want) {
        assert_int_equal(got.size, 77);
        return;
    }
    assert_int_equal(got.size, row->size);
    assert_int_equal(got.flags, row->flags);
    assert_int_equal(got.path_len, row->path_len);
    assert_memory_equal(got.path, row->path, row->path_len);
    assert_true(got.path >= row->bytes && got.path <= row->bytes + row->n);
    assert_int_equal(got.mtime.sec, row->mtime.sec);
    assert_int_equal(got.mtime.nsec, row->mtime.nsec);
    assert_int_equal(got.ctime.sec, row->ctime.sec);
    assert_int_equal(got.ctime.nsec, row->ctime.nsec);
}

static const struct order_row {
    const char *why;
    const char *a;
    size_t a_len;
    const char *b;
    size_t b_len;
    int want;
} order_rows[] = {
    {"equal paths", BYTES("a/b"), BYTES("a/b"), 0},
    {"the shorter comes first", BYTES("a"), BYTES("a/b"), -1},
    {"bytes decide, not letters", BYTES("B"), BYTES("a"), -1},
    {"bytes are unsigned", BYTES("a\xff"), BYTES("az"), 1},
    {"an empty path comes first", BYTES(""), BYTES("a"), -1},
};

static void check_order(void **state)
{
    const struct order_row *row = *state;
    int there = sbx_list_path_cmp(row->a, row->a_len, row->b, row->b_len);
    int back = sbx_list_path_cmp(row->b, row->b_len, row->a, row->a_len);

    assert_int_equal((there > 0) - (there < 0), row->want);
    assert_int_equal((back > 0) - (back < 0), -row->want);
}

static void check_memory(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct sbx_record), 48);
}

int main(void)
{
    struct CMUnitTest tests[128];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(record_rows), check_record);
    n = rows_add(tests, n, ROWS(order_rows), check_order);
    tests[n++] = (struct CMUnitTest){.name = "a record takes 48 bytes", .test_func = check_memory};
    return rows_run("listing record", tests, n);
}
