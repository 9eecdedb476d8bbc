/* What the tests of transports share: a directory of their own, buffers that collect, and a queue
 * that remembers. */
#ifndef TESTS_UNIT_TRANSPORT_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "sbx/transport.h"
#include "tests/support/rows.h"
#include "transport/transport.h"

#define MAX_FILES 64

/* A wanted file and what became of it. */
struct file {
    struct sbx_wanted wanted; /* first */
    char path[SBX_MAX_PATH + 1];
    struct sbx_buf content;
    struct sbx_buf record;
    bool has_record;
    unsigned begun, ended;
    size_t wasted; /* bytes that came before it began */
    enum sbx_fetch_result result;
    char why[512];
    bool refuse; /* begin, or a write once refuse_at bytes are there */
    size_t refuse_at;
};

struct fixture {
    const void *row;
    char dir[64];
    unsigned fds; /* open before the test */
    int cancel_fd;
    struct sbx_buf out, diag;
    struct sbx_error err;
    struct file files[MAX_FILES];
    size_t n, next;
    unsigned waits; /* how often `next` says "wait" before each file */
    unsigned waited;
    void (*on_write)(struct fixture *f, struct file *file); /* called before a write is taken */
    struct sbx_transport *transport;
};

static inline unsigned count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (!f)
        return -1;
    f->row = *state;
    f->out = SBX_BUF_INIT(64 * SBX_MIB);
    f->diag = SBX_BUF_INIT(64 * SBX_MIB);
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/sbx-transport-XXXXXX");
    if (!mkdtemp(f->dir) || chmod(f->dir, 0755) < 0)
        return -1;
    f->fds = count_fds();
    f->cancel_fd = eventfd(0, EFD_CLOEXEC);
    *state = f;
    return f->cancel_fd < 0 ? -1 : 0;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Fails the test if a descriptor or a child is left. */
static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    int failed = 0;

    sbx_transport_free(f->transport);
    (void)close(f->cancel_fd);
    for (size_t i = 0; i < f->n; i++) {
        sbx_buf_done(&f->files[i].content);
        sbx_buf_done(&f->files[i].record);
    }
    sbx_buf_done(&f->out);
    sbx_buf_done(&f->diag);
    if (count_fds() != f->fds) {
        print_error("descriptors are left open\n");
        failed = -1;
    }
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        print_error("a child is left\n");
        failed = -1;
    }
    (void)nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return failed;
}

/* Adds a test with a fixture for each row of a table whose first member is its sentence. */
static inline size_t add_rows(struct CMUnitTest *tests, size_t at, const void *table, size_t n,
                              size_t size, CMUnitTestFunction fn)
{
    return rows_add_with(tests, at, table, n, size, fn, fixture_setup, fixture_teardown);
}

static inline size_t add_test(struct CMUnitTest *tests, size_t at, const char *name,
                              CMUnitTestFunction fn)
{
    tests[at++] = (struct CMUnitTest){.name = name,
                                      .test_func = fn,
                                      .setup_func = fixture_setup,
                                      .teardown_func = fixture_teardown};
    return at;
}

static inline int run_all(const char *group, const struct CMUnitTest *tests, size_t n)
{
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

static inline enum sbx_status collect(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    return sbx_buf_add(ctx, bytes, n, err);
}

static inline struct sbx_sink to_buf(struct sbx_buf *buf)
{
    return (struct sbx_sink){collect, buf};
}

static inline struct sbx_call call_within(const struct fixture *f, double seconds)
{
    return (struct sbx_call){.version = SBX_CALL_VERSION,
                             .deadline_ns = sbx_clock_after(sbx_clock_now(), seconds),
                             .cancel_fd = f->cancel_fd,
                             .jobs = 1,
                             .idle_ns = 20ull * SBX_NS_PER_S};
}

static inline const char *path_in(const struct fixture *f, const char *name, char *out, size_t cap)
{
    assert_true((size_t)snprintf(out, cap, "%s/%s", f->dir, name) < cap);
    return out;
}

static inline void make_dir(const struct fixture *f, const char *name)
{
    char path[8192];

    assert_int_equal(mkdir(path_in(f, name, path, sizeof(path)), 0755), 0);
}

static inline void make_file(const struct fixture *f, const char *name, const void *bytes, size_t n)
{
    char path[8192];
    FILE *out = fopen(path_in(f, name, path, sizeof(path)), "we");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

/* An executable shell script. */
static inline void make_script(const struct fixture *f, const char *name, const char *text)
{
    char path[8192];

    make_file(f, name, text, strlen(text));
    assert_int_equal(chmod(path_in(f, name, path, sizeof(path)), 0755), 0);
}

static inline struct file *want(struct fixture *f, const char *path, size_t size)
{
    struct file *file = &f->files[f->n++];

    assert_true(f->n <= MAX_FILES);
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    file->wanted = (struct sbx_wanted){file->path, strlen(path), size};
    file->content = SBX_BUF_INIT(64 * SBX_MIB);
    file->record = SBX_BUF_INIT(SBX_MIB);
    return file;
}

/* All files are wanted once more, as if nothing had become of them. */
static inline void want_again(struct fixture *f)
{
    f->next = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct file *file = &f->files[i];

        file->begun = file->ended = 0;
        file->has_record = false;
        file->why[0] = '\0';
        sbx_buf_clear(&file->content);
        sbx_buf_clear(&file->record);
    }
}

static inline struct file *file_of(const struct sbx_wanted *wanted)
{
    return (struct file *)(uintptr_t)wanted;
}

static inline enum sbx_next on_next(void *ctx, const struct sbx_wanted **ret)
{
    struct fixture *f = ctx;

    if (f->next == f->n)
        return SBX_NEXT_NONE;
    if (f->waited < f->waits) {
        f->waited++;
        return SBX_NEXT_WAIT;
    }
    f->waited = 0;
    *ret = &f->files[f->next++].wanted;
    return SBX_NEXT_FILE;
}

static inline enum sbx_status on_begin(void *ctx, const struct sbx_wanted *wanted,
                                       struct sbx_error *err)
{
    struct file *file = file_of(wanted);

    (void)ctx;
    assert_int_equal(file->ended, 0);
    file->begun++;
    sbx_buf_clear(&file->content);
    if (file->refuse && file->refuse_at == 0)
        return sbx_err_set(err, SBX_E_HOST, 0, "refused");
    return SBX_OK;
}

static inline enum sbx_status on_write(void *ctx, const struct sbx_wanted *wanted,
                                       const void *bytes, size_t n, struct sbx_error *err)
{
    struct fixture *f = ctx;
    struct file *file = file_of(wanted);

    assert_int_equal(file->ended, 0);
    if (file->begun == 0) {
        file->wasted += n;
        return sbx_err_set(err, SBX_E_CANCELLED, 0, "not begun");
    }
    if (f->on_write)
        f->on_write(f, file);
    if (file->refuse && file->content.len + n > file->refuse_at)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "refused");
    return sbx_buf_add(&file->content, bytes, n, err);
}

static inline void on_end(void *ctx, const struct sbx_wanted *wanted, enum sbx_fetch_result result,
                          const char *record, size_t n, const struct sbx_error *why)
{
    struct file *file = file_of(wanted);

    (void)ctx;
    assert_int_equal(file->ended, 0);
    file->ended++;
    file->result = result;
    file->has_record = record != NULL;
    if (record)
        assert_int_equal(sbx_buf_add(&file->record, record, n, NULL), SBX_OK);
    if (why)
        (void)snprintf(file->why, sizeof(file->why), "%s", why->msg);
}

static inline struct sbx_queue queue_of(struct fixture *f)
{
    return (struct sbx_queue){.ctx = f,
                              .ready_fd = -1,
                              .next = on_next,
                              .begin = on_begin,
                              .write = on_write,
                              .end = on_end};
}

static inline enum sbx_status fetch(struct fixture *f, const struct sbx_call *call)
{
    struct sbx_queue queue = queue_of(f);

    return f->transport->ops.fetch(f->transport->self, call, &queue, to_buf(&f->diag), &f->err);
}

static inline void assert_bytes(const struct sbx_buf *got, const void *bytes, size_t n)
{
    assert_int_equal(got->len, n);
    if (n > 0)
        assert_memory_equal(got->data, bytes, n);
}

static inline void assert_text(const struct sbx_buf *got, const char *text)
{
    assert_bytes(got, text, strlen(text));
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not hold '%s'", text, part);
}

/* Whether a process is there, dead ones that nobody has reaped not counted. */
static inline bool is_alive(long pid)
{
    char path[64], line[256] = "";
    const char *state;
    FILE *in;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    in = fopen(path, "re");
    if (!in)
        return false;
    state = fgets(line, sizeof(line), in) ? strrchr(line, ')') : NULL;
    (void)fclose(in);
    return state && state[1] && state[2] != 'Z' && state[2] != 'X';
}

/* Each number in text is a process that must end within a second. */
static inline void assert_all_end(const char *text)
{
    unsigned seen = 0;

    while (*text) {
        char *end;
        long pid = strtol(text, &end, 10); /* banned-ok: our own script's output */

        if (end == text) {
            text++;
            continue;
        }
        text = end;
        seen++;
        for (int i = 0; i < 100 && is_alive(pid); i++)
            (void)usleep(10000);
        if (is_alive(pid))
            fail_msg("process %ld is left", pid);
    }
    assert_true(seen > 0);
}

static inline double seconds_since(uint64_t began_ns)
{
    return (double)(sbx_clock_now() - began_ns) / 1e9;
}

#endif
