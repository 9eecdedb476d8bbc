#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "sync/budget.h"

static struct sbx_record record(const char *path, uint64_t size)
{
    return (struct sbx_record){.path = path, .path_len = (uint32_t)strlen(path), .size = size};
}

static const struct row {
    const char *why;
    uint64_t files, bytes;
    const char *first; /* admitted before; NULL: nothing */
    const char *path;
    uint64_t size;
    unsigned absent;
    bool want;
    uint64_t left; /* bytes, after both */
} rows[] = {
    {"a file that fits is paid for", 5, 100, NULL, "a", 60, 0, true, 40},
    {"a file of exactly what is left fits", 5, 100, NULL, "a", 100, 0, true, 0},
    {"a file one byte too large does not fit and costs nothing", 5, 100, NULL, "a", 101, 0, false,
     100},
    {"an empty file fits into nothing", 5, 0, NULL, "a", 0, 0, true, 0},
    {"the last file that may be transferred is the last", 0, 100, NULL, "a", 1, 0, false, 100},
    {"a directory to be made costs 4 KiB", 5, 5000, NULL, "d/a", 4, 1, true, 900},
    {"two directories to be made cost 8 KiB", 5, 9000, NULL, "d/e/a", 0, 2, true, 808},
    {"a directory that is there costs nothing", 5, 5000, NULL, "d/a", 4, 0, true, 4996},
    {"only what is missing of the way costs", 5, 5000, NULL, "d/e/a", 4, 1, true, 900},
    {"a directory that does not fit refuses its file", 5, 4000, NULL, "d/a", 1, 1, false, 4000},
    {"a directory is paid for once", 5, 5000, "d/a", "d/b", 4, 1, true, 900},
    {"a sibling directory is paid for by itself", 5, 9000, "d/a", "e/b", 4, 1, true, 804},
    {"a directory inside one that was paid for costs once more", 5, 9000, "d/a", "d/e/b", 4, 2,
     true, 804},
    {"a directory whose name begins alike is another one", 5, 9000, "da/a", "d/b", 4, 1, true, 804},
    {"the largest size there is does not wrap around", 5, 100, NULL, "d/a", UINT64_MAX, 1, false,
     100},
};

static void check(void **state)
{
    const struct row *row = *state;
    struct sbx_admission a = {.files_left = row->files, .bytes_left = row->bytes};
    struct sbx_record first = record(row->first ? row->first : "", 0);
    struct sbx_record r = record(row->path, row->size);

    if (row->first)
        assert_true(sbx_admit(&a, &first, 1));
    assert_int_equal(sbx_admit(&a, &r, row->absent), row->want);
    assert_int_equal(a.bytes_left, row->left);
}

int main(void)
{
    struct CMUnitTest tests[sizeof(rows) / sizeof(*rows)];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        tests[i] = (struct CMUnitTest){rows[i].why, check, NULL, NULL, (void *)&rows[i]};
    return cmocka_run_group_tests_name("what a pass takes on", tests, NULL, NULL);
}
