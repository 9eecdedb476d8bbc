#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

#include "tests/support/rows.h"

static void closing_forgets_and_keeps_errno(void **state SBX_UNUSED)
{
    int ends[2], kept;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    kept = ends[0];
    errno = ENOSPC;
    sbx_fd_close(&ends[0]);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(ends[0], -1);
    assert_int_equal(fcntl(kept, F_GETFD), -1);
    errno = ENOSPC;
    sbx_fd_close(&ends[0]); /* twice is fine */
    assert_int_equal(errno, ENOSPC);
    sbx_fd_close(&ends[1]);
}

static void a_failing_close_keeps_errno_too(void **state SBX_UNUSED)
{
    int fd = 1000000; /* open nowhere */

    errno = EIO;
    sbx_fd_close(&fd);
    assert_int_equal(errno, EIO);
    assert_int_equal(fd, -1);
}

static int pass_on(int *ret_kept)
{
    int ends[2];
    SBX_FD_AUTO int owned = -1;
    SBX_FD_AUTO int other = -1;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    owned = ends[0];
    other = ends[1];
    *ret_kept = ends[1];
    return sbx_fd_take(&owned);
}

static void what_is_taken_survives_its_owner(void **state SBX_UNUSED)
{
    int closed = -1, fd = pass_on(&closed);

    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_int_equal(fcntl(closed, F_GETFD), -1);
    sbx_fd_close(&fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_forgets_and_keeps_errno),
        cmocka_unit_test(a_failing_close_keeps_errno_too),
        cmocka_unit_test(what_is_taken_survives_its_owner),
    };

    return rows_run("fd", tests, N_ELEMENTS(tests));
}
