/* Every call fails once: the 1st, 2nd, 3rd, ... of each scenario until a run meets none. */
#include "fsutil/durable.h"
#include "fsutil/file.h"
#include "fsutil/root.h"
#include "fsutil/tmp.h"
#include "fsutil/walk.h"
#include "state/manifest.h"
#include "state/run.h"
#include "state/state.h"
#include "tests/fault/fault.h"
#include "tests/support/world.h"

#define TOKEN "00112233445566778899aabb"
#define STATE ".sbx-sync"
#define MANIFEST STATE "/manifest.jsonl"

/* The calls whose failure a scenario may live with: nothing depends on them. */
#define TOLERATED "close"

struct scenario {
    const char *why;
    /* Brings the destination into the state that the run begins with. */
    void (*reset)(struct world *w);
    enum sbx_status (*run)(struct world *w, struct sbx_error *err);
    /* What must hold after any run, failed or not. */
    void (*check)(struct world *w, enum sbx_status st);
    const char *tolerated; /* further calls that may fail without a failure of the run */
};

static void remove_tree(struct world *w)
{
    static const char *const paths[] = {"a/b/out", "out",          STATE "/lock", STATE "/run",
                                        MANIFEST,  "a/b/leftover", "a/user",      "digested"};

    for (size_t i = 0; i < N_ELEMENTS(paths); i++)
        (void)unlinkat(w->rootfd, paths[i], 0);
    (void)unlinkat(w->rootfd, "a/b", AT_REMOVEDIR);
    (void)unlinkat(w->rootfd, "a", AT_REMOVEDIR);
    (void)unlinkat(w->rootfd, STATE, AT_REMOVEDIR);
    assert_int_equal(world_count(w->rootfd, ".", ""), 0);
}

/* A new file in new directories, as the conductor does it. */
static enum sbx_status publish_in(struct world *w, bool replace, mode_t mode, struct sbx_error *err)
{
    const struct sbx_fs_finish how = {
        .has_mtime = true, .mtime = {5, 5}, .has_mode = true, .mode = mode, .sync = true};
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    struct sbx_fs_walk *walk = NULL;
    struct sbx_fs_place place;
    struct sbx_fs_target target;
    enum sbx_fs_published got = SBX_FS_APPEARED;
    bool no_times, no_mode, cannot;
    struct stat facts;
    enum sbx_status st = sbx_fs_walk_new(w->rootfd, &walk, err);

    if (!st)
        st = sbx_fs_walk_to(walk, "a/b", 3, SBX_FS_MAKE, NULL, NULL, &place, err);
    if (!st)
        st = sbx_fs_tmp_open(&t, place.dirfd, TOKEN, 1, err);
    if (!st)
        st = sbx_fs_tmp_write(&t, "wrong", 5, err);
    if (!st)
        st = sbx_fs_tmp_restart(&t, err);
    if (!st)
        st = sbx_fs_tmp_write(&t, "new", 3, err);
    if (!st)
        st = sbx_fs_tmp_finish(&t, &how, &no_times, &no_mode, err);
    else
        sbx_fs_tmp_abort(&t);
    if (!st) {
        st = sbx_fs_walk_look(walk, "out", &target, err);
        if (!st)
            st = sbx_fs_publish(place.dirfd, t.name, "out", replace, &got, &facts, err);
        if (st)
            (void)!sbx_fs_remove(place.dirfd, t.name, NULL);
        if (!st && facts.st_ino != 0)
            assert_int_equal(facts.st_size, 3);
    }
    if (!st)
        assert_int_equal(got, SBX_FS_PUBLISHED);
    if (!st)
        st = sbx_fs_walk_made(walk, "out", err);
    if (!st)
        st = sbx_fs_sync_dir(place.dirfd, &cannot, err);
    sbx_fs_walk_free(walk);
    return st;
}

static enum sbx_status run_new(struct world *w, struct sbx_error *err)
{
    return publish_in(w, false, 0640, err);
}

static enum sbx_status run_replace(struct world *w, struct sbx_error *err)
{
    return publish_in(w, true, 0640, err);
}

static void reset_old(struct world *w)
{
    remove_tree(w);
    world_build(w, "d:a d:a/b f:a/b/out=old");
}

static void check_new(struct world *w, enum sbx_status st)
{
    const char *text = world_text(w, "a/b/out");

    assert_true(text ? strcmp(text, "new") == 0 : st != SBX_OK);
}

static void check_old_or_new(struct world *w, enum sbx_status st)
{
    const char *text = world_text(w, "a/b/out");

    assert_non_null(text);
    assert_true(strcmp(text, "new") == 0 || (st && strcmp(text, "old") == 0));
}

static enum sbx_status run_state(struct world *w, struct sbx_error *err)
{
    struct sbx_state state = SBX_STATE_INIT;
    enum sbx_status st = sbx_state_open(&state, w->rootfd, 0, -1, err);

    assert_int_equal(state.dirfd >= 0, st == SBX_OK);
    sbx_state_close(&state);
    return st;
}

static void check_nothing(struct world *w, enum sbx_status st)
{
    (void)w;
    (void)st;
}

static enum sbx_status write_manifest(int statedir, struct sbx_error *err)
{
    const struct sbx_manifest_header header = {.identity = "box \xff"};
    struct sbx_line line = {.path = "a", .path_len = 1, .has_host = true};
    struct sbx_manifest_writer *writer = NULL;
    enum sbx_status st = sbx_manifest_writer_new(statedir, TOKEN, 1, &header, &writer, err);

    if (!st)
        st = sbx_manifest_writer_line(writer, &line, err);
    if (!st)
        st = sbx_manifest_writer_text(writer, "{}\n", 3, err);
    if (!st)
        return sbx_manifest_writer_commit(&writer, SBX_DURABILITY_FULL, err);
    sbx_manifest_writer_abort(&writer);
    return st;
}

/* Opens the state directory without the library, so that no fault is spent on it. */
static int statedir_of(struct world *w)
{
    static int fd = -1;

    if (fd >= 0)
        close(fd);
    fd = w ? openat(w->rootfd, STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return fd;
}

static enum sbx_status run_manifest(struct world *w, struct sbx_error *err)
{
    int statedir = -1;
    enum sbx_status st = sbx_fs_own_dir(w->rootfd, STATE, true, &statedir, err);

    if (st)
        return st;
    st = write_manifest(statedir, err);
    close(statedir);
    return st;
}

static void reset_manifest(struct world *w)
{
    remove_tree(w);
    world_mkdir(w, STATE);
    world_file(w, MANIFEST, "the old one");
}

static void check_manifest(struct world *w, enum sbx_status st)
{
    const char *text = world_text(w, MANIFEST);

    assert_non_null(text);
    assert_true(strncmp(text, "{\"schema\"", 9) == 0 || (st && strcmp(text, "the old one") == 0));
}

static void reset_written_manifest(struct world *w)
{
    remove_tree(w);
    assert_int_equal(run_manifest(w, NULL), SBX_OK);
}

static enum sbx_status run_read_manifest(struct world *w, struct sbx_error *err)
{
    struct sbx_manifest_reader *reader = NULL;
    enum sbx_manifest_state got = SBX_MANIFEST_ABSENT;
    struct sbx_line line;
    const char *text;
    size_t n;
    bool more;
    int statedir = -1;
    enum sbx_status st = sbx_fs_own_dir(w->rootfd, STATE, false, &statedir, err);

    if (!st)
        st = sbx_manifest_open(statedir, &reader, &got, NULL, err);
    if (!st) {
        assert_int_equal(got, SBX_MANIFEST_OK);
        st = sbx_manifest_next(reader, &line, &text, &n, &more, err);
    }
    sbx_manifest_close(reader);
    close(statedir);
    return st;
}

static enum sbx_status run_record(struct world *w, struct sbx_error *err)
{
    struct sbx_run run = SBX_RUN_INIT;
    int statedir = -1;
    enum sbx_status st = sbx_fs_own_dir(w->rootfd, STATE, true, &statedir, err), again;

    if (!st)
        st = sbx_run_begin(&run, statedir, err);
    if (!st)
        st = sbx_run_note(&run, "a", 1, err);
    /* A note that failed does not spoil those after it, unless it had to give the record up. */
    again = run.fd >= 0 ? sbx_run_note(&run, "a/b", 3, st ? NULL : err) : st;
    if (!st)
        st = again;
    sbx_run_done(&run);
    close(statedir);
    return st;
}

static void check_record(struct world *w, enum sbx_status st)
{
    int statedir = statedir_of(w);
    size_t failed = 0;

    (void)st;
    if (statedir >= 0)
        assert_int_equal(sbx_run_sweep(statedir, w->rootfd, &failed, NULL), SBX_OK);
    assert_int_equal(failed, 0);
    statedir_of(NULL);
}

static void reset_leftovers(struct world *w)
{
    remove_tree(w);
    world_build(w, "d:" STATE " d:a d:a/b f:a/user");
    world_file(w, STATE "/run",
               "{\"schema\":\"sbx-sync/run/1\",\"token\":\"" TOKEN "\"}\n{\"dir\":\"a/b\"}\n");
    world_file(w, "a/b/.sbx-sync." TOKEN ".1", "left");
}

static enum sbx_status run_sweep(struct world *w, struct sbx_error *err)
{
    size_t failed = 0;
    int statedir = -1;
    enum sbx_status st = sbx_fs_own_dir(w->rootfd, STATE, false, &statedir, err);

    if (!st)
        st = sbx_run_sweep(statedir, w->rootfd, &failed, err);
    fault_disarm();
    close(statedir);
    if (!st)
        assert_true(failed > 0 || world_count_temporaries(w) == 0);
    return st;
}

/* What is left is still on record, so that the next pass removes it. */
static void check_swept(struct world *w, enum sbx_status st)
{
    int statedir = statedir_of(w);
    size_t failed;

    (void)st;
    assert_true(world_exists(w, "a/user"));
    assert_true(world_count_temporaries(w) == 0 || world_exists(w, STATE "/run"));
    assert_int_equal(sbx_run_sweep(statedir, w->rootfd, &failed, NULL), SBX_OK);
    assert_int_equal(world_count_temporaries(w), 0);
    statedir_of(NULL);
}

static void reset_digested(struct world *w)
{
    remove_tree(w);
    world_file(w, "digested", "abc");
}

static enum sbx_status run_digest(struct world *w, struct sbx_error *err)
{
    unsigned char digest[SBX_DIGEST_LEN];
    struct stat facts;
    bool same = true;
    enum sbx_status st =
        sbx_fs_file_digest(w->rootfd, "digested", 3, UINT64_MAX, &same, digest, &facts, err);

    assert_true(st || same);
    return st;
}

static enum sbx_status run_root(struct world *w, struct sbx_error *err)
{
    char path[64];
    bool within = false;
    int fd = -1;
    enum sbx_status st;

    (void)snprintf(path, sizeof(path), "%s/root/a/", w->base);
    st = sbx_fs_root_open(path, true, &fd, err);
    if (!st)
        st = sbx_fs_within(fd, w->rootfd, &within, err);
    assert_true(st || within);
    if (fd >= 0)
        close(fd);
    return st;
}

static const struct scenario scenarios[] = {
    {"a new file in new directories", remove_tree, run_new, check_new, "fstatat"},
    {"an old file is replaced", reset_old, run_replace, check_old_or_new, "fstatat"},
    {"the destination is opened and made", remove_tree, run_root, check_nothing, "openat fsync"},
    {"the state directory is opened and locked", remove_tree, run_state, check_nothing, ""},
    {"a manifest is written", reset_manifest, run_manifest, check_manifest, "fstatat"},
    {"a manifest is read", reset_written_manifest, run_read_manifest, check_nothing, ""},
    {"a run record is begun and written", remove_tree, run_record, check_record, ""},
    {"leftovers are swept", reset_leftovers, run_sweep, check_swept,
     "openat readdir fdopendir fstat fstatat unlinkat"},
    {"a file is digested", reset_digested, run_digest, check_nothing, ""},
};

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t m = strcspn(p, " ");

        if (m == n && memcmp(p, word, n) == 0)
            return true;
        p += m;
    }
    return false;
}

static bool is_allocation(const char *call)
{
    return has_word("calloc malloc realloc", call);
}

static void check_failure(const struct scenario *s, enum sbx_status st, const struct sbx_error *err,
                          int os_errno)
{
    const char *call = fault_fired();

    if (st == SBX_OK) {
        if (!has_word(s->tolerated, call) && !has_word(TOLERATED, call))
            fail_msg("nobody noticed that %s failed", call);
        return;
    }
    assert_int_equal(err->status, st);
    assert_string_not_equal(err->msg, "");
    if (is_allocation(call)) {
        assert_true(st == SBX_E_NOMEM || st == SBX_E_HOST);
        return;
    }
    assert_int_equal(st, SBX_E_HOST);
    assert_int_equal(err->os_errno, os_errno);
    assert_string_equal(err->step, call);
    assert_non_null(strstr(err->msg, os_errno == ENOSPC ? "ENOSPC" : "EIO"));
}

static void each_fault_leaves_no_trace(void **state)
{
    static const int errnos[] = {ENOSPC, EIO};
    struct world *w = *state;
    const struct scenario *s = w->row;

    for (size_t e = 0; e < N_ELEMENTS(errnos); e++) {
        for (unsigned nth = 1;; nth++) {
            struct sbx_error err = {0};
            enum sbx_status st;
            const char *call;

            assert_in_range(nth, 1, 200);
            s->reset(w);
            fault_arm(nth, errnos[e]);
            st = s->run(w, &err);
            fault_disarm();
            call = fault_fired();
            assert_int_equal(world_open_fds(), w->fds);
            if (!call)
                assert_int_equal(st, SBX_OK);
            else
                check_failure(s, st, &err, errnos[e]);
            if (s->check != check_swept)
                assert_int_equal(world_count_temporaries(w), 0);
            s->check(w, st);
            if (!call)
                break;
        }
    }
    remove_tree(w);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(scenarios)];

    (void)world_rows(tests, 0, ROWS(scenarios), each_fault_leaves_no_trace);
    return cmocka_run_group_tests_name("every call fails once", tests, NULL, NULL);
}
