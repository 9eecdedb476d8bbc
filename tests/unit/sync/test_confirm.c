#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sync/confirm.h"

static const struct row {
    const char *why;
    const char *listed, *now;
    bool ignore_ctime;
    enum sbx_confirmed want;
} rows[] = {
    {"the same record confirms", "5 10.5 20.5 a", "5 10.5 20.5 a", false, SBX_CONFIRM_SAME},
    {"zeros at the end of a fraction mean nothing", "5 10.5 20.5 a", "5 10.5000000000 20.500 a",
     false, SBX_CONFIRM_SAME},
    {"another size has changed", "5 10.5 20.5 a", "6 10.5 20.5 a", false, SBX_CONFIRM_CHANGED},
    {"another second of mtime has changed", "5 10.5 20.5 a", "5 11.5 20.5 a", false,
     SBX_CONFIRM_CHANGED},
    {"another nanosecond of mtime has changed", "5 10.5 20.5 a", "5 10.500000001 20.5 a", false,
     SBX_CONFIRM_CHANGED},
    {"only the ctime moved", "5 10.5 20.5 a", "5 10.5 20.6 a", false, SBX_CONFIRM_CTIME},
    {"a moved ctime can be ignored", "5 10.5 20.5 a", "5 10.5 20.6 a", true, SBX_CONFIRM_SAME},
    {"a moved mtime cannot be ignored", "5 10.5 20.5 a", "5 10.6 20.5 a", true,
     SBX_CONFIRM_CHANGED},
    {"a listing in whole seconds is compared in whole seconds", "5 10 20 a", "5 10.7 20.9 a", false,
     SBX_CONFIRM_SAME},
    {"a listing in whole seconds sees the next second", "5 10 20 a", "5 10 21.0 a", false,
     SBX_CONFIRM_CTIME},
    {"a zero mtime alone is no listing in whole seconds", "5 10.0 20.5 a", "5 10.1 20.5 a", false,
     SBX_CONFIRM_CHANGED},
    {"no record means no regular file any more", "5 10.5 20.5 a", "", false, SBX_CONFIRM_GONE},
    {"a record of another path is a change", "5 10.5 20.5 a", "5 10.5 20.5 b", false,
     SBX_CONFIRM_CHANGED},
    {"a record of a longer path is a change", "5 10.5 20.5 a", "5 10.5 20.5 ab", false,
     SBX_CONFIRM_CHANGED},
    {"a record that cannot be read is a change", "5 10.5 20.5 a", "-5 10.5 20.5 a", false,
     SBX_CONFIRM_CHANGED},
    {"a time that is none is a change", "5 10.5 20.5 a", "5 10.5 now a", false,
     SBX_CONFIRM_CHANGED},
};

static void check(void **state)
{
    const struct row *row = *state;
    struct sbx_record listed;

    assert_int_equal(sbx_list_record_parse(row->listed, strlen(row->listed), &listed, NULL),
                     SBX_OK);
    assert_int_equal(sbx_confirm_record(&listed, row->now, strlen(row->now), row->ignore_ctime),
                     row->want);
}

int main(void)
{
    struct CMUnitTest tests[sizeof(rows) / sizeof(*rows)];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        tests[i] = (struct CMUnitTest){rows[i].why, check, NULL, NULL, (void *)&rows[i]};
    return cmocka_run_group_tests_name("confirming a record", tests, NULL, NULL);
}
