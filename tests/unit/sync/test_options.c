#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "sync/options.h"
#include "tests/support/rows.h"

static void zeros_become_the_defaults(void **state)
{
    struct sbx_options in = SBX_OPTIONS_INIT, out;

    (void)state;
    in.dest = "out";
    assert_int_equal(sbx_sync_options(&in, &out, NULL), SBX_OK);
    assert_int_equal(out.max_records, SBX_MAX_RECORDS);
    assert_int_equal(out.max_directories, SBX_MAX_DIRECTORIES);
    assert_int_equal(out.max_listing, SBX_MAX_LISTING);
    assert_int_equal(out.max_files, SBX_MAX_FILES);
    assert_int_equal(out.max_file_size, SBX_MAX_FILE_SIZE);
    assert_int_equal(out.max_bytes, SBX_MAX_BYTES);
    assert_int_equal(out.jobs, SBX_JOBS);
    assert_int_equal(out.report_limit, SBX_REPORT_LIMIT);
    assert_true(out.deadline_s > SBX_DEADLINE_S - 1e-9 && out.deadline_s < SBX_DEADLINE_S + 1e-9);
    assert_int_equal(out.durability, SBX_DURABILITY_BATCH);
    assert_int_equal(out.names, SBX_NAMES_PORTABLE);
}

static void values_that_were_given_stay(void **state)
{
    struct sbx_options in = SBX_OPTIONS_INIT, out;

    (void)state;
    in.dest = "out";
    in.max_files = 7;
    in.deadline_s = 0.25;
    in.report_none = true;
    assert_int_equal(sbx_sync_options(&in, &out, NULL), SBX_OK);
    assert_int_equal(out.max_files, 7);
    assert_true(out.deadline_s < 0.26);
    assert_int_equal(out.report_limit, 0);
}

static void no_sense_version(struct sbx_options *o)
{
    o->version = 99;
}
static void no_sense_dest(struct sbx_options *o)
{
    o->dest = "";
}
static void no_sense_negative(struct sbx_options *o)
{
    o->deadline_s = -1;
}
static void no_sense_nan(struct sbx_options *o)
{
    o->wait_s = (double)NAN;
}
static void no_sense_infinite(struct sbx_options *o)
{
    o->deadline_s = (double)INFINITY;
}
static void no_sense_jobs(struct sbx_options *o)
{
    o->jobs = SBX_MAX_JOBS + 1;
}
static void no_sense_records(struct sbx_options *o)
{
    o->max_records = UINT64_MAX;
}
static void no_sense_listing(struct sbx_options *o)
{
    o->max_listing = UINT64_MAX;
}

static const struct row {
    const char *why;
    void (*spoil)(struct sbx_options *o);
} rows[] = {
    {"options of another version are refused", no_sense_version},
    {"an empty destination is refused", no_sense_dest},
    {"a negative deadline is refused", no_sense_negative},
    {"a wait that is no number is refused", no_sense_nan},
    {"an infinite deadline is refused", no_sense_infinite},
    {"more jobs than there may be are refused", no_sense_jobs},
    {"a record limit that would wrap around is refused", no_sense_records},
    {"a listing limit that would wrap around is refused", no_sense_listing},
};

static void check(void **state)
{
    const struct row *row = *state;
    struct sbx_options in = SBX_OPTIONS_INIT, out = SBX_OPTIONS_INIT;
    struct sbx_error err = {.status = SBX_OK};

    in.dest = "out";
    row->spoil(&in);
    assert_int_equal(sbx_sync_options(&in, &out, &err), SBX_E_USAGE);
    assert_int_equal(err.status, SBX_E_USAGE);
    assert_true(strlen(err.msg) > 0);
    assert_null(out.dest); /* untouched */
}

int main(void)
{
    struct CMUnitTest tests[2 + N_ELEMENTS(rows)] = {
        cmocka_unit_test(zeros_become_the_defaults),
        cmocka_unit_test(values_that_were_given_stay),
    };

    return rows_run("options of a pass", tests, rows_add(tests, 2, ROWS(rows), check));
}
