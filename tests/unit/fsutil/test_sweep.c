#include "fsutil/sweep.h"

#include "tests/support/world.h"

#define TOKEN "00112233445566778899aabb"
#define OTHER "ffffffffffffffffffffffff"

static const struct sweep_case {
    const char *why;
    const char *build; /* of "x" */
    const char *name;
    bool removed;
} sweep_cases[] = {
    {"a temporary of the token", "f:", ".sbx-sync." TOKEN ".1", true},
    {"a temporary with a long number", "f:", ".sbx-sync." TOKEN ".18446744073709551615", true},
    {"a temporary of another token", "f:", ".sbx-sync." OTHER ".1", false},
    {"a user's file that looks alike", "f:", ".sbx-sync.other", false},
    {"no number", "f:", ".sbx-sync." TOKEN ".", false},
    {"no point", "f:", ".sbx-sync." TOKEN, false},
    {"more behind the number", "f:", ".sbx-sync." TOKEN ".1.bak", false},
    {"no digits", "f:", ".sbx-sync." TOKEN ".1a", false},
    {"more in front", "f:", "x.sbx-sync." TOKEN ".1", false},
    {"a link of that name", "l:", ".sbx-sync." TOKEN ".1", false},
    {"a directory of that name", "d:", ".sbx-sync." TOKEN ".1", false},
    {"a FIFO of that name", "p:", ".sbx-sync." TOKEN ".1", false},
};

static void check_sweep(void **state)
{
    struct world *w = *state;
    const struct sweep_case *c = w->row;
    size_t removed = 10, failed = 20;
    char spec[128];

    (void)snprintf(spec, sizeof(spec), "%s%s%s", c->build, c->name,
                   c->build[0] == 'l' ? "=../outside/victim" : "");
    world_build(w, spec);
    w->leftovers_wanted = !c->removed;
    assert_int_equal(sbx_fs_sweep(w->rootfd, TOKEN, &removed, &failed, NULL), SBX_OK);
    assert_int_equal(removed, 10 + c->removed);
    assert_int_equal(failed, 20);
    assert_int_equal(world_exists(w, c->name), !c->removed);
}

static void removes_thousands(void **state)
{
    struct world *w = *state;
    size_t removed = 0, failed = 0;
    char name[64];

    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), ".sbx-sync." TOKEN ".%d", i);
        world_file(w, name, "");
    }
    world_build(w, "f:keep");
    assert_int_equal(sbx_fs_sweep(w->rootfd, TOKEN, &removed, &failed, NULL), SBX_OK);
    assert_int_equal(removed, 3000);
    assert_int_equal(failed, 0);
    assert_int_equal(world_count(w->rootfd, ".", ""), 1);
}

static int try_sweep(struct world *w)
{
    size_t removed = 0, failed = 0;

    if (sbx_fs_sweep(w->rootfd, TOKEN, &removed, &failed, NULL))
        return 1;
    return removed == 0 && failed == 2 ? 0 : 2;
}

static void counts_what_it_may_not_remove(void **state)
{
    struct world *w = *state;

    world_build(w, "f:.sbx-sync." TOKEN ".1 f:.sbx-sync." TOKEN ".2 f:.sbx-sync." OTHER ".3");
    w->leftovers_wanted = true;
    assert_int_equal(world_as_user(try_sweep, w), geteuid() == 0 ? 0 : 2);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("thousands are removed", removes_thousands),
        WORLD_TEST("what may not be removed is counted once", counts_what_it_may_not_remove),
    };
    struct CMUnitTest tests[N_ELEMENTS(sweep_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(sweep_cases), check_sweep);

    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
