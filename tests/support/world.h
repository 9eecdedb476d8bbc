/* A destination of a test's own, with a directory beside it in which nothing may ever happen.
 *
 * As a cmocka fixture: what a row was given as initial state is `row`. Teardown fails the test if a
 * descriptor is still open, a temporary is left, or anything happened outside. */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "tests/support/rows.h"

#define WORLD_VICTIM "victim"

struct world {
    const void *row;
    char base[32];
    int basefd; /* holds "root" and "outside" */
    int rootfd;
    unsigned fds; /* open when the test begins */
    bool leftovers_wanted;
};

static inline unsigned world_open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static inline void world_write(int dirfd, const char *path, const void *bytes, size_t n)
{
    int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    assert_int_equal(close(fd), 0);
}

/* A file below the destination. */
static inline void world_file(struct world *w, const char *path, const char *text)
{
    world_write(w->rootfd, path, text, strlen(text));
}

static inline void world_mkdir(struct world *w, const char *path)
{
    assert_int_equal(mkdirat(w->rootfd, path, 0755), 0);
}

static inline void world_link(struct world *w, const char *to, const char *path)
{
    assert_int_equal(symlinkat(to, w->rootfd, path), 0);
}

static inline void world_build_one(struct world *w, char kind, const char *path, const char *to)
{
    if (kind == 'd')
        world_mkdir(w, path);
    else if (kind == 'f')
        world_file(w, path, to ? to : "old");
    else if (kind == 'l')
        world_link(w, to, path);
    else if (kind == 'h')
        assert_int_equal(linkat(w->rootfd, to, w->rootfd, path, 0), 0);
    else
        assert_int_equal(mknodat(w->rootfd, path, (kind == 'p' ? S_IFIFO : S_IFSOCK) | 0644, 0), 0);
}

/* Makes what the words of `spec` say: d:PATH directory, f:PATH[=TEXT] file, l:PATH=TARGET symbolic
 * link, h:PATH=OTHER hard link, p:PATH FIFO, s:PATH socket. */
static inline void world_build(struct world *w, const char *spec)
{
    char word[512];

    for (; *spec; spec += strspn(spec, " ")) {
        size_t n = strcspn(spec, " ");
        char *to;

        assert_in_range(n, 3, sizeof(word) - 1);
        memcpy(word, spec, n);
        word[n] = '\0';
        to = strchr(word, '=');
        if (to)
            *to++ = '\0';
        world_build_one(w, word[0], word + 2, to);
        spec += n;
    }
}

/* The file's bytes as a string, or NULL if there is none. Valid until the next call. */
static inline const char *world_text_at(int dirfd, const char *path)
{
    static char text[8192];
    int fd = openat(dirfd, path, O_RDONLY | O_NOFOLLOW);
    ssize_t n;

    if (fd < 0)
        return NULL;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static inline const char *world_text(struct world *w, const char *path)
{
    return world_text_at(w->rootfd, path);
}

static inline bool world_exists(struct world *w, const char *path)
{
    struct stat st;

    return fstatat(w->rootfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline mode_t world_mode(struct world *w, const char *path)
{
    struct stat st;

    assert_int_equal(fstatat(w->rootfd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

/* Entries of a directory whose names begin with the prefix. */
static inline unsigned world_count(int dirfd, const char *path, const char *prefix)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY);
    DIR *dir = fdopendir(fd);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(dir);
    while ((e = readdir(dir)))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return n;
}

static unsigned world_temporaries;

static inline int world_visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    world_temporaries += strncmp(path + at->base, ".sbx-sync.", strlen(".sbx-sync.")) == 0;
    return 0;
}

/* Temporaries anywhere below the destination. */
static inline unsigned world_count_temporaries(struct world *w)
{
    char root[48];

    world_temporaries = 0;
    (void)snprintf(root, sizeof(root), "%s/root", w->base);
    assert_int_equal(nftw(root, world_visit, 16, FTW_PHYS), 0);
    return world_temporaries;
}

static inline int world_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    int fd;

    if (!w)
        return -1;
    w->row = *state;
    (void)snprintf(w->base, sizeof(w->base), "/tmp/sbx-test-XXXXXX");
    if (!mkdtemp(w->base) || chmod(w->base, 0755) < 0)
        return -1;
    w->basefd = open(w->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* banned-ok: a test */
    if (mkdirat(w->basefd, "root", 0755) < 0 || mkdirat(w->basefd, "outside", 0777) < 0)
        return -1;
    w->rootfd = openat(w->basefd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(w->basefd, "outside/" WORLD_VICTIM, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (w->rootfd < 0 || fd < 0 || write(fd, "untouched", 9) != 9 || close(fd) < 0)
        return -1;
    w->fds = world_open_fds();
    *state = w;
    return 0;
}

static inline int world_teardown(void **state)
{
    struct world *w = *state;
    const char *victim = world_text_at(w->basefd, "outside/" WORLD_VICTIM);
    int rc = 0;

    if (world_open_fds() != w->fds)
        rc = fprintf(stderr, "a descriptor is still open\n");
    if (!w->leftovers_wanted && world_count_temporaries(w) != 0)
        rc = fprintf(stderr, "a temporary is left\n");
    if (!victim || strcmp(victim, "untouched") != 0 || world_count(w->basefd, "outside", "") != 1 ||
        world_count(w->basefd, ".", "") != 2)
        rc = fprintf(stderr, "something happened outside of the destination\n");
    close(w->rootfd);
    close(w->basefd);
    if (nftw(w->base, world_remove, 16, FTW_DEPTH | FTW_PHYS) != 0)
        rc = fprintf(stderr, "cannot remove %s\n", w->base);
    free(w);
    return rc ? -1 : 0;
}

/* Runs fn as a user who is not root in a child; the result is its exit status. Where the test
 * itself is no root, the child is whoever runs it. */
static inline int world_as_user(int (*fn)(struct world *w), struct world *w)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(99);
        _exit(fn(w));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* Tests of a table's rows; see rows.h. */
static inline size_t world_rows(struct CMUnitTest *tests, size_t at, const void *table, size_t n,
                                size_t size, CMUnitTestFunction fn)
{
    return rows_add_with(tests, at, table, n, size, fn, world_setup, world_teardown);
}

#define WORLD_TEST(why, fn)                                                                        \
    {                                                                                              \
        why, fn, world_setup, world_teardown, NULL                                                 \
    }

#endif
