#include "fsutil/durable.h"

#include "tests/support/world.h"

static const struct sync_case {
    const char *why;
    const char *build;
    mode_t mode;
    enum sbx_status status;
    bool unfit; /* no call failed */
} sync_cases[] = {
    {"a regular file", "f:x", 0644, SBX_OK, false},
    {"a file that may only be written", "f:x", 0200, SBX_OK, false},
    {"no file", "", 0, SBX_E_HOST, false},
    {"a link", "l:x=../outside/victim", 0, SBX_E_HOST, false},
    {"a FIFO does not hold us", "p:x", 0, SBX_E_HOST, true},
    {"a directory", "d:x", 0, SBX_E_HOST, true},
};

static int try_sync(struct world *w)
{
    const struct sync_case *c = w->row;
    struct sbx_error err = {0};

    if (sbx_fs_sync_file(w->rootfd, "x", &err) != c->status)
        return 1;
    if (c->status && !err.step[0])
        return 2;
    return c->unfit != (err.os_errno == 0 && strstr(err.msg, "is no regular file")) ? 3 : 0;
}

static void check_sync(void **state)
{
    struct world *w = *state;
    const struct sync_case *c = w->row;

    world_build(w, c->build);
    if (c->mode) {
        assert_int_equal(fchmodat(w->rootfd, "x", c->mode, 0), 0);
        assert_int_equal(geteuid() ? 0 : fchownat(w->rootfd, "x", 65534, 65534, 0), 0);
    }
    assert_int_equal(world_as_user(try_sync, w), 0);
}

static void directories_and_file_systems_are_synced(void **state)
{
    struct world *w = *state;
    bool cannot = true;

    assert_int_equal(sbx_fs_sync_dir(w->rootfd, &cannot, NULL), SBX_OK);
    assert_false(cannot);
    assert_int_equal(sbx_fs_sync_all(w->rootfd, NULL), SBX_OK);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(sync_cases) + 1];
    size_t n = world_rows(tests, 0, ROWS(sync_cases), check_sync);

    tests[n++] = (struct CMUnitTest)WORLD_TEST("directories and file systems are synced",
                                               directories_and_file_systems_are_synced);
    return cmocka_run_group_tests_name("durability", tests, NULL, NULL);
}
