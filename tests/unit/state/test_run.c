#include "state/run.h"

#include "tests/support/world.h"

#define STATE ".sbx-sync"
#define RUN STATE "/run"
#define T1 "00112233445566778899aabb"
#define T2 "ffeeddccbbaa998877665544"
#define HEAD(token) "{\"schema\":\"sbx-sync/run/1\",\"token\":\"" token "\"}\n"
#define DIR_LINE(path) "{\"dir\":\"" path "\"}\n"
#define LEFT(token, n) ".sbx-sync." token "." n

static const struct sweep_case {
    const char *why;
    const char *record; /* NULL: none */
    size_t removed, failed;
    bool record_stays;
} sweep_cases[] = {
    {"no record", NULL, 0, 0, false},
    {"an empty record", "", 0, 0, false},
    {"the root and a directory", HEAD(T1) DIR_LINE("") DIR_LINE("a/b"), 3, 0, false},
    {"the state directory needs no line", HEAD(T1), 1, 0, false},
    {"directories are noted twice", HEAD(T1) DIR_LINE("a/b") DIR_LINE("") DIR_LINE("a/b"), 3, 0,
     false},
    {"two passes", HEAD(T1) DIR_LINE("") HEAD(T2) DIR_LINE("a/b"), 3, 0, false},
    {"a torn last line is ignored", HEAD(T1) DIR_LINE("") "{\"dir\":\"a/", 2, 0, false},
    {"a tail that was never written is ignored", HEAD(T1) DIR_LINE("") "xx", 2, 0, false},
    {"a directory that is gone", HEAD(T1) DIR_LINE("gone/away"), 1, 0, false},
    {"a directory that is a link now", HEAD(T1) DIR_LINE("link"), 1, 0, false},
    {"a directory that is a file now", HEAD(T1) DIR_LINE("user"), 1, 0, false},
    {"no header: damaged", DIR_LINE(""), 0, 1, true},
    {"a path that climbs: damaged", HEAD(T1) DIR_LINE("") DIR_LINE("../outside"), 0, 1, true},
    {"an absolute path: damaged", HEAD(T1) DIR_LINE("/tmp"), 0, 1, true},
    {"a token that is none: damaged", HEAD("*") DIR_LINE(""), 0, 1, true},
    {"a longer token: damaged", HEAD(T1 "00") DIR_LINE(""), 0, 1, true},
    {"a newer schema: damaged",
     "{\"schema\":\"sbx-sync/run/2\",\"token\":\"" T1 "\"}\n" DIR_LINE(""), 0, 1, true},
    {"a line that is no JSON: damaged", HEAD(T1) DIR_LINE("") "x\n", 0, 1, true},
    {"a double key: damaged", HEAD(T1) "{\"dir\":\"a\",\"dir\":\"\"}\n", 0, 1, true},
};

static void build_leftovers(struct world *w)
{
    world_build(w, "d:" STATE " d:a d:a/b f:user l:link=a/b f:.sbx-sync.other "
                   "f:" STATE "/" LEFT(T1, "1") " f:" LEFT(T1, "2") " f:a/b/" LEFT(
                       T1, "3") " "
                                "f:a/b/" LEFT(T2, "4"));
    w->leftovers_wanted = true;
}

static void check_sweep(void **state)
{
    struct world *w = *state;
    const struct sweep_case *c = w->row;
    size_t failed = 99;
    struct sbx_error err = {0};
    int statedir;
    enum sbx_status st;

    build_leftovers(w);
    if (c->record)
        world_file(w, RUN, c->record);
    statedir = openat(w->rootfd, STATE, O_RDONLY | O_DIRECTORY);
    st = sbx_run_sweep(statedir, w->rootfd, &failed, &err);
    close(statedir);
    assert_int_equal(st, SBX_OK);
    assert_int_equal(failed, c->failed);
    assert_int_equal(world_exists(w, RUN), c->record_stays);
    assert_true(world_exists(w, ".sbx-sync.other") && world_exists(w, "user"));
    assert_int_equal(world_count_temporaries(w), 5 - c->removed);
}

static int open_state(struct world *w)
{
    int fd;

    if (!world_exists(w, STATE))
        world_mkdir(w, STATE);
    fd = openat(w->rootfd, STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void what_a_dead_pass_noted_is_swept(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_run run = SBX_RUN_INIT;
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    size_t failed;
    int status;
    pid_t pid;

    world_build(w, "d:a");
    for (int i = 0; i < 3; i++) {
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            if (sbx_run_sweep(statedir, w->rootfd, &failed, NULL) ||
                sbx_run_begin(&run, statedir, NULL) || sbx_run_note(&run, "", 0, NULL) ||
                sbx_fs_tmp_open(&t, w->rootfd, run.token, 1, NULL) ||
                sbx_fs_tmp_open(&t, statedir, run.token, 2, NULL))
                _exit(1);
            raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_int_equal(world_count_temporaries(w), 2);
    }
    assert_int_equal(sbx_run_sweep(statedir, w->rootfd, &failed, NULL), SBX_OK);
    assert_int_equal(world_count_temporaries(w), 0);
    assert_int_equal(failed, 0);
    close(statedir);
}

static void the_record_is_written_as_said(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_run run = SBX_RUN_INIT;
    char want[512];

    assert_int_equal(sbx_run_begin(&run, statedir, NULL), SBX_OK);
    assert_int_equal(strlen(run.token), SBX_TOKEN_CHARS);
    assert_int_equal(world_mode(w, RUN), 0600);
    assert_int_equal(sbx_run_note(&run, "", 0, NULL), SBX_OK);
    assert_int_equal(sbx_run_note(&run, "", 0, NULL), SBX_OK);
    assert_int_equal(sbx_run_note(&run, "a/xyz", 1, NULL), SBX_OK);
    assert_int_equal(sbx_run_note(&run, "a/xyz", 1, NULL), SBX_OK);
    assert_int_equal(sbx_run_note(&run, "a\"\\\n", 4, NULL), SBX_OK);
    assert_int_equal(sbx_run_note(&run, "../x", 4, NULL), SBX_E_USAGE);
    (void)snprintf(want, sizeof(want), HEAD("%s") "%s", run.token,
                   DIR_LINE("") DIR_LINE("a") DIR_LINE("a\\\"\\\\\\n"));
    assert_string_equal(world_text(w, RUN), want);
    assert_int_equal(sbx_run_clear(&run, NULL), SBX_OK);
    assert_string_equal(world_text(w, RUN), "");
    sbx_run_done(&run);
    sbx_run_done(&run);
    close(statedir);
}

static void tokens_are_new_each_time(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_run one = SBX_RUN_INIT, two = SBX_RUN_INIT;

    assert_int_equal(sbx_run_begin(&one, statedir, NULL), SBX_OK);
    sbx_run_done(&one);
    assert_int_equal(sbx_run_begin(&two, statedir, NULL), SBX_OK);
    assert_string_not_equal(one.token, two.token);
    sbx_run_done(&two);
    close(statedir);
}

static const struct begin_case {
    const char *why;
    const char *before;
    const char *kept;
} begin_cases[] = {
    {"parts of passes that could not be swept stay", HEAD(T1) DIR_LINE("a") HEAD(T2),
     HEAD(T1) DIR_LINE("a") HEAD(T2)},
    {"a torn last line goes", HEAD(T1) DIR_LINE("a") "{\"di", HEAD(T1) DIR_LINE("a")},
    {"a damaged record goes", HEAD(T1) "nonsense\n" DIR_LINE("a"), ""},
};

static void check_begin(void **state)
{
    struct world *w = *state;
    const struct begin_case *c = w->row;
    int statedir = open_state(w);
    struct sbx_run run = SBX_RUN_INIT;
    char want[512];

    world_file(w, RUN, c->before);
    assert_int_equal(sbx_run_begin(&run, statedir, NULL), SBX_OK);
    assert_int_equal(sbx_run_note(&run, "b", 1, NULL), SBX_OK);
    (void)snprintf(want, sizeof(want), "%s" HEAD("%s") DIR_LINE("b"), c->kept, run.token);
    assert_string_equal(world_text(w, RUN), want);
    assert_int_equal(sbx_run_clear(&run, NULL), SBX_OK);
    assert_string_equal(world_text(w, RUN), c->kept);
    close(statedir);
}

static void a_copy_by_links_keeps_its_record(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_run run = SBX_RUN_INIT;
    size_t failed;

    world_file(w, RUN, HEAD(T1));
    world_build(w, "h:copy=" RUN);
    assert_int_equal(sbx_run_begin(&run, statedir, NULL), SBX_OK);
    sbx_run_done(&run);
    assert_string_equal(world_text(w, "copy"), HEAD(T1));
    assert_int_equal(unlinkat(w->rootfd, RUN, 0), 0);
    world_build(w, "h:" RUN "=copy");
    assert_int_equal(sbx_run_sweep(statedir, w->rootfd, &failed, NULL), SBX_OK);
    assert_string_equal(world_text(w, "copy"), HEAD(T1));
    close(statedir);
}

static void a_record_that_is_not_ours_is_an_error(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_run run = SBX_RUN_INIT;
    struct sbx_error err = {0};
    size_t failed;

    world_build(w, "l:" RUN "=../../outside/victim");
    assert_int_equal(sbx_run_sweep(statedir, w->rootfd, &failed, &err), SBX_E_HOST);
    assert_int_equal(sbx_run_begin(&run, statedir, &err), SBX_E_HOST);
    assert_string_not_equal(err.step, "");
    assert_int_equal(run.fd, -1);
    close(statedir);
}

static void an_endless_record_is_not_read(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    size_t failed = 0;
    int fd;

    world_file(w, RUN, HEAD(T1));
    fd = openat(w->rootfd, RUN, O_WRONLY);
    assert_int_equal(ftruncate(fd, 1024 * 1024 * 1024), 0);
    close(fd);
    assert_int_equal(sbx_run_sweep(statedir, w->rootfd, &failed, NULL), SBX_OK);
    assert_int_equal(failed, 1);
    close(statedir);
}

static int try_sweep(struct world *w)
{
    size_t failed = 9;
    int statedir = openat(w->rootfd, STATE, O_RDONLY | O_DIRECTORY);

    if (sbx_run_sweep(statedir, w->rootfd, &failed, NULL))
        return 1;
    return failed == 2 ? 0 : 2;
}

static void what_cannot_be_swept_stays_on_record(void **state)
{
    struct world *w = *state;

    world_build(w, "d:" STATE
                   " d:a d:b d:c f:a/" LEFT(T1, "1") " f:b/" LEFT(T1, "2") " f:c/" LEFT(T1, "3"));
    world_file(w, RUN, HEAD(T1) DIR_LINE("a") DIR_LINE("b") DIR_LINE("c"));
    if (geteuid() == 0) {
        assert_int_equal(fchownat(w->rootfd, STATE, 65534, 65534, 0), 0);
        assert_int_equal(fchownat(w->rootfd, RUN, 65534, 65534, 0), 0);
        assert_int_equal(fchownat(w->rootfd, "a", 65534, 65534, 0), 0);
    }
    assert_int_equal(fchmodat(w->rootfd, "b", 0555, 0), 0);
    assert_int_equal(fchmodat(w->rootfd, "c", 0311, 0), 0);
    assert_int_equal(world_as_user(try_sweep, w), 0);
    assert_int_equal(fchmodat(w->rootfd, "b", 0755, 0), 0);
    assert_int_equal(fchmodat(w->rootfd, "c", 0755, 0), 0);
    assert_int_equal(world_count_temporaries(w), 2);
    assert_string_equal(world_text(w, RUN), HEAD(T1) DIR_LINE("a") DIR_LINE("b") DIR_LINE("c"));
    w->leftovers_wanted = true;
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("what a killed pass noted is swept by the next",
                   what_a_dead_pass_noted_is_swept),
        WORLD_TEST("the record is written as its header says", the_record_is_written_as_said),
        WORLD_TEST("each pass has a token of its own", tokens_are_new_each_time),
        WORLD_TEST("a copy of the destination by links keeps its record",
                   a_copy_by_links_keeps_its_record),
        WORLD_TEST("a record that is a link is an error", a_record_that_is_not_ours_is_an_error),
        WORLD_TEST("a record of 1 GiB is not read", an_endless_record_is_not_read),
        WORLD_TEST("what cannot be swept stays on record", what_cannot_be_swept_stays_on_record),
    };
    struct CMUnitTest tests[N_ELEMENTS(sweep_cases) + N_ELEMENTS(begin_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(sweep_cases), check_sweep);

    n = world_rows(tests, n, ROWS(begin_cases), check_begin);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("run record", tests, NULL, NULL);
}
