#include "base/clock.h"

#include <limits.h>
#include <math.h>
#include <time.h>

#include "base/attr.h"
#include "tests/support/rows.h"

struct after {
    const char *name;
    uint64_t base;
    double s;
    uint64_t want;
};

static const struct after afters[] = {
    {"no time is the base itself", 5, 0.0, 5},
    {"a negative time counts as none", 5, -1.0, 5},
    {"not a number counts as none", 5, (double)NAN, 5},
    {"a fraction is kept to the nanosecond", 1, 0.1, 100000001},
    {"a fraction is rounded, not cut", 0, 1.001, 1001000000},
    {"seconds add up", 7, 120.0, 120000000007},
    {"400 days fit", 0, 400.0 * 86400.0, 34560000000000000},
    {"a time too long for 64 bits is never", 0, 1e12, SBX_NEVER},
    {"an infinite time is never", 0, (double)INFINITY, SBX_NEVER},
    {"a sum too large for 64 bits is never", UINT64_MAX - 10, 1.0, SBX_NEVER},
    {"never stays never", SBX_NEVER, 1.0, SBX_NEVER},
};

static void after(void **state)
{
    const struct after *row = *state;

    assert_true(sbx_clock_after(row->base, row->s) == row->want);
}

static void a_passed_deadline_polls_for_nothing(void **state SBX_UNUSED)
{
    assert_int_equal(sbx_clock_poll_ms(0, INT_MAX), 0);
    assert_int_equal(sbx_clock_poll_ms(sbx_clock_now(), INT_MAX), 0);
}

static void what_is_left_is_rounded_up(void **state SBX_UNUSED)
{
    /* 900.5 ms from now: whatever part of a millisecond passes in between, at most 901 and, on a
     * machine that is not stuck for half a second, never rounded down to below 400. */
    int ms = sbx_clock_poll_ms(sbx_clock_now() + 900500000u, INT_MAX);

    assert_in_range(ms, 400, 901);
}

static void less_than_a_millisecond_is_not_nothing(void **state SBX_UNUSED)
{
    int ms = 0;

    /* The deadline may pass before the clock is read again, so one of many trials has to see it. */
    for (int i = 0; i < 1000 && ms == 0; i++)
        ms = sbx_clock_poll_ms(sbx_clock_now() + 200000u, INT_MAX);
    assert_int_equal(ms, 1);
}

static void a_bound_holds(void **state SBX_UNUSED)
{
    uint64_t far = sbx_clock_now() + 3600ull * SBX_NS_PER_S;

    assert_int_equal(sbx_clock_poll_ms(far, 250), 250);
    assert_int_equal(sbx_clock_poll_ms(SBX_NEVER, 250), 250);
    assert_int_equal(sbx_clock_poll_ms(SBX_NEVER, INT_MAX), INT_MAX);
    assert_int_equal(sbx_clock_poll_ms(SBX_NEVER - 1, INT_MAX), INT_MAX);
}

static void clocks_agree_with_the_system(void **state SBX_UNUSED)
{
    uint64_t before = sbx_clock_now();
    int64_t epoch = sbx_clock_epoch(), now = (int64_t)time(NULL);

    assert_true(now - epoch >= -1 && now - epoch <= 60);
    assert_true(sbx_clock_now() >= before);
}

static void a_time_takes_twelve_bytes(void **state SBX_UNUSED)
{
    struct sbx_time a = {.sec = -1, .nsec = 5}, b = a;

    assert_int_equal(sizeof(a), 12);
    assert_true(sbx_time_equal(a, b));
    b.nsec = 6;
    assert_false(sbx_time_equal(a, b));
    b = (struct sbx_time){.sec = 1, .nsec = 5};
    assert_false(sbx_time_equal(a, b));
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(afters) + 6] = {
        cmocka_unit_test(a_passed_deadline_polls_for_nothing),
        cmocka_unit_test(what_is_left_is_rounded_up),
        cmocka_unit_test(less_than_a_millisecond_is_not_nothing),
        cmocka_unit_test(a_bound_holds),
        cmocka_unit_test(clocks_agree_with_the_system),
        cmocka_unit_test(a_time_takes_twelve_bytes),
    };
    size_t n = rows_add(tests, 6, ROWS(afters), after);

    return rows_run("clock", tests, n);
}
