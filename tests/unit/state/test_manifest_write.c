#include <time.h>

#include "base/limits.h"
#include "tests/unit/state/manifest_world.h"

/* Lines that between them hold every member and the ends of every range. */
static const struct sbx_line samples[] = {
    {.path = "-n", .size = 0},
    {.path = "a",
     .size = INT64_MAX,
     .mtime = {INT64_MAX, 999999999},
     .ctime = {INT64_MIN, 0},
     .young = true,
     .has_host = true,
     .host = {UINT64_MAX, INT64_MAX, {INT64_MIN, 999999999}, {INT64_MAX, 0}},
     .digest = {0x00, 0x01, 0xfe, 0xff},
     .last = SBX_FAILED},
    {.path = "a/\"quoted\\\" \n\t\x01\x7f", .size = 3, .mtime = {-1, 1}, .last = SBX_DEFERRED},
    {.path = "a/b", .size = 3, .ctime = {0, 999999999}, .unstable = true, .last = SBX_REFUSED},
    {.path = "caf\xc3\xa9/x\xe2\x80\xae", .size = 1, .mtime = {-9223372036854775807, 5}},
    {.path = "\xf0\x9f\x98\x80", .size = 1, .has_host = true, .host = {.ino = 1}},
};

static void assert_same(const struct sbx_line *a, const struct sbx_line *b)
{
    assert_int_equal(a->path_len, strlen(b->path));
    assert_memory_equal(a->path, b->path, a->path_len);
    assert_int_equal(a->size, b->size);
    assert_true(sbx_time_equal(a->mtime, b->mtime) && sbx_time_equal(a->ctime, b->ctime));
    assert_true(a->young == b->young && a->unstable == b->unstable && a->last == b->last);
    assert_true(a->has_host == b->has_host);
    assert_true(a->host.ino == b->host.ino && a->host.size == b->host.size);
    assert_true(sbx_time_equal(a->host.mtime, b->host.mtime));
    assert_true(sbx_time_equal(a->host.ctime, b->host.ctime));
    assert_memory_equal(a->digest, b->digest, SBX_DIGEST_LEN);
}

static void write_samples(int statedir)
{
    struct sbx_manifest_writer *writer = begin(statedir, "sandbox-1", SBX_NAMES_POSIX);

    for (size_t i = 0; i < N_ELEMENTS(samples); i++) {
        struct sbx_line line = samples[i];

        line.path_len = strlen(line.path);
        assert_int_equal(sbx_manifest_writer_line(writer, &line, NULL), SBX_OK);
    }
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_BATCH, NULL), SBX_OK);
    assert_null(writer);
}

static void assert_samples(int statedir)
{
    struct sbx_manifest_reader *reader = open_good(statedir);
    struct sbx_line line;
    const char *text;
    size_t n;
    bool more;

    assert_string_equal(sbx_manifest_header(reader)->identity, "sandbox-1");
    assert_int_equal(sbx_manifest_header(reader)->names, SBX_NAMES_POSIX);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N_ELEMENTS(samples); i++) {
            assert_int_equal(sbx_manifest_next(reader, &line, &text, &n, &more, NULL), SBX_OK);
            assert_true(more);
            assert_same(&line, &samples[i]);
            assert_int_equal(text[n - 1], '\n');
            assert_int_equal(text[0], '{');
        }
        assert_int_equal(sbx_manifest_next(reader, &line, &text, &n, &more, NULL), SBX_OK);
        assert_false(more);
        sbx_manifest_rewind(reader);
    }
    sbx_manifest_close(reader);
}

static void what_is_written_is_read(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);

    write_samples(statedir);
    assert_samples(statedir);
    close(statedir);
}

static void old_lines_are_taken_over_as_they_stand(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_manifest_reader *reader;
    struct sbx_manifest_writer *writer;
    struct sbx_line line;
    char before[8192];
    const char *text;
    size_t n;
    bool more = true;

    write_samples(statedir);
    (void)snprintf(before, sizeof(before), "%s", world_text(w, FILE_NAME));
    reader = open_good(statedir);
    writer = begin(statedir, "sandbox-1", SBX_NAMES_POSIX);
    for (;;) {
        assert_int_equal(sbx_manifest_next(reader, &line, &text, &n, &more, NULL), SBX_OK);
        if (!more)
            break;
        assert_int_equal(sbx_manifest_writer_text(writer, text, n, NULL), SBX_OK);
    }
    /* The old file is being read while the new one takes its name. */
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_NONE, NULL), SBX_OK);
    sbx_manifest_close(reader);
    assert_string_equal(world_text(w, FILE_NAME), before);
    assert_samples(statedir);
    close(statedir);
}

static void a_changed_byte_is_noticed(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    char good[8192], bad[8192];
    size_t n;

    write_samples(statedir);
    (void)snprintf(good, sizeof(good), "%s", world_text(w, FILE_NAME));
    n = strlen(good);
    for (size_t i = 0; i < n; i++) {
        struct sbx_manifest_reader *reader = NULL;
        enum sbx_manifest_state got = SBX_MANIFEST_OK;

        memcpy(bad, good, n);
        bad[i] ^= 1;
        world_write(w->rootfd, FILE_NAME, bad, n);
        assert_int_equal(sbx_manifest_open(statedir, &reader, &got, NULL, NULL), SBX_OK);
        assert_int_equal(got, SBX_MANIFEST_DAMAGED);
        world_write(w->rootfd, FILE_NAME, good, i);
        assert_int_equal(sbx_manifest_open(statedir, &reader, &got, NULL, NULL), SBX_OK);
        assert_int_equal(got, SBX_MANIFEST_DAMAGED);
    }
    close(statedir);
}

static const struct identity_case {
    const char *why;
    const char *identity;
} identity_cases[] = {
    {"an empty identity", ""},
    {"a URL as identity", "execd://[::1]:44772/srv"},
    {"an identity in another script", "\xe7\xae\xb1"},
    {"an identity that is not UTF-8", "box \xff\xfe"},
    {"an identity that looks escaped", "box \\xff"},
};

static void check_identity(void **state)
{
    struct world *w = *state;
    const struct identity_case *c = w->row;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer = begin(statedir, c->identity, SBX_NAMES_PORTABLE);
    struct sbx_manifest_reader *reader;

    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_NONE, NULL), SBX_OK);
    reader = open_good(statedir);
    assert_string_equal(sbx_manifest_header(reader)->identity, c->identity);
    assert_int_equal(sbx_manifest_header(reader)->names, SBX_NAMES_PORTABLE);
    sbx_manifest_close(reader);
    close(statedir);
}

static const struct unfit_case {
    const char *why;
    struct sbx_line line;
} unfit_cases[] = {
    {"the same path again is not written", {.path = "m"}},
    {"a path before the last is not written", {.path = "a"}},
    {"a path that preflight refuses is not written", {.path = "../x"}},
    {"a name that the profile refuses is not written", {.path = "x:y"}},
    {"a path that is not UTF-8 is not written", {.path = "x\xff"}},
    {"a size that cannot be read is not written", {.path = "x", .size = UINT64_MAX}},
    {"a time that cannot be read is not written", {.path = "x", .mtime = {0, 1000000000}}},
};

static void check_unfit(void **state)
{
    struct world *w = *state;
    const struct unfit_case *c = w->row;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer = begin(statedir, "box", SBX_NAMES_PORTABLE);
    struct sbx_line line = {.path = "m", .path_len = 1};
    struct sbx_manifest_reader *reader;
    const char *text;
    size_t n;
    bool more;

    assert_int_equal(sbx_manifest_writer_line(writer, &line, NULL), SBX_OK);
    line = c->line;
    line.path_len = strlen(line.path);
    assert_int_equal(sbx_manifest_writer_line(writer, &line, NULL), SBX_E_USAGE);
    assert_int_equal(sbx_manifest_writer_text(writer, "{}", 2, NULL), SBX_E_USAGE);
    assert_int_equal(sbx_manifest_writer_text(writer, "{}\n{}\n", 6, NULL), SBX_E_USAGE);
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_NONE, NULL), SBX_OK);
    reader = open_good(statedir);
    assert_int_equal(sbx_manifest_next(reader, &line, &text, &n, &more, NULL), SBX_OK);
    assert_true(more);
    assert_int_equal(sbx_manifest_next(reader, &line, &text, &n, &more, NULL), SBX_OK);
    assert_false(more);
    sbx_manifest_close(reader);
    close(statedir);
}

static void the_longest_path_of_escapes_is_read(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer = begin(statedir, "box", SBX_NAMES_POSIX);
    struct sbx_manifest_reader *reader;
    struct sbx_line line = {.path_len = SBX_MAX_PATH}, got;
    char path[SBX_MAX_PATH + 1];
    const char *text;
    size_t n;
    bool more;

    memset(path, 1, sizeof(path));
    for (size_t i = 255; i < SBX_MAX_PATH; i += 256)
        path[i] = '/';
    line.path = path;
    assert_int_equal(sbx_manifest_writer_line(writer, &line, NULL), SBX_OK);
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_NONE, NULL), SBX_OK);
    reader = open_good(statedir);
    assert_int_equal(sbx_manifest_next(reader, &got, &text, &n, &more, NULL), SBX_OK);
    assert_int_equal(got.path_len, SBX_MAX_PATH);
    assert_memory_equal(got.path, path, SBX_MAX_PATH);
    sbx_manifest_close(reader);
    close(statedir);
}

static void abort_leaves_the_old_one(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer;

    write_samples(statedir);
    writer = begin(statedir, "other", SBX_NAMES_PORTABLE);
    assert_int_equal(world_count_temporaries(w), 1);
    sbx_manifest_writer_abort(&writer);
    sbx_manifest_writer_abort(&writer);
    assert_samples(statedir);
    close(statedir);
}

static void a_directory_in_its_place_fails_the_commit(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer = begin(statedir, "box", SBX_NAMES_PORTABLE);
    struct sbx_error err = {0};

    world_build(w, "d:" FILE_NAME);
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_FULL, &err), SBX_E_HOST);
    assert_string_equal(err.step, "renameat");
    assert_null(writer);
    close(statedir);
}

static const struct mode_case {
    const char *why;
    mode_t umask, want;
} mode_cases[] = {
    {"a gateway of another user can read it", 0022, 0644},
    {"under umask 0 nobody else can write it", 0, 0644},
    {"under umask 077 it is ours alone", 0077, 0600},
};

static void check_mode(void **state)
{
    struct world *w = *state;
    const struct mode_case *c = w->row;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer;
    mode_t before;

    world_build(w, "f:" FILE_NAME);
    assert_int_equal(fchmodat(w->rootfd, FILE_NAME, 0604, 0), 0);
    before = umask(c->umask);
    writer = begin(statedir, "box", SBX_NAMES_PORTABLE);
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_NONE, NULL), SBX_OK);
    umask(before);
    assert_int_equal(world_mode(w, FILE_NAME), c->want);
    close(statedir);
}

static void a_hundred_thousand_lines_are_quick(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_manifest_writer *writer = begin(statedir, "box", SBX_NAMES_PORTABLE);
    struct sbx_manifest_reader *reader;
    struct sbx_line line = samples[1];
    char path[64];
    const char *text;
    size_t n, lines = 0;
    clock_t at[3]; /* of our own processor time: the machine may be busy */
    bool more = true;

    at[0] = clock();
    line.path = path;
    for (unsigned i = 0; i < 100000; i++) {
        line.path_len =
            (size_t)snprintf(path, sizeof(path), "some/directory-%03u/file-%06u.txt", i / 1000, i);
        assert_int_equal(sbx_manifest_writer_line(writer, &line, NULL), SBX_OK);
    }
    assert_int_equal(sbx_manifest_writer_commit(&writer, SBX_DURABILITY_NONE, NULL), SBX_OK);
    at[1] = clock();
    reader = open_good(statedir);
    while (sbx_manifest_next(reader, &line, &text, &n, &more, NULL) == SBX_OK && more)
        lines++;
    at[2] = clock();
    sbx_manifest_close(reader);
    close(statedir);
    assert_int_equal(lines, 100000);
    print_message("100,000 lines: written in %u ms, read in %u ms\n",
                  (unsigned)((at[1] - at[0]) * 1000 / CLOCKS_PER_SEC),
                  (unsigned)((at[2] - at[1]) * 1000 / CLOCKS_PER_SEC));
    assert_true(at[2] - at[0] < 20 * CLOCKS_PER_SEC); /* also under sanitizers */
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("what is written is read", what_is_written_is_read),
        WORLD_TEST("old lines are taken over as they stand",
                   old_lines_are_taken_over_as_they_stand),
        WORLD_TEST("any changed byte and any cut is noticed", a_changed_byte_is_noticed),
        WORLD_TEST("the longest path of escapes is read", the_longest_path_of_escapes_is_read),
        WORLD_TEST("abort leaves the old one", abort_leaves_the_old_one),
        WORLD_TEST("a directory in its place fails the commit",
                   a_directory_in_its_place_fails_the_commit),
        WORLD_TEST("100,000 lines are quick", a_hundred_thousand_lines_are_quick),
    };
    struct CMUnitTest tests[N_ELEMENTS(identity_cases) + N_ELEMENTS(unfit_cases) +
                            N_ELEMENTS(mode_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(identity_cases), check_identity);

    n = world_rows(tests, n, ROWS(unfit_cases), check_unfit);
    n = world_rows(tests, n, ROWS(mode_cases), check_mode);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("manifests of our own", tests, NULL, NULL);
}
