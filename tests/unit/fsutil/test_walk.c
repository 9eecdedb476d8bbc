#include "fsutil/walk.h"

#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "tests/support/world.h"

static const struct to_case {
    const char *why;
    const char *build;
    const char *path;
    enum sbx_fs_go go;
    enum sbx_reason reason;
    const char *with;
    bool arrives;
    size_t missing;
} to_cases[] = {
    {"the root itself", "", "", SBX_FS_LOOK, 0, "", true, 0},
    {"the root itself, to be made", "", "", SBX_FS_MAKE, 0, "", true, 0},
    {"a directory that is there", "d:a d:a/b", "a/b", SBX_FS_LOOK, 0, "", true, 0},
    {"looking makes nothing", "d:a", "a/b/c", SBX_FS_LOOK, 0, "", false, 2},
    {"all of it is missing", "", "a/b/c", SBX_FS_LOOK_ALIAS, 0, "", false, 3},
    {"making makes all", "d:a", "a/b/c", SBX_FS_MAKE, 0, "", true, 0},
    {"a link to a directory outside", "l:a=../outside", "a", SBX_FS_MAKE, SBX_REFUSE_LINKED, "a",
     false, 0},
    {"a link to a directory of the destination", "d:b l:a=b", "a/c", SBX_FS_LOOK, SBX_REFUSE_LINKED,
     "a", false, 0},
    {"a link further down", "d:b l:b/c=../../outside", "b/c/y", SBX_FS_MAKE, SBX_REFUSE_LINKED, "c",
     false, 0},
    {"a link to itself", "l:a=a", "a", SBX_FS_LOOK, SBX_REFUSE_LINKED, "a", false, 0},
    {"a dangling link", "l:a=nowhere", "a", SBX_FS_MAKE, SBX_REFUSE_LINKED, "a", false, 0},
    {"a file where a directory must go", "f:A1", "A1", SBX_FS_MAKE, SBX_REFUSE_TYPE_CONFLICT, "A1",
     false, 0},
    {"a FIFO where a directory must go", "d:a p:a/b", "a/b", SBX_FS_MAKE, SBX_REFUSE_TYPE_CONFLICT,
     "b", false, 0},
    {"another spelling of the directory", "d:Blah", "blah", SBX_FS_MAKE, SBX_REFUSE_ALIAS_LOCAL,
     "Blah", false, 0},
    {"another spelling as a file", "f:Blah", "blah", SBX_FS_LOOK_ALIAS, SBX_REFUSE_ALIAS_LOCAL,
     "Blah", false, 0},
    {"another spelling beside the right one", "d:blah f:BLAH", "blah", SBX_FS_MAKE,
     SBX_REFUSE_ALIAS_LOCAL, "BLAH", false, 0},
    {"another spelling below", "d:a d:a/Caf\xc3\xa9", "a/cafe\xcc\x81/x", SBX_FS_MAKE,
     SBX_REFUSE_ALIAS_LOCAL, "Caf\xc3\xa9", false, 0},
    {"other spellings do not matter to a plain look", "d:Blah", "blah", SBX_FS_LOOK, 0, "", false,
     1},
    {"names that are not UTF-8 are no spelling of ours", "d:bl\xff", "bl", SBX_FS_MAKE, 0, "", true,
     0},
};

static void check_to(void **state)
{
    struct world *w = *state;
    const struct to_case *c = w->row;
    struct sbx_fs_walk *walk = NULL;
    struct sbx_fs_place place;
    struct sbx_error err = {0};
    struct stat st;

    world_build(w, c->build);
    assert_int_equal(sbx_fs_walk_new(w->rootfd, &walk, &err), SBX_OK);
    assert_int_equal(
        sbx_fs_walk_to(walk, c->path, strlen(c->path), c->go, NULL, NULL, &place, &err), SBX_OK);
    assert_int_equal(place.reason, c->reason);
    assert_string_equal(place.with, c->with);
    assert_int_equal(place.missing, c->missing);
    assert_int_equal(place.dirfd >= 0, c->arrives);
    if (c->arrives) {
        assert_int_equal(fstat(place.dirfd, &st), 0);
        assert_int_equal(st.st_ino, place.ino);
        assert_int_equal(st.st_dev, place.dev);
        assert_int_equal(fstatat(w->rootfd, *c->path ? c->path : ".", &st, 0), 0);
        assert_int_equal(st.st_ino, place.ino);
    } else {
        assert_int_equal(place.ino, 0);
    }
    sbx_fs_walk_free(walk);
}

static const struct look_case {
    const char *why;
    const char *build;
    const char *name;
    enum sbx_reason reason;
    const char *with;
    bool exists;
} look_cases[] = {
    {"nothing there", "", "a", 0, "", false},
    {"a regular file", "f:a", "a", 0, "", true},
    {"a file with a second link", "f:a h:b=a", "a", 0, "", true},
    {"a link", "l:a=../outside/victim", "a", SBX_REFUSE_LINKED, "", false},
    {"a dangling link", "l:a=nowhere", "a", SBX_REFUSE_LINKED, "", false},
    {"a directory", "d:a", "a", SBX_REFUSE_TYPE_CONFLICT, "", false},
    {"a FIFO", "p:a", "a", SBX_REFUSE_SPECIAL, "", false},
    {"a socket", "s:a", "a", SBX_REFUSE_SPECIAL, "", false},
    {"another case", "f:DSC.JPG", "dsc.jpg", SBX_REFUSE_ALIAS_LOCAL, "DSC.JPG", false},
    {"another normal form", "f:cafe\xcc\x81", "caf\xc3\xa9", SBX_REFUSE_ALIAS_LOCAL, "cafe\xcc\x81",
     false},
    {"an invisible character", "f:a.md", "a\xef\xbb\xbf.md", SBX_REFUSE_ALIAS_LOCAL, "a.md", false},
    {"a third spelling beside the right one", "f:abc f:ABC f:Abc", "abc", SBX_REFUSE_ALIAS_LOCAL,
     NULL, false},
};

static void check_look(void **state)
{
    struct world *w = *state;
    const struct look_case *c = w->row;
    struct sbx_fs_walk *walk = NULL;
    struct sbx_fs_place place;
    struct sbx_fs_target target;
    struct sbx_error err = {0};

    world_build(w, c->build);
    assert_int_equal(sbx_fs_walk_new(w->rootfd, &walk, &err), SBX_OK);
    assert_int_equal(sbx_fs_walk_to(walk, "", 0, SBX_FS_LOOK_ALIAS, NULL, NULL, &place, &err),
                     SBX_OK);
    assert_int_equal(sbx_fs_walk_look(walk, c->name, &target, &err), SBX_OK);
    assert_int_equal(target.reason, c->reason);
    assert_int_equal(target.exists, c->exists);
    if (c->with)
        assert_string_equal(target.with, c->with);
    else
        assert_string_not_equal(target.with, c->name);
    if (c->exists)
        assert_true(S_ISREG(target.st.st_mode));
    sbx_fs_walk_free(walk);
}

/* A walk in the world of a test; freed by the test's last line. */
static struct sbx_fs_walk *begin(struct world *w)
{
    struct sbx_fs_walk *walk = NULL;

    assert_int_equal(sbx_fs_walk_new(w->rootfd, &walk, NULL), SBX_OK);
    return walk;
}

static struct sbx_fs_place go(struct sbx_fs_walk *walk, const char *path, enum sbx_fs_go how)
{
    struct sbx_fs_place place;
    struct sbx_error err = {0};

    assert_int_equal(sbx_fs_walk_to(walk, path, strlen(path), how, NULL, NULL, &place, &err),
                     SBX_OK);
    return place;
}

static enum sbx_reason look(struct sbx_fs_walk *walk, const char *name)
{
    struct sbx_fs_target target;
    struct sbx_error err = {0};

    assert_int_equal(sbx_fs_walk_look(walk, name, &target, &err), SBX_OK);
    return target.reason;
}

static void keeps_the_common_prefix(void **state)
{
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);
    struct sbx_fs_place first, second;

    world_build(w, "d:a d:a/b d:a/c");
    first = go(walk, "a/b", SBX_FS_LOOK);
    (void)first;
    assert_int_equal(world_open_fds(), w->fds + 2);
    /* Were "a" opened again, this could not be reached. */
    assert_int_equal(renameat(w->rootfd, "a", w->rootfd, "moved"), 0);
    second = go(walk, "a/c", SBX_FS_LOOK);
    assert_true(second.dirfd >= 0);
    assert_int_equal(world_open_fds(), w->fds + 2);
    sbx_fs_walk_again(walk);
    assert_int_equal(world_open_fds(), w->fds);
    assert_int_equal(go(walk, "a/c", SBX_FS_LOOK).missing, 2);
    sbx_fs_walk_free(walk);
}

static void again_keeps_a_reading_of_the_same_directory_only(void **state)
{
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);

    world_build(w, "d:a d:other f:other/X");
    (void)go(walk, "a", SBX_FS_LOOK_ALIAS);
    assert_int_equal(look(walk, "x"), SBX_REASON_NONE);
    /* Made behind our back: a kept reading cannot know of it, a new one must. */
    world_build(w, "f:a/X");
    sbx_fs_walk_again(walk);
    (void)go(walk, "a", SBX_FS_LOOK_ALIAS);
    assert_int_equal(look(walk, "x"), SBX_REASON_NONE);
    sbx_fs_walk_again(walk);
    assert_int_equal(renameat(w->rootfd, "a", w->rootfd, "was"), 0);
    assert_int_equal(renameat(w->rootfd, "other", w->rootfd, "a"), 0);
    (void)go(walk, "a", SBX_FS_LOOK_ALIAS);
    assert_int_equal(look(walk, "x"), SBX_REFUSE_ALIAS_LOCAL);
    sbx_fs_walk_free(walk);
}

static void an_old_reading_is_repeated(void **state)
{
    const struct timespec wait = {.tv_sec = SBX_INDEX_AGE_NS / SBX_NS_PER_S, .tv_nsec = 50000000};
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);

    world_build(w, "d:a");
    (void)go(walk, "a", SBX_FS_MAKE);
    assert_int_equal(look(walk, "x"), SBX_REASON_NONE);
    world_build(w, "f:a/X d:A");
    assert_int_equal(look(walk, "x"), SBX_REASON_NONE);
    assert_int_equal(nanosleep(&wait, NULL), 0);
    assert_int_equal(look(walk, "x"), SBX_REFUSE_ALIAS_LOCAL);
    /* The component that is held is checked again as well. */
    assert_int_equal(go(walk, "a", SBX_FS_MAKE).reason, SBX_REFUSE_ALIAS_LOCAL);
    sbx_fs_walk_free(walk);
}

static void what_we_made_is_known_at_once(void **state)
{
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);

    (void)go(walk, "", SBX_FS_MAKE);
    assert_int_equal(look(walk, "x"), SBX_REASON_NONE);
    world_file(w, "x", "new");
    assert_int_equal(sbx_fs_walk_made(walk, "x", NULL), SBX_OK);
    assert_int_equal(look(walk, "X"), SBX_REFUSE_ALIAS_LOCAL);
    assert_true(go(walk, "dir", SBX_FS_MAKE).dirfd >= 0);
    assert_int_equal(go(walk, "DIR", SBX_FS_MAKE).reason, SBX_REFUSE_ALIAS_LOCAL);
    assert_false(world_exists(w, "DIR"));
    sbx_fs_walk_free(walk);
}

struct made {
    char paths[64];
    struct world *w;
    enum sbx_status answer;
};

static enum sbx_status on_making(void *ctx, const char *path, size_t n, struct sbx_error *err)
{
    struct made *m = ctx;
    char copy[32];

    (void)err;
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)n, path);
    assert_false(world_exists(m->w, copy));
    strncat(m->paths, copy, sizeof(m->paths) - strlen(m->paths) - 1);
    strncat(m->paths, ";", sizeof(m->paths) - strlen(m->paths) - 1);
    return m->answer;
}

static void tells_before_it_makes(void **state)
{
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);
    struct made made = {.w = w};
    struct sbx_fs_place place;

    world_build(w, "d:a");
    assert_int_equal(sbx_fs_walk_to(walk, "a/b/c", 5, SBX_FS_MAKE, on_making, &made, &place, NULL),
                     SBX_OK);
    assert_string_equal(made.paths, "a/b;a/b/c;");
    made.answer = SBX_E_LIMIT;
    assert_int_equal(sbx_fs_walk_to(walk, "z", 1, SBX_FS_MAKE, on_making, &made, &place, NULL),
                     SBX_E_LIMIT);
    assert_false(world_exists(w, "z"));
    sbx_fs_walk_free(walk);
}

static void reaches_the_deepest_path(void **state)
{
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);
    struct sbx_fs_place place;
    char path[2 * SBX_MAX_DEPTH + 2];

    for (size_t i = 0; i <= SBX_MAX_DEPTH; i++)
        memcpy(path + 2 * i, "d/", 2);
    assert_int_equal(
        sbx_fs_walk_to(walk, path, 2 * SBX_MAX_DEPTH - 1, SBX_FS_MAKE, NULL, NULL, &place, NULL),
        SBX_OK);
    assert_true(place.dirfd >= 0);
    assert_int_equal(
        sbx_fs_walk_to(walk, path, 2 * SBX_MAX_DEPTH + 1, SBX_FS_MAKE, NULL, NULL, &place, NULL),
        SBX_E_USAGE);
    sbx_fs_walk_free(walk);
}

static void refuses_what_preflight_would(void **state)
{
    static const char *const paths[] = {"/a", "a//b"};
    struct world *w = *state;
    struct sbx_fs_walk *walk = begin(w);
    struct sbx_fs_target target;
    struct sbx_fs_place place;

    world_build(w, "d:a");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            sbx_fs_walk_to(walk, paths[i], strlen(paths[i]), SBX_FS_LOOK, NULL, NULL, &place, NULL),
            SBX_E_USAGE);
    assert_int_equal(sbx_fs_walk_look(walk, "x", &target, NULL), SBX_E_USAGE);
    assert_int_equal(sbx_fs_walk_made(walk, "x", NULL), SBX_E_USAGE);
    sbx_fs_walk_free(walk);
}

static int try_closed_directories(struct world *w)
{
    struct sbx_fs_walk *walk = NULL;
    struct sbx_fs_place place;
    struct sbx_error err = {0};

    if (sbx_fs_walk_new(w->rootfd, &walk, &err))
        return 1;
    if (sbx_fs_walk_to(walk, "search", 6, SBX_FS_LOOK_ALIAS, NULL, NULL, &place, &err) !=
            SBX_E_HOST ||
        strcmp(err.step, "openat") != 0 || err.os_errno != EACCES)
        return 2;
    if (sbx_fs_walk_to(walk, "fixed/new", 9, SBX_FS_MAKE, NULL, NULL, &place, &err) != SBX_E_HOST ||
        strcmp(err.step, "mkdirat") != 0 || err.os_errno != EACCES)
        return 3;
    /* The walk goes on elsewhere. */
    if (sbx_fs_walk_to(walk, "open", 4, SBX_FS_MAKE, NULL, NULL, &place, &err) || place.dirfd < 0)
        return 4;
    sbx_fs_walk_free(walk);
    return 0;
}

static void permissions_fail_their_place_only(void **state)
{
    struct world *w = *state;

    world_build(w, "d:search d:fixed d:open");
    assert_int_equal(fchmodat(w->rootfd, "search", 0311, 0), 0);
    assert_int_equal(fchmodat(w->rootfd, "fixed", 0555, 0), 0);
    assert_int_equal(world_as_user(try_closed_directories, w), 0);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("descriptors of the common prefix are kept", keeps_the_common_prefix),
        WORLD_TEST("again keeps a reading of the same directory, and of no other",
                   again_keeps_a_reading_of_the_same_directory_only),
        WORLD_TEST("a reading older than its age is repeated", an_old_reading_is_repeated),
        WORLD_TEST("what we made is known at once", what_we_made_is_known_at_once),
        WORLD_TEST("the caller is told before a directory is made", tells_before_it_makes),
        WORLD_TEST("the deepest accepted path is reached", reaches_the_deepest_path),
        WORLD_TEST("what preflight would refuse is a usage error", refuses_what_preflight_would),
        WORLD_TEST("permissions fail their place only", permissions_fail_their_place_only),
    };
    struct CMUnitTest tests[N_ELEMENTS(to_cases) + N_ELEMENTS(look_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(to_cases), check_to);

    n = world_rows(tests, n, ROWS(look_cases), check_look);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
