/* File systems that will not do a thing: CIFS, exFAT, FUSE, NFS, kernels without a call. */
#include "fsutil/durable.h"
#include "fsutil/file.h"
#include "fsutil/lock.h"
#include "fsutil/tmp.h"
#include "fsutil/walk.h"
#include "state/run.h"
#include "tests/fault/fault.h"
#include "tests/support/world.h"

#define TOKEN "00112233445566778899aabb"

static const struct finish_case {
    const char *why;
    const char *calls;
    int os_errno;
    bool no_times, no_mode;
    enum sbx_status status;
} finish_cases[] = {
    {"all is well", "", 0, false, false, SBX_OK},
    {"mode and times are not permitted", "fchmod futimens", EPERM, true, true, SBX_OK},
    {"mode and times are not supported", "fchmod futimens", EOPNOTSUPP, true, true, SBX_OK},
    {"times are not to be had", "futimens", ENOSYS, true, false, SBX_OK},
    {"the time is out of range", "futimens", EINVAL, true, false, SBX_OK},
    {"the time overflows", "futimens", EOVERFLOW, true, false, SBX_OK},
    {"the disk fails at fchmod", "fchmod", EIO, false, false, SBX_E_HOST},
    {"the disk fails at futimens", "futimens", EIO, false, false, SBX_E_HOST},
    {"the quota is used up at close", "close", EDQUOT, false, false, SBX_E_HOST},
    {"the sync says that it cannot", "fsync", EINVAL, false, false, SBX_E_HOST},
};

static void check_finish(void **state)
{
    struct world *w = *state;
    const struct finish_case *c = w->row;
    const struct sbx_fs_finish how = {
        .has_mtime = true, .mtime = {5, 5}, .has_mode = true, .mode = 0600, .sync = true};
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    bool no_times = false, no_mode = false;
    struct sbx_error err = {0};
    enum sbx_status st;

    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 1, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_write(&t, "new", 3, NULL), SBX_OK);
    fault_refuse(c->calls, c->os_errno);
    st = sbx_fs_tmp_finish(&t, &how, &no_times, &no_mode, &err);
    fault_disarm();
    assert_int_equal(st, c->status);
    assert_int_equal(no_times, c->no_times);
    assert_int_equal(no_mode, c->no_mode);
    if (st) {
        assert_int_equal(err.os_errno, c->os_errno);
        assert_string_equal(err.step, c->calls);
        return; /* teardown sees that the temporary is gone */
    }
    assert_string_equal(world_text(w, t.name), "new");
    assert_int_equal(sbx_fs_remove(w->rootfd, t.name, NULL), SBX_OK);
}

static void a_mode_that_is_right_is_left_alone(void **state)
{
    struct world *w = *state;
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    struct sbx_fs_finish how = {.has_mode = true};
    bool no_times = true, no_mode = true;

    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 1, NULL), SBX_OK);
    how.mode = world_mode(w, t.name);
    fault_refuse("fchmod futimens fsync", EIO);
    assert_int_equal(sbx_fs_tmp_finish(&t, &how, &no_times, &no_mode, NULL), SBX_OK);
    fault_disarm();
    assert_null(fault_fired());
    assert_int_equal(sbx_fs_remove(w->rootfd, t.name, NULL), SBX_OK);
}

static void a_write_goes_on_where_it_was_cut(void **state)
{
    struct world *w = *state;
    const struct sbx_fs_finish how = {0};
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    bool no_times, no_mode;

    assert_int_equal(sbx_fs_tmp_open(&t, w->rootfd, TOKEN, 1, NULL), SBX_OK);
    fault_short_writes(3);
    assert_int_equal(sbx_fs_tmp_write(&t, "a write in pieces", 17, NULL), SBX_OK);
    fault_disarm();
    assert_int_equal(sbx_fs_tmp_finish(&t, &how, &no_times, &no_mode, NULL), SBX_OK);
    assert_string_equal(world_text(w, t.name), "a write in pieces");
    assert_int_equal(sbx_fs_remove(w->rootfd, t.name, NULL), SBX_OK);
}

static const struct publish_case {
    const char *why;
    const char *build;
    const char *calls;
    int os_errno;
    enum sbx_status status;
    enum sbx_fs_published how;
    bool tmp_left;
} publish_cases[] = {
    {"no RENAME_NOREPLACE: by a link", "", "renameat2", EINVAL, SBX_OK, SBX_FS_PUBLISHED, false},
    {"no renameat2: by a link", "", "renameat2", ENOSYS, SBX_OK, SBX_FS_PUBLISHED, false},
    {"a link overwrites nothing", "f:out=theirs", "renameat2", EOPNOTSUPP, SBX_OK, SBX_FS_APPEARED,
     true},
    {"no links either: plain", "", "renameat2 linkat", EOPNOTSUPP, SBX_OK, SBX_FS_PUBLISHED_PLAIN,
     false},
    {"links are not permitted: plain", "", "renameat2 linkat", EINVAL, SBX_OK,
     SBX_FS_PUBLISHED_PLAIN, false},
    {"plain overwrites nothing that is there", "f:out=theirs", "renameat2 linkat", ENOSYS, SBX_OK,
     SBX_FS_APPEARED, true},
    {"plain overwrites no dangling link", "l:out=nowhere", "renameat2 linkat", ENOSYS, SBX_OK,
     SBX_FS_APPEARED, true},
    {"nothing renames", "", "renameat2 linkat renameat", EPERM, SBX_E_HOST, 0, true},
    {"the name cannot be spelt here", "", "renameat2", EILSEQ, SBX_OK, SBX_FS_NAME_REFUSED, true},
    {"the name is too long", "", "renameat2", ENAMETOOLONG, SBX_OK, SBX_FS_NAME_REFUSED, true},
    {"no way accepts the name", "", "renameat2 linkat renameat", EINVAL, SBX_OK,
     SBX_FS_NAME_REFUSED, true},
    {"the disk is full", "", "renameat2", ENOSPC, SBX_E_HOST, 0, true},
    {"facts cannot be had", "", "fstatat", EIO, SBX_OK, SBX_FS_PUBLISHED, false},
};

static void check_publish(void **state)
{
    struct world *w = *state;
    const struct publish_case *c = w->row;
    enum sbx_fs_published how = SBX_FS_PUBLISHED;
    struct sbx_error err = {0};
    struct stat st;
    enum sbx_status status;

    world_build(w, c->build);
    world_file(w, "tmp", "new");
    fault_refuse(c->calls, c->os_errno);
    status = sbx_fs_publish(w->rootfd, "tmp", "out", false, &how, &st, &err);
    fault_disarm();
    assert_int_equal(status, c->status);
    assert_int_equal(world_exists(w, "tmp"), c->tmp_left);
    if (status) {
        assert_int_equal(err.os_errno, c->os_errno);
        assert_false(world_exists(w, "out"));
        return;
    }
    assert_int_equal(how, c->how);
    assert_string_equal(err.msg, "");
    if (how == SBX_FS_APPEARED || how == SBX_FS_NAME_REFUSED) {
        const char *text = world_text(w, "out");

        assert_true(!text || strcmp(text, "theirs") == 0);
        return;
    }
    assert_string_equal(world_text(w, "out"), "new");
    assert_int_equal(st.st_size, strstr(c->calls, "fstatat") ? 0 : 3);
}

/* The second name cannot be taken away, so the first is given back. */
static void a_link_is_undone_when_the_temporary_stays(void **state)
{
    struct world *w = *state;
    enum sbx_fs_published how = SBX_FS_PUBLISHED_PLAIN;
    struct sbx_error err = {0};
    struct stat st;
    enum sbx_status status;

    world_file(w, "tmp", "new");
    /* renameat2 and linkat, then the unlinkat that fails */
    fault_refuse("renameat2", EINVAL);
    assert_int_equal(sbx_fs_publish(w->rootfd, "tmp", "out", false, &how, &st, NULL), SBX_OK);
    assert_int_equal(unlinkat(w->rootfd, "out", 0), 0);
    world_file(w, "tmp", "new");
    fault_refuse("renameat2 unlinkat", EINVAL);
    status = sbx_fs_publish(w->rootfd, "tmp", "out", false, &how, &st, &err);
    fault_disarm();
    assert_int_equal(status, SBX_E_HOST);
    assert_string_equal(err.step, "unlinkat");
    assert_true(world_exists(w, "tmp"));
}

static const struct name_case {
    const char *why;
    const char *calls;
    int os_errno;
    enum sbx_fs_go go;
    const char *path;
} name_cases[] = {
    {"a name that is too long to open", "openat", ENAMETOOLONG, SBX_FS_LOOK, "a/b"},
    {"a name that the file system cannot spell", "openat", EILSEQ, SBX_FS_LOOK, "a/b"},
    {"a name that cannot be made", "mkdirat", EINVAL, SBX_FS_MAKE, "a/b"},
};

static void check_name(void **state)
{
    struct world *w = *state;
    const struct name_case *c = w->row;
    struct sbx_fs_walk *walk = NULL;
    struct sbx_fs_place place;
    enum sbx_status st;

    assert_int_equal(sbx_fs_walk_new(w->rootfd, &walk, NULL), SBX_OK);
    /* The reading for aliases opens too, and is done by then. */
    assert_int_equal(sbx_fs_walk_to(walk, "x", 1, SBX_FS_LOOK_ALIAS, NULL, NULL, &place, NULL),
                     SBX_OK);
    fault_refuse(c->calls, c->os_errno);
    st = sbx_fs_walk_to(walk, c->path, strlen(c->path), c->go, NULL, NULL, &place, NULL);
    fault_disarm();
    sbx_fs_walk_free(walk);
    assert_int_equal(st, SBX_OK);
    assert_int_equal(place.reason, SBX_REFUSE_HOST_NAME);
    assert_string_equal(place.with, "a");
    assert_int_equal(place.dirfd, -1);
}

static void a_target_name_may_be_refused_too(void **state)
{
    struct world *w = *state;
    struct sbx_fs_walk *walk = NULL;
    struct sbx_fs_place place;
    struct sbx_fs_target target;
    enum sbx_status st;

    assert_int_equal(sbx_fs_walk_new(w->rootfd, &walk, NULL), SBX_OK);
    assert_int_equal(sbx_fs_walk_to(walk, "", 0, SBX_FS_LOOK, NULL, NULL, &place, NULL), SBX_OK);
    fault_refuse("fstatat", EILSEQ);
    st = sbx_fs_walk_look(walk, "x", &target, NULL);
    fault_disarm();
    sbx_fs_walk_free(walk);
    assert_int_equal(st, SBX_OK);
    assert_int_equal(target.reason, SBX_REFUSE_HOST_NAME);
    assert_false(target.exists);
}

static void a_directory_sync_may_be_missing(void **state)
{
    static const int errnos[] = {EINVAL, EOPNOTSUPP, ENOSYS, EIO};
    struct world *w = *state;

    for (size_t i = 0; i < N_ELEMENTS(errnos); i++) {
        bool cannot = false;
        enum sbx_status st;

        fault_refuse("fsync", errnos[i]);
        st = sbx_fs_sync_dir(w->rootfd, &cannot, NULL);
        fault_disarm();
        assert_int_equal(st, errnos[i] == EIO ? SBX_E_HOST : SBX_OK);
        assert_int_equal(cannot, errnos[i] != EIO);
    }
}

static void locks_may_be_missing(void **state)
{
    static const int errnos[] = {ENOLCK, EINVAL, EOPNOTSUPP, ENOSYS, EIO};
    struct world *w = *state;
    int fd = -1;

    assert_int_equal(sbx_fs_own_file(w->rootfd, "lock", 0600, &fd, NULL), SBX_OK);
    for (size_t i = 0; i < N_ELEMENTS(errnos); i++) {
        bool cannot = false;
        enum sbx_status st;

        fault_refuse("fcntl", errnos[i]);
        st = sbx_fs_lock(fd, 0, -1, &cannot, NULL);
        fault_disarm();
        assert_int_equal(st, errnos[i] == EIO ? SBX_E_HOST : SBX_OK);
        assert_int_equal(cannot, errnos[i] != EIO);
    }
    close(fd);
}

static void a_torn_note_is_taken_off_the_record(void **state)
{
    struct world *w = *state;
    struct sbx_run run = SBX_RUN_INIT;
    struct sbx_error err = {0};
    char want[128];

    assert_int_equal(sbx_run_begin(&run, w->rootfd, NULL), SBX_OK);
    fault_full_after(5, ENOSPC);
    assert_int_equal(sbx_run_note(&run, "a", 1, &err), SBX_E_HOST);
    fault_disarm();
    assert_int_equal(err.os_errno, ENOSPC);
    assert_int_equal(sbx_run_note(&run, "b", 1, NULL), SBX_OK);
    (void)snprintf(want, sizeof(want),
                   "{\"schema\":\"sbx-sync/run/1\",\"token\":\"%s\"}\n{\"dir\":\"b\"}\n",
                   run.token);
    assert_string_equal(world_text(w, "run"), want);
    sbx_run_done(&run);
}

static void a_torn_note_that_stays_is_the_last(void **state)
{
    struct world *w = *state;
    struct sbx_run run = SBX_RUN_INIT;
    size_t failed;

    assert_int_equal(sbx_run_begin(&run, w->rootfd, NULL), SBX_OK);
    fault_full_after(5, ENOSPC);
    fault_refuse_too("ftruncate");
    assert_int_equal(sbx_run_note(&run, "a", 1, NULL), SBX_E_HOST);
    fault_disarm();
    assert_int_equal(sbx_run_note(&run, "b", 1, NULL), SBX_E_HOST);
    assert_int_equal(sbx_run_clear(&run, NULL), SBX_E_HOST);
    sbx_run_done(&run);
    assert_int_equal(sbx_run_sweep(w->rootfd, w->rootfd, &failed, NULL), SBX_OK);
    assert_int_equal(failed, 0);
}

static const struct CMUnitTest others[] = {
    WORLD_TEST("a torn note is taken off the record", a_torn_note_is_taken_off_the_record),
    WORLD_TEST("a torn note that stays is the last", a_torn_note_that_stays_is_the_last),
    WORLD_TEST("a mode that is right is left alone", a_mode_that_is_right_is_left_alone),
    WORLD_TEST("a write goes on where it was cut", a_write_goes_on_where_it_was_cut),
    WORLD_TEST("a link is undone when the temporary stays",
               a_link_is_undone_when_the_temporary_stays),
    WORLD_TEST("the name of a target may be refused too", a_target_name_may_be_refused_too),
    WORLD_TEST("a directory sync may be missing", a_directory_sync_may_be_missing),
    WORLD_TEST("locks may be missing", locks_may_be_missing),
};

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(finish_cases) + N_ELEMENTS(publish_cases) +
                            N_ELEMENTS(name_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(finish_cases), check_finish);

    n = world_rows(tests, n, ROWS(publish_cases), check_publish);
    n = world_rows(tests, n, ROWS(name_cases), check_name);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("what a file system will not do", tests, NULL, NULL);
}
