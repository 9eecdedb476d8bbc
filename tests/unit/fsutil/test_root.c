#include "fsutil/root.h"

#include "tests/support/world.h"

/* Destinations as people spell them; %s is the absolute path of the world's root. */
static const struct open_case {
    const char *why;
    const char *build;
    const char *dest;
    bool make;
    enum sbx_status status;
    bool opened;
    const char *is; /* the directory it must be, below the root */
} open_cases[] = {
    {"the working directory", "", ".", true, SBX_OK, true, "."},
    {"the working directory with a slash", "", "./", true, SBX_OK, true, "."},
    {"relative", "d:out", "out", false, SBX_OK, true, "out"},
    {"with a trailing slash", "d:out", "out/", false, SBX_OK, true, "out"},
    {"absolute with odd slashes", "d:out", "%s//out/.", false, SBX_OK, true, "out"},
    {"a link to a directory", "d:out l:link=out", "link", true, SBX_OK, true, "out"},
    {"a link on the way", "d:out d:out/in l:link=out", "link/in", true, SBX_OK, true, "out/in"},
    {"missing and not to be made", "", "out", false, SBX_OK, false, NULL},
    {"missing and made", "", "out", true, SBX_OK, true, "out"},
    {"missing with a trailing slash and made", "", "out/", true, SBX_OK, true, "out"},
    {"missing with odd slashes and made", "", "%s//out/././/", true, SBX_OK, true, "out"},
    {"missing below a link and made", "d:dir l:link=dir", "link/out", true, SBX_OK, true,
     "dir/out"},
    {"only the last component is made", "", "a/b", true, SBX_E_HOST, false, NULL},
    {"below a file", "f:out", "out/in", true, SBX_E_HOST, false, NULL},
    {"a file", "f:out", "out", true, SBX_E_HOST, false, NULL},
    {"a dangling link is not made into a directory", "l:out=nowhere", "out", true, SBX_E_HOST,
     false, NULL},
    {"a dangling link is not taken for what is missing", "l:out=nowhere", "out", false, SBX_E_HOST,
     false, NULL},
    {"an empty string", "", "", true, SBX_E_USAGE, false, NULL},
};

static void check_open(void **state)
{
    struct world *w = *state;
    const struct open_case *c = w->row;
    char root[64], dest[128];
    struct sbx_error err = {0};
    struct stat got, want;
    int fd = -7, cwd = openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
    enum sbx_status st;

    world_build(w, c->build);
    (void)snprintf(root, sizeof(root), "%s/root", w->base);
    if (strncmp(c->dest, "%s", 2) == 0)
        (void)snprintf(dest, sizeof(dest), "%s%s", root, c->dest + 2);
    else
        (void)snprintf(dest, sizeof(dest), "%s", c->dest);
    assert_int_equal(fchdir(w->rootfd), 0);
    st = sbx_fs_root_open(dest, c->make, &fd, &err);
    assert_int_equal(fchdir(cwd), 0);
    close(cwd);
    assert_int_equal(st, c->status);
    if (st) {
        assert_int_equal(fd, -7);
        assert_true(st == SBX_E_USAGE || err.step[0]);
        return;
    }
    assert_int_equal(fd >= 0, c->opened);
    if (!c->opened)
        return;
    assert_int_equal(fstat(fd, &got), 0);
    close(fd);
    assert_int_equal(fstatat(w->rootfd, c->is, &want, 0), 0);
    assert_int_equal(got.st_ino, want.st_ino);
}

static const struct within_case {
    const char *why;
    const char *inner, *outer;
    bool want;
} within_cases[] = {
    {"the same directory", "a", "a", true},
    {"a child", "a/b", "a", true},
    {"a grandchild", "a/b/c", "a", true},
    {"a parent is not within", "a", "a/b", false},
    {"a sibling whose name begins alike", "ab", "a", false},
    {"everything is within the root of all", "a", "/", true},
    {"the root of all is within nothing else", "/", "a", false},
    {"through a link it is the directory that counts", "link", "a", true},
};

static void check_within(void **state)
{
    struct world *w = *state;
    const struct within_case *c = w->row;
    int inner, outer;
    bool within = !c->want;
    enum sbx_status st;

    world_build(w, "d:a d:a/b d:a/b/c d:ab l:link=a/b");
    inner = openat(w->rootfd, c->inner, O_RDONLY | O_DIRECTORY);
    outer = openat(w->rootfd, c->outer, O_RDONLY | O_DIRECTORY);
    st = sbx_fs_within(inner, outer, &within, NULL);
    close(inner);
    close(outer);
    assert_int_equal(st, SBX_OK);
    assert_int_equal(within, c->want);
}

static int try_search_only(struct world *w)
{
    char dest[64];
    int fd = -1;

    (void)snprintf(dest, sizeof(dest), "%s/root/search/out", w->base);
    if (sbx_fs_root_open(dest, true, &fd, NULL) || fd < 0)
        return 1;
    return 0;
}

static void search_permission_is_enough_above(void **state)
{
    struct world *w = *state;

    world_build(w, "d:search d:search/out");
    assert_int_equal(fchmodat(w->rootfd, "search", 0111, 0), 0);
    assert_int_equal(fchmodat(w->rootfd, "search/out", 0755, 0), 0);
    assert_int_equal(world_as_user(try_search_only, w), 0);
    assert_int_equal(fchmodat(w->rootfd, "search", 0755, 0), 0);
}

static int try_within_closed(struct world *w)
{
    struct sbx_error err = {0};
    bool within = true;
    int deep = openat(w->rootfd, "closed/deep", O_RDONLY | O_DIRECTORY);
    int other = openat(w->rootfd, "other", O_RDONLY | O_DIRECTORY);

    if (deep < 0 || other < 0 || fchmodat(w->rootfd, "closed", 0, 0) < 0)
        return 1;
    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return 2;
    if (sbx_fs_within(deep, other, &within, &err))
        return 3;
    return within ? 4 : 0;
}

static void what_may_not_be_searched_ends_the_climb(void **state)
{
    struct world *w = *state;
    int status;
    pid_t pid;

    world_build(w, "d:closed d:closed/deep d:other");
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(try_within_closed(w));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(fchmodat(w->rootfd, "closed", 0755, 0), 0);
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("search permission is enough on what leads there",
                   search_permission_is_enough_above),
        WORLD_TEST("what may not be searched ends the climb",
                   what_may_not_be_searched_ends_the_climb),
    };
    struct CMUnitTest tests[N_ELEMENTS(open_cases) + N_ELEMENTS(within_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(open_cases), check_open);

    n = world_rows(tests, n, ROWS(within_cases), check_within);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("destination", tests, NULL, NULL);
}
