#include "state/state.h"

#include "tests/support/world.h"

static void makes_locks_and_closes(void **state)
{
    struct world *w = *state;
    struct sbx_state one = SBX_STATE_INIT, two = SBX_STATE_INIT;
    struct sbx_error err = {0};
    mode_t before = umask(0);

    assert_int_equal(sbx_state_open(&one, w->rootfd, 0, -1, &err), SBX_OK);
    umask(before);
    assert_false(one.no_lock);
    assert_int_equal(world_mode(w, ".sbx-sync"), 0755);
    assert_int_equal(world_mode(w, ".sbx-sync/lock"), 0600);
    assert_int_equal(sbx_state_open(&two, w->rootfd, 0, -1, &err), SBX_E_BUSY);
    assert_int_equal(two.dirfd, -1);
    sbx_state_close(&one);
    sbx_state_close(&one);
    assert_int_equal(sbx_state_open(&two, w->rootfd, 0, -1, &err), SBX_OK);
    sbx_state_close(&two);
}

static void peeking_makes_and_locks_nothing(void **state)
{
    struct world *w = *state;
    struct sbx_state one = SBX_STATE_INIT, two = SBX_STATE_INIT;

    assert_int_equal(sbx_state_peek(&two, w->rootfd, NULL), SBX_OK);
    assert_int_equal(two.dirfd, -1);
    assert_false(world_exists(w, ".sbx-sync"));
    assert_int_equal(sbx_state_open(&one, w->rootfd, 0, -1, NULL), SBX_OK);
    assert_int_equal(sbx_state_peek(&two, w->rootfd, NULL), SBX_OK);
    assert_true(two.dirfd >= 0);
    assert_int_equal(two.lockfd, -1);
    sbx_state_close(&two);
    sbx_state_close(&one);
}

static const struct planted_case {
    const char *why;
    const char *build;
    const char *path; /* to be given `mode` or away */
    mode_t mode;
    bool away;
    enum sbx_status status;
} planted_cases[] = {
    {"a state directory of ours", "d:.sbx-sync", NULL, 0, false, SBX_OK},
    {"a lock with a second link (cp -al)", "d:.sbx-sync f:.sbx-sync/lock h:copy=.sbx-sync/lock",
     NULL, 0, false, SBX_OK},
    {"a link as state directory", "l:.sbx-sync=../outside", NULL, 0, false, SBX_E_HOST},
    {"a file as state directory", "f:.sbx-sync", NULL, 0, false, SBX_E_HOST},
    {"a state directory that all may write", "d:.sbx-sync", ".sbx-sync", 0777, false, SBX_E_HOST},
    {"a state directory of someone else", "d:.sbx-sync", ".sbx-sync", 0, true, SBX_E_HOST},
    {"a link as lock", "d:.sbx-sync l:.sbx-sync/lock=../../outside/victim", NULL, 0, false,
     SBX_E_HOST},
    {"a FIFO as lock", "d:.sbx-sync p:.sbx-sync/lock", NULL, 0, false, SBX_E_HOST},
    {"a directory as lock", "d:.sbx-sync d:.sbx-sync/lock", NULL, 0, false, SBX_E_HOST},
    {"a lock that the group may write", "d:.sbx-sync f:.sbx-sync/lock", ".sbx-sync/lock", 0620,
     false, SBX_E_HOST},
    {"a lock of someone else", "d:.sbx-sync f:.sbx-sync/lock", ".sbx-sync/lock", 0, true,
     SBX_E_HOST},
};

static void check_planted(void **state)
{
    struct world *w = *state;
    const struct planted_case *c = w->row;
    struct sbx_state s = SBX_STATE_INIT;
    struct sbx_error err = {0};

    world_build(w, c->build);
    if (c->mode)
        assert_int_equal(fchmodat(w->rootfd, c->path, c->mode, 0), 0);
    if (c->away && fchownat(w->rootfd, c->path, 1000, 1000, 0) < 0)
        skip(); /* only root can give a file away, and at a desk nobody has to be root */
    assert_int_equal(sbx_state_open(&s, w->rootfd, 0, -1, &err), c->status);
    if (c->status) {
        assert_string_not_equal(err.step, "");
        assert_int_equal(s.dirfd, -1);
    }
    sbx_state_close(&s);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(planted_cases) + 2];
    size_t n = world_rows(tests, 0, ROWS(planted_cases), check_planted);

    tests[n++] = (struct CMUnitTest)WORLD_TEST("a destination is made ready, locked and let go",
                                               makes_locks_and_closes);
    tests[n++] = (struct CMUnitTest)WORLD_TEST("peeking makes and locks nothing",
                                               peeking_makes_and_locks_nothing);
    return cmocka_run_group_tests_name("state directory", tests, NULL, NULL);
}
