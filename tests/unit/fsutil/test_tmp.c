#include "fsutil/tmp.h"

#include "tests/support/world.h"

#define TOKEN "00112233445566778899aabb"

static void make(struct world *w, const char *text, const struct sbx_fs_finish *how,
                 char ret_name[SBX_TMP_NAME])
{
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    struct sbx_error err = {0};
    bool no_times = true, no_mode = true;

    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 7, &err), SBX_OK);
    assert_int_equal(sbx_fs_tmp_write(&t, text, strlen(text), &err), SBX_OK);
    assert_int_equal(sbx_fs_tmp_finish(&t, how, &no_times, &no_mode, &err), SBX_OK);
    assert_false(no_times);
    assert_false(no_mode);
    memcpy(ret_name, t.name, SBX_TMP_NAME);
}

static void is_made_exclusively_under_a_name_of_ours(void **state)
{
    struct world *w = *state;
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    struct sbx_error err = {0};

    world_build(w, "l:.sbx-sync." TOKEN ".1=../outside/victim f:.sbx-sync." TOKEN ".2");
    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 1, &err), SBX_E_HOST);
    assert_int_equal(err.os_errno, EEXIST);
    assert_string_equal(err.step, "openat");
    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 2, &err), SBX_E_HOST);
    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, UINT64_MAX, &err), SBX_OK);
    assert_string_equal(t.name, ".sbx-sync." TOKEN ".18446744073709551615");
    assert_true(world_exists(w, t.name));
    sbx_fs_tmp_abort(&t);
    sbx_fs_tmp_abort(&t);
    assert_false(world_exists(w, t.name));
    w->leftovers_wanted = true;
}

static void starts_over(void **state)
{
    struct world *w = *state;
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    const struct sbx_fs_finish how = {.sync = true};
    bool no;

    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 1, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_write(&t, "wrong and long", 14, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_restart(&t, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_write(&t, "right", 5, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_finish(&t, &how, &no, &no, NULL), SBX_OK);
    assert_string_equal(world_text(w, t.name), "right");
    sbx_fs_tmp_abort(&t);
    assert_true(world_exists(w, t.name));
    assert_int_equal(sbx_fs_remove(w->rootfd, t.name, NULL), SBX_OK);
    assert_int_equal(sbx_fs_remove(w->rootfd, t.name, NULL), SBX_OK);
}

static const struct mode_case {
    const char *why;
    mode_t umask;
    bool has_mode;
    mode_t mode, want;
} mode_cases[] = {
    {"a new file is 0666 & umask", 0027, false, 0, 0640},
    {"a new file under an open umask", 0, false, 0, 0666},
    {"bits of the replaced file carry over", 0027, true, 0604, 0604},
    {"narrow bits carry over", 0, true, 0400, 0400},
    {"set-id and sticky never do", 022, true, 07755, 0755},
};

static void check_mode(void **state)
{
    struct world *w = *state;
    const struct mode_case *c = w->row;
    const struct sbx_fs_finish how = {.has_mode = c->has_mode, .mode = c->mode};
    mode_t before = umask(c->umask);
    char name[SBX_TMP_NAME];

    make(w, "x", &how, name);
    umask(before);
    assert_int_equal(world_mode(w, name), c->want);
    assert_int_equal(sbx_fs_remove(w->rootfd, name, NULL), SBX_OK);
}

/* What a file system cannot hold is clamped by the kernel, so only those between have one answer.
 */
static const struct time_case {
    const char *why;
    struct sbx_time mtime;
    bool exact;
} time_cases[] = {
    {"a time of today", {1764500000, 123456789}, true},
    {"the epoch", {0, 0}, true},
    {"before the epoch, counting forward", {-5, 500000000}, true},
    {"the year 2446", {15032385535, 0}, false},
    {"the year 99999", {3093527980799, 999999999}, false},
    {"the last second there is", {INT64_MAX, 999999999}, false},
    {"the first second there is", {INT64_MIN, 0}, false},
};

static void check_time(void **state)
{
    struct world *w = *state;
    const struct time_case *c = w->row;
    const struct sbx_fs_finish how = {.has_mtime = true, .mtime = c->mtime};
    char name[SBX_TMP_NAME];
    struct stat st;

    make(w, "x", &how, name);
    assert_int_equal(fstatat(w->rootfd, name, &st, 0), 0);
    if (c->exact) {
        assert_int_equal(st.st_mtim.tv_sec, c->mtime.sec);
        assert_int_equal(st.st_mtim.tv_nsec, c->mtime.nsec);
    } else {
        assert_true(c->mtime.sec < 0 ? st.st_mtim.tv_sec < 0 : st.st_mtim.tv_sec > 2000000000);
    }
    assert_int_equal(sbx_fs_remove(w->rootfd, name, NULL), SBX_OK);
}

static const struct publish_case {
    const char *why;
    const char *build;
    bool replace;
    enum sbx_status status;
    enum sbx_fs_published how;
    bool published;
} publish_cases[] = {
    {"a new name", "", false, SBX_OK, SBX_FS_PUBLISHED, true},
    {"a new name that a file took meanwhile", "f:a", false, SBX_OK, SBX_FS_APPEARED, false},
    {"a new name that a directory took meanwhile", "d:a", false, SBX_OK, SBX_FS_APPEARED, false},
    {"a new name that a dangling link took meanwhile", "l:a=../outside/new", false, SBX_OK,
     SBX_FS_APPEARED, false},
    {"an old file is replaced", "f:a", true, SBX_OK, SBX_FS_PUBLISHED, true},
    {"an old file that is gone by now", "", true, SBX_OK, SBX_FS_PUBLISHED, true},
    {"of a link only the link is replaced", "l:a=../outside/victim", true, SBX_OK, SBX_FS_PUBLISHED,
     true},
    {"a directory is not replaced", "d:a", true, SBX_E_HOST, 0, false},
    {"a directory that is not empty is not replaced", "d:a f:a/x", true, SBX_E_HOST, 0, false},
};

static void check_publish(void **state)
{
    struct world *w = *state;
    const struct publish_case *c = w->row;
    const struct sbx_fs_finish how = {0};
    enum sbx_fs_published got = SBX_FS_PUBLISHED_PLAIN;
    struct sbx_error err = {0};
    char name[SBX_TMP_NAME];
    struct stat st, now;

    world_build(w, c->build);
    make(w, "new", &how, name);
    assert_int_equal(sbx_fs_publish(w->rootfd, name, "a", c->replace, &got, &st, &err), c->status);
    if (c->status) {
        assert_string_equal(err.step, "renameat");
        assert_int_not_equal(err.os_errno, 0);
        assert_int_equal(got, SBX_FS_PUBLISHED_PLAIN); /* untouched */
    } else {
        assert_int_equal(got, c->how);
    }
    assert_int_equal(world_exists(w, name), !c->published);
    if (c->published) {
        assert_string_equal(world_text(w, "a"), "new");
        assert_int_equal(fstatat(w->rootfd, "a", &now, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(now.st_ino, st.st_ino);
        assert_int_equal(now.st_ctim.tv_nsec, st.st_ctim.tv_nsec);
    }
    assert_int_equal(sbx_fs_remove(w->rootfd, name, NULL), SBX_OK);
}

static void other_links_keep_the_old_bytes(void **state)
{
    struct world *w = *state;
    const struct sbx_fs_finish how = {0};
    enum sbx_fs_published got;
    char name[SBX_TMP_NAME];
    struct stat st;

    world_build(w, "f:a=old d:backup h:backup/a=a");
    make(w, "new", &how, name);
    assert_int_equal(sbx_fs_publish(w->rootfd, name, "a", true, &got, &st, NULL), SBX_OK);
    assert_string_equal(world_text(w, "a"), "new");
    assert_string_equal(world_text(w, "backup/a"), "old");
}

static void the_longest_name_is_published(void **state)
{
    struct world *w = *state;
    const struct sbx_fs_finish how = {0};
    enum sbx_fs_published got;
    struct sbx_error err = {0};
    char name[SBX_TMP_NAME], target[257] = {0};
    struct stat st;

    make(w, "new", &how, name);
    memset(target, 'a', 256);
    for (int replace = 0; replace < 2; replace++) {
        assert_int_equal(sbx_fs_publish(w->rootfd, name, target, replace, &got, &st, &err), SBX_OK);
        assert_int_equal(got, SBX_FS_NAME_REFUSED);
        assert_int_equal(st.st_ino, 0);
        assert_string_equal(err.msg, "");
    }
    target[255] = '\0';
    assert_int_equal(sbx_fs_publish(w->rootfd, name, target, false, &got, &st, &err), SBX_OK);
    assert_int_equal(got, SBX_FS_PUBLISHED);
    assert_string_equal(world_text(w, target), "new");
}

static void removes_empty_directories_only(void **state)
{
    struct world *w = *state;

    world_build(w, "d:empty d:full f:full/x f:file l:link=empty");
    sbx_fs_remove_dir(w->rootfd, "empty");
    sbx_fs_remove_dir(w->rootfd, "full");
    sbx_fs_remove_dir(w->rootfd, "file");
    sbx_fs_remove_dir(w->rootfd, "link");
    sbx_fs_remove_dir(w->rootfd, "missing");
    assert_false(world_exists(w, "empty"));
    assert_true(world_exists(w, "full/x") && world_exists(w, "file") && world_exists(w, "link"));
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("a temporary is made exclusively under a name of ours",
                   is_made_exclusively_under_a_name_of_ours),
        WORLD_TEST("a temporary starts over", starts_over),
        WORLD_TEST("other links of a replaced file keep the old bytes",
                   other_links_keep_the_old_bytes),
        WORLD_TEST("a name of 255 bytes is published, one of 256 is told apart",
                   the_longest_name_is_published),
        WORLD_TEST("only empty directories are removed", removes_empty_directories_only),
    };
    struct CMUnitTest tests[N_ELEMENTS(mode_cases) + N_ELEMENTS(time_cases) +
                            N_ELEMENTS(publish_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(mode_cases), check_mode);

    n = world_rows(tests, n, ROWS(time_cases), check_time);
    n = world_rows(tests, n, ROWS(publish_cases), check_publish);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("temporaries", tests, NULL, NULL);
}
