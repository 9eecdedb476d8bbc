#include "fsutil/lock.h"

#include "base/clock.h"
#include "tests/support/world.h"

struct files {
    int a, b; /* two open file descriptions of one file */
};

static struct files open_twice(struct world *w)
{
    struct files f = {.a = openat(w->rootfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};

    f.b = openat(w->rootfd, "lock", O_RDWR | O_CLOEXEC);
    assert_true(f.a >= 0 && f.b >= 0);
    return f;
}

static void close_both(struct files f)
{
    close(f.a);
    close(f.b);
}

static void the_second_is_busy_until_the_first_closes(void **state)
{
    struct files f = open_twice(*state);
    bool cannot = true;

    assert_int_equal(sbx_fs_lock(f.a, 0, -1, &cannot, NULL), SBX_OK);
    assert_false(cannot);
    assert_int_equal(sbx_fs_lock(f.b, 0, -1, &cannot, NULL), SBX_E_BUSY);
    close(f.a);
    f.a = -1;
    assert_int_equal(sbx_fs_lock(f.b, 0, -1, &cannot, NULL), SBX_OK);
    close_both(f);
}

static void waits_no_longer_than_it_may(void **state)
{
    struct files f = open_twice(*state);
    uint64_t begin = sbx_clock_now(), took;
    bool cannot;

    assert_int_equal(sbx_fs_lock(f.a, 0, -1, &cannot, NULL), SBX_OK);
    assert_int_equal(sbx_fs_lock(f.b, sbx_clock_after(begin, 0.2), -1, &cannot, NULL), SBX_E_BUSY);
    took = sbx_clock_now() - begin;
    assert_true(took >= 200 * SBX_NS_PER_MS && took < 2000ull * SBX_NS_PER_MS);
    close_both(f);
}

static void gets_the_lock_of_a_process_that_dies(void **state)
{
    struct files f = open_twice(*state);
    int ready[2], status;
    bool cannot;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(f.b);
        if (sbx_fs_lock(f.a, 0, -1, &cannot, NULL) || write(ready[1], "x", 1) != 1)
            _exit(1);
        usleep(150000);
        _exit(0);
    }
    close(f.a);
    f.a = -1;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(sbx_fs_lock(f.b, 0, -1, &cannot, NULL), SBX_E_BUSY);
    assert_int_equal(sbx_fs_lock(f.b, sbx_clock_after(sbx_clock_now(), 20), -1, &cannot, NULL),
                     SBX_OK);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
    close_both(f);
}

static void is_cancelled_while_it_waits(void **state)
{
    struct files f = open_twice(*state);
    uint64_t begin = sbx_clock_now();
    int cancel[2];
    bool cannot;

    assert_int_equal(pipe(cancel), 0);
    assert_int_equal(write(cancel[1], "x", 1), 1);
    assert_int_equal(sbx_fs_lock(f.a, 0, cancel[0], &cannot, NULL), SBX_OK);
    assert_int_equal(sbx_fs_lock(f.b, sbx_clock_after(begin, 20), cancel[0], &cannot, NULL),
                     SBX_E_CANCELLED);
    assert_true(sbx_clock_now() - begin < 5000ull * SBX_NS_PER_MS);
    close(cancel[0]);
    close(cancel[1]);
    close_both(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WORLD_TEST("the second is busy until the first closes",
                   the_second_is_busy_until_the_first_closes),
        WORLD_TEST("waiting ends at its deadline", waits_no_longer_than_it_may),
        WORLD_TEST("a dead process holds nothing", gets_the_lock_of_a_process_that_dies),
        WORLD_TEST("waiting ends when cancelled", is_cancelled_while_it_waits),
    };

    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
