#include "fsutil/file.h"

#include "base/clock.h"
#include "base/coding.h"
#include "base/limits.h"
#include "tests/support/world.h"

static int open_read(struct world *w, struct sbx_error *err, int *ret)
{
    return (int)sbx_fs_own_read(w->rootfd, "x", ret, err);
}

static int open_file(struct world *w, struct sbx_error *err, int *ret)
{
    return (int)sbx_fs_own_file(w->rootfd, "x", 0600, ret, err);
}

static int open_dir(struct world *w, struct sbx_error *err, int *ret)
{
    return (int)sbx_fs_own_dir(w->rootfd, "x", true, ret, err);
}

static int look_dir(struct world *w, struct sbx_error *err, int *ret)
{
    return (int)sbx_fs_own_dir(w->rootfd, "x", false, ret, err);
}

static const struct own_case {
    const char *why;
    const char *build;
    int (*open)(struct world *w, struct sbx_error *err, int *ret);
    mode_t mode; /* of x, 0: as made */
    uid_t owner;
    int status;
    bool opened;
    const char *says;
} own_cases[] = {
    {"a missing file is made", "", open_file, 0, 0, SBX_OK, true, NULL},
    {"a missing file is not made for reading", "", open_read, 0, 0, SBX_OK, false, NULL},
    {"a missing directory is made", "", open_dir, 0, 0, SBX_OK, true, NULL},
    {"a missing directory is not made for looking", "", look_dir, 0, 0, SBX_OK, false, NULL},
    {"a file of ours", "f:x", open_file, 0644, 0, SBX_OK, true, NULL},
    {"a file of ours for reading", "f:x", open_read, 0644, 0, SBX_OK, true, NULL},
    {"a file of ours with a second link", "f:x h:y=x", open_read, 0, 0, SBX_OK, true, NULL},
    {"a directory of ours", "d:x", open_dir, 0755, 0, SBX_OK, true, NULL},
    {"a file that the group may write", "f:x", open_file, 0664, 0, SBX_E_HOST, false, "writable"},
    {"a file that all may write", "f:x", open_read, 0646, 0, SBX_E_HOST, false, "writable"},
    {"a directory that the group may write", "d:x", open_dir, 0775, 0, SBX_E_HOST, false,
     "writable"},
    {"a file of someone else", "f:x", open_file, 0, 1000, SBX_E_HOST, false, "another user"},
    {"a file of someone else for reading", "f:x", open_read, 0, 1000, SBX_E_HOST, false,
     "another user"},
    {"a directory of someone else", "d:x", look_dir, 0, 1000, SBX_E_HOST, false, "another user"},
    {"a link to a file outside", "l:x=../outside/victim", open_file, 0, 0, SBX_E_HOST, false,
     "remove it"},
    {"a link to a file outside for reading", "l:x=../outside/victim", open_read, 0, 0, SBX_E_HOST,
     false, "remove it"},
    {"a dangling link is not followed to make", "l:x=../outside/new", open_file, 0, 0, SBX_E_HOST,
     false, "remove it"},
    {"a link to a directory", "l:x=../outside", open_dir, 0, 0, SBX_E_HOST, false, "remove it"},
    {"a dangling link for a directory", "l:x=../outside/new", open_dir, 0, 0, SBX_E_HOST, false,
     "remove it"},
    {"a FIFO does not hold us", "p:x", open_file, 0, 0, SBX_E_HOST, false, "no regular file"},
    {"a FIFO does not hold us for reading", "p:x", open_read, 0, 0, SBX_E_HOST, false,
     "no regular file"},
    {"a socket", "s:x", open_file, 0, 0, SBX_E_HOST, false, "remove it"},
    {"a directory where a file must be", "d:x", open_file, 0, 0, SBX_E_HOST, false, "remove it"},
    {"a directory where a file must be read", "d:x", open_read, 0, 0, SBX_E_HOST, false,
     "no regular file"},
    {"a file where a directory must be", "f:x", open_dir, 0, 0, SBX_E_HOST, false, "remove it"},
};

static void check_own(void **state)
{
    struct world *w = *state;
    const struct own_case *c = w->row;
    struct sbx_error err = {0};
    int fd = -7;

    world_build(w, c->build);
    if (c->mode)
        assert_int_equal(fchmodat(w->rootfd, "x", c->mode, 0), 0);
    if (c->owner && fchownat(w->rootfd, "x", c->owner, 0, 0) < 0)
        skip(); /* only root can give a file away, and at a desk nobody has to be root */
    assert_int_equal(c->open(w, &err, &fd), c->status);
    if (c->status) {
        assert_int_equal(fd, -7);
        assert_string_not_equal(err.step, "");
        assert_non_null(strstr(err.msg, c->says));
        return;
    }
    assert_int_equal(fd >= 0, c->opened);
    if (c->opened)
        close(fd);
}

static const struct make_mode_case {
    const char *why;
    mode_t umask, file, dir;
} make_mode_cases[] = {
    {"under umask 0, no write for others", 0, 0644, 0755},
    {"under umask 027", 0027, 0640, 0750},
    {"under umask 077", 0077, 0600, 0700},
};

static void check_make_mode(void **state)
{
    struct world *w = *state;
    const struct make_mode_case *c = w->row;
    mode_t before = umask(c->umask);
    int file = -1, dir = -1;

    assert_int_equal(sbx_fs_own_file(w->rootfd, "file", 0666, &file, NULL), SBX_OK);
    assert_int_equal(sbx_fs_own_dir(w->rootfd, "dir", true, &dir, NULL), SBX_OK);
    umask(before);
    close(file);
    close(dir);
    assert_int_equal(world_mode(w, "file"), c->file);
    assert_int_equal(world_mode(w, "dir"), c->dir);
}

static const struct digest_case {
    const char *why;
    const char *build;
    uint64_t size;
    bool same;
    const char *hex; /* RFC 7693 values by another program (b2sum -l 256) */
} digest_cases[] = {
    {"the bytes asked for", "f:x=abc", 3, true,
     "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
    {"another size", "f:x=abc", 4, false, NULL},
    {"a smaller size", "f:x=abc", 2, false, NULL},
    {"no file", "", 3, false, NULL},
    {"a link to such a file", "f:y=abc l:x=y", 3, false, NULL},
    {"a FIFO", "p:x", 0, false, NULL},
    {"a directory", "d:x", 4096, false, NULL},
    {"a socket", "s:x", 0, false, NULL},
};

static void check_digest(void **state)
{
    struct world *w = *state;
    const struct digest_case *c = w->row;
    unsigned char digest[SBX_DIGEST_LEN];
    char hex[2 * SBX_DIGEST_LEN + 1];
    struct sbx_error err = {0};
    struct stat st;
    bool same = !c->same;

    world_build(w, c->build);
    assert_int_equal(
        sbx_fs_file_digest(w->rootfd, "x", c->size, SBX_NEVER, &same, digest, &st, &err), SBX_OK);
    assert_int_equal(same, c->same);
    if (!c->same)
        return;
    sbx_encode_hex(digest, sizeof(digest), hex);
    assert_string_equal(hex, c->hex);
    assert_int_equal(st.st_size, c->size);
}

static void a_digest_ends_at_its_deadline(void **state)
{
    struct world *w = *state;
    unsigned char digest[SBX_DIGEST_LEN];
    struct stat st;
    bool same = true;

    world_build(w, "f:x=abc");
    assert_int_equal(sbx_fs_file_digest(w->rootfd, "x", 3, 1, &same, digest, &st, NULL),
                     SBX_E_DEADLINE);
}

static void a_digest_takes_many_chunks(void **state)
{
    struct world *w = *state;
    unsigned char once[SBX_DIGEST_LEN], digest[SBX_DIGEST_LEN];
    const size_t n = 2 * SBX_IO_CHUNK + 17;
    char *bytes = calloc(1, n);
    struct sbx_digest d;
    struct stat st;
    bool same = false;

    assert_non_null(bytes);
    memset(bytes, 'z', n);
    world_write(w->rootfd, "x", bytes, n);
    sbx_digest_init(&d);
    sbx_digest_add(&d, bytes, n);
    sbx_digest_final(&d, once);
    free(bytes);
    assert_int_equal(sbx_fs_file_digest(w->rootfd, "x", n, SBX_NEVER, &same, digest, &st, NULL),
                     SBX_OK);
    assert_true(same);
    assert_memory_equal(once, digest, sizeof(once));
}

static void stat_tells_regular_files_only(void **state)
{
    struct world *w = *state;
    struct sbx_error err = {0};
    struct stat st;

    world_build(w, "f:x=abc l:y=x d:z");
    assert_int_equal(sbx_fs_stat(w->rootfd, "x", &st, &err), SBX_OK);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(sbx_fs_stat(w->rootfd, "y", &st, &err), SBX_E_HOST);
    assert_int_equal(sbx_fs_stat(w->rootfd, "z", &st, &err), SBX_E_HOST);
    assert_int_equal(sbx_fs_stat(w->rootfd, "none", &st, &err), SBX_E_HOST);
    assert_int_equal(err.os_errno, ENOENT);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("a digest ends at its deadline", a_digest_ends_at_its_deadline),
        WORLD_TEST("a digest takes many chunks", a_digest_takes_many_chunks),
        WORLD_TEST("stat tells regular files only", stat_tells_regular_files_only),
    };
    struct CMUnitTest tests[N_ELEMENTS(own_cases) + N_ELEMENTS(make_mode_cases) +
                            N_ELEMENTS(digest_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(own_cases), check_own);

    n = world_rows(tests, n, ROWS(make_mode_cases), check_make_mode);
    n = world_rows(tests, n, ROWS(digest_cases), check_digest);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
