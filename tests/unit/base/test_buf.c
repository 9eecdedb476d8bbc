#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/rows.h"

static int setup(void **state)
{
    struct sbx_buf *buf = malloc(sizeof(*buf));

    *buf = SBX_BUF_INIT(1u << 20);
    *state = buf;
    return 0;
}

static int teardown(void **state)
{
    sbx_buf_done(*state);
    sbx_buf_done(*state); /* twice is fine */
    free(*state);
    return 0;
}

static void appended_text_is_terminated(void **state)
{
    struct sbx_buf *buf = *state;

    assert_int_equal(sbx_buf_str(buf, "ab", NULL), SBX_OK);
    assert_int_equal(sbx_buf_add(buf, "c\0d", 3, NULL), SBX_OK);
    assert_int_equal(sbx_buf_printf(buf, NULL, "-%d-%s", 42, "x"), SBX_OK);
    assert_int_equal(buf->len, 10);
    assert_memory_equal(buf->data, "abc\0d-42-x", 11);
}

static void nothing_appended_to_nothing_is_an_empty_text(void **state)
{
    struct sbx_buf *buf = *state;

    assert_int_equal(sbx_buf_add(buf, NULL, 0, NULL), SBX_OK);
    assert_int_equal(buf->len, 0);
    assert_string_equal(buf->data, "");
}

static void growth_is_geometric(void **state)
{
    struct sbx_buf *buf = *state;
    size_t cap = 0, growths = 0;

    for (int i = 0; i < 1 << 20; i++) {
        assert_int_equal(sbx_buf_add(buf, "x", 1, NULL), SBX_OK);
        growths += buf->cap != cap;
        cap = buf->cap;
    }
    assert_in_range(growths, 2, 20);
}

struct limit {
    const char *name;
    size_t max, first, second;
    enum sbx_status status;
};

static const struct limit limits[] = {
    {"the maximum itself fits", 10, 4, 6, SBX_OK},
    {"one byte more does not", 10, 4, 7, SBX_E_LIMIT},
    {"a maximum below the first allocation holds", 3, 3, 1, SBX_E_LIMIT},
    {"a maximum of zero takes nothing", 0, 0, 1, SBX_E_LIMIT},
    {"a maximum of zero takes an empty text", 0, 0, 0, SBX_OK},
    {"the largest length does not wrap", 10, 4, SIZE_MAX, SBX_E_LIMIT},
    {"without a maximum, the largest length does not wrap", SIZE_MAX, 4, SIZE_MAX, SBX_E_LIMIT},
    {"without a maximum, there is room for the end", SIZE_MAX, 4, SIZE_MAX - 4, SBX_E_LIMIT},
    {"without a maximum, what cannot be had is refused", SIZE_MAX, 4, SIZE_MAX / 2, SBX_E_NOMEM},
};

/* Adding, reserving and formatting keep the same limit, and leave what was there. */
static void limit(void **state)
{
    const struct limit *row = *state;
    struct sbx_buf buf = SBX_BUF_INIT(row->max);
    struct sbx_error err = {0};
    enum sbx_status add, reserve, print = row->status;
    size_t len;
    int differs = 0;

    assert_int_equal(sbx_buf_add(&buf, "aaaa", row->first, NULL), SBX_OK);
    reserve = sbx_buf_reserve(&buf, row->second, &err);
    if (row->second < 100)
        print = sbx_buf_printf(&buf, &err, "%*s", (int)row->second, "");
    len = buf.len;
    if (!print)
        buf.len = row->first;
    /* The bytes are only read where they fit. */
    add = sbx_buf_add(&buf, "bbbbbbbbbb", row->second, &err);
    differs = memcmp(buf.data, "aaaa", row->first) || buf.data[buf.len] != '\0';
    sbx_buf_done(&buf);
    assert_int_equal(reserve, row->status);
    assert_int_equal(print, row->status);
    assert_int_equal(add, row->status);
    assert_int_equal(err.status, row->status);
    assert_int_equal(len, row->status || row->second > 100 ? row->first : row->first + row->second);
    assert_int_equal(differs, 0);
}

static void reserved_room_may_be_written(void **state)
{
    struct sbx_buf *buf = *state;

    assert_int_equal(sbx_buf_reserve(buf, 5000, NULL), SBX_OK);
    memset(buf->data + buf->len, 'r', 5000);
    buf->len += 5000;
    assert_int_equal(sbx_buf_str(buf, "!", NULL), SBX_OK);
    assert_int_equal(buf->data[4999], 'r');
    assert_string_equal(buf->data + 5000, "!");
}

static void shifting_keeps_the_rest(void **state)
{
    struct sbx_buf *buf = *state;

    sbx_buf_shift(buf, 0);
    assert_int_equal(sbx_buf_str(buf, "headtail", NULL), SBX_OK);
    sbx_buf_shift(buf, 4);
    assert_string_equal(buf->data, "tail");
    assert_int_equal(buf->len, 4);
    sbx_buf_shift(buf, 4);
    assert_string_equal(buf->data, "");
}

static void clearing_keeps_the_memory(void **state)
{
    struct sbx_buf *buf = *state;
    const char *data;

    sbx_buf_clear(buf);
    assert_int_equal(sbx_buf_str(buf, "something", NULL), SBX_OK);
    data = buf->data;
    sbx_buf_clear(buf);
    assert_int_equal(buf->len, 0);
    assert_string_equal(buf->data, "");
    assert_int_equal(sbx_buf_str(buf, "else", NULL), SBX_OK);
    assert_ptr_equal(buf->data, data);
}

struct grow {
    const char *name;
    size_t cap, need, max, size;
    enum sbx_status status;
    size_t cap_after;
};

static const struct grow grows[] = {
    {"an array that is large enough stays", 8, 8, 100, 4, SBX_OK, 8},
    {"an array begins with 16 elements", 0, 1, 100, 4, SBX_OK, 16},
    {"an array doubles", 20, 21, 100, 4, SBX_OK, 40},
    {"an array takes what is needed at once", 20, 70, 100, 4, SBX_OK, 70},
    {"an array stops at its maximum", 60, 61, 100, 4, SBX_OK, 100},
    {"an array begins at its maximum", 0, 1, 3, 4, SBX_OK, 3},
    {"an array does not pass its maximum", 100, 101, 100, 4, SBX_E_LIMIT, 100},
    {"an array of more bytes than there are is refused", 0, SIZE_MAX / 16 + 2, SIZE_MAX, 16,
     SBX_E_NOMEM, 0},
};

static void array_growth(void **state)
{
    const struct grow *row = *state;
    void *array = row->cap ? malloc(row->cap * row->size) : NULL, *before = array;
    struct sbx_error err = {0};
    size_t cap = row->cap;
    enum sbx_status st = sbx_array_grow(&array, &cap, row->need, row->max, row->size, &err);
    int moved = st && array != before;

    if (!st)
        memset(array, 1, cap * row->size);
    free(array);
    assert_int_equal(st, row->status);
    assert_int_equal(err.status, row->status);
    assert_int_equal(cap, row->cap_after);
    assert_int_equal(moved, 0);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(limits) + N_ELEMENTS(grows) + 6] = {
        cmocka_unit_test_setup_teardown(appended_text_is_terminated, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_appended_to_nothing_is_an_empty_text, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(growth_is_geometric, setup, teardown),
        cmocka_unit_test_setup_teardown(reserved_room_may_be_written, setup, teardown),
        cmocka_unit_test_setup_teardown(shifting_keeps_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(clearing_keeps_the_memory, setup, teardown),
    };
    size_t n = rows_add(tests, 6, ROWS(limits), limit);

    n = rows_add(tests, n, ROWS(grows), array_growth);
    return rows_run("buf", tests, n);
}
