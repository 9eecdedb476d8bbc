#include "base/budget.h"

#include <string.h>

#include "tests/unit/base/rows.h"

struct row {
    const char *name;
    uint64_t left, n;
    enum sbx_status status;
    uint64_t left_after;
};

static const struct row rows[] = {
    {"what is there is paid", 10, 4, SBX_OK, 6},
    {"the last unit may be spent", 10, 10, SBX_OK, 0},
    {"nothing costs nothing, even from nothing", 0, 0, SBX_OK, 0},
    {"one too many is refused and nothing paid", 10, 11, SBX_E_LIMIT, 10},
    {"the largest number does not wrap", 10, UINT64_MAX, SBX_E_LIMIT, 10},
};

static void charge(void **state)
{
    const struct row *row = *state;
    struct sbx_budget budget = {.left = row->left, .what = "listing bytes"};
    struct sbx_error err = {0};

    assert_int_equal(sbx_budget_charge(&budget, row->n, &err), row->status);
    assert_true(budget.left == row->left_after);
    assert_int_equal(err.status, row->status);
    if (row->status)
        assert_non_null(strstr(err.msg, "listing bytes"));
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows)];
    size_t n = rows_add(tests, 0, rows, N_ELEMENTS(rows), sizeof(rows[0]), charge);

    return rows_run("budget", tests, n);
}
