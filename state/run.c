/* In comes a record that an earlier pass has written and a crash may have cut. It is ours, so its
 * tokens are believed; its paths are not, since they pass preflight and the walk like any others.
 * Out goes the removal of regular files that bear one of those tokens, and of nothing else. */
#include "state/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "fsutil/file.h"
#include "fsutil/sweep.h"
#include "fsutil/walk.h"
#include "preflight/path.h"
#include "state/lines.h"

#define RUN_FILE "run"
#define RUN_SCHEMA "sbx-sync/run/1"

/* A directory that may hold temporaries of the token; without a path, the state directory. */
struct item {
    const char *path, *token; /* in the arena */
    size_t n;
};

struct record {
    struct sbx_arena arena;
    struct item *items; /* owned */
    size_t n, cap;
    const char *token; /* of the part that is being read */
    uint64_t whole;    /* bytes of whole lines */
};

#define RECORD_INIT ((struct record){.arena = SBX_ARENA_INIT(2 * SBX_MAX_RUN)})
#define RECORD_AUTO SBX_CLEANUP(record_done)

static void record_done(struct record *r)
{
    sbx_arena_done(&r->arena);
    free(r->items);
    r->items = NULL;
}

static enum sbx_status add_item(struct record *r, const char *path, size_t n, struct sbx_error *err)
{
    void *items = r->items;
    enum sbx_status st =
        sbx_array_grow(&items, &r->cap, r->n + 1, SBX_MAX_RUN_LINES, sizeof(struct item), err);

    r->items = items;
    if (!st && path)
        st = sbx_arena_copy(&r->arena, path, n, &path, err);
    if (st)
        return st;
    r->items[r->n++] = (struct item){.path = path, .token = r->token, .n = n};
    return SBX_OK;
}

static bool is_token(const char *text, size_t n)
{
    return n == SBX_TOKEN_CHARS && strspn(text, "0123456789abcdef") == n;
}

static enum sbx_status damaged(struct sbx_error *err)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "the run record is damaged");
}

static enum sbx_status add_line(struct record *r, const char *text, size_t n, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = NULL;
    const char *value;
    size_t len;
    enum sbx_status st = sbx_json_parse(text, n, &json, err);

    if (st)
        return st;
    if (sbx_json_get_str(json, "schema", &value, &len)) {
        if (strcmp(value, RUN_SCHEMA) != 0 || !sbx_json_get_str(json, "token", &value, &len) ||
            !is_token(value, len))
            return damaged(err);
        st = sbx_arena_copy(&r->arena, value, len, &r->token, err);
        return st ? st : add_item(r, NULL, 0, err);
    }
    if (!r->token || !sbx_json_get_str(json, "dir", &value, &len))
        return damaged(err);
    if (len > 0 && sbx_pre_path(value, len, SBX_NAMES_POSIX))
        return damaged(err);
    return add_item(r, value, len, err);
}

/* SBX_E_REMOTE: damaged. */
static enum sbx_status load(struct record *r, int fd, struct sbx_error *err)
{
    SBX_LINES_AUTO struct sbx_lines lines = SBX_LINES_INIT;
    enum sbx_status st = SBX_OK;
    struct stat facts;

    if (fstat(fd, &facts) < 0)
        return sbx_err_host(err, errno, "fstat", "run record");
    if ((uint64_t)facts.st_size > SBX_MAX_RUN)
        return damaged(err);
    sbx_lines_start(&lines, fd, 0, (uint64_t)facts.st_size);
    while (!st) {
        const char *text = NULL;
        size_t n = 0;

        st = sbx_lines_next(&lines, &text, &n, err);
        if (st || n == 0 || text[n - 1] != '\n')
            break;
        st = add_line(r, text, n, err);
        r->whole += n;
    }
    return st;
}

/* By path, so that the walk keeps what leads there; the state directory first. */
static int compare(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = 0;

    if (!x->path || !y->path)
        c = (x->path ? 1 : 0) - (y->path ? 1 : 0);
    else if (n > 0)
        c = memcmp(x->path, y->path, n);
    if (c == 0)
        c = (x->n > y->n) - (x->n < y->n);
    return c ? c : strcmp(x->token, y->token);
}

static enum sbx_status sweep_item(const struct item *item, int statedir, struct sbx_fs_walk *walk,
                                  size_t *failed, struct sbx_error *err)
{
    struct sbx_fs_place place = {.dirfd = statedir};
    size_t removed = 0;
    enum sbx_status st = SBX_OK;

    if (item->path)
        st = sbx_fs_walk_to(walk, item->path, item->n, SBX_FS_LOOK, NULL, NULL, &place, err);
    /* A directory that is gone, or is a link or file by now, holds nothing of ours to remove. */
    if (!st && place.dirfd >= 0)
        st = sbx_fs_sweep(place.dirfd, item->token, &removed, failed, err);
    if (st == SBX_E_HOST) {
        ++*failed;
        return SBX_OK;
    }
    return st;
}

static enum sbx_status sweep_record(struct record *r, int statedir, int rootfd, size_t *failed,
                                    struct sbx_error *err)
{
    struct sbx_fs_walk *walk = NULL;
    enum sbx_status st;

    if (r->n == 0)
        return SBX_OK;
    qsort(r->items, r->n, sizeof(struct item), compare);
    st = sbx_fs_walk_new(rootfd, &walk, err);
    for (size_t i = 0; i < r->n && !st; i++)
        if (i == 0 || compare(&r->items[i - 1], &r->items[i]) != 0)
            st = sweep_item(&r->items[i], statedir, walk, failed, err);
    sbx_fs_walk_free(walk);
    return st;
}

enum sbx_status sbx_run_sweep(int statedir, int rootfd, size_t *ret_failed, struct sbx_error *err)
{
    RECORD_AUTO struct record record = RECORD_INIT;
    SBX_FD_AUTO int fd = -1;
    size_t failed = 0;
    enum sbx_status st = sbx_fs_own_read(statedir, RUN_FILE, &fd, err);

    if (!st && fd >= 0)
        st = load(&record, fd, err);
    if (!st)
        st = sweep_record(&record, statedir, rootfd, &failed, err);
    if (st == SBX_E_REMOTE) {
        failed = 1;
        st = SBX_OK;
    }
    /* Removed rather than emptied: a copy of the destination by cp -al has links of this file. */
    if (!st && failed == 0 && fd >= 0)
        st = sbx_fs_remove(statedir, RUN_FILE, err);
    if (st)
        return sbx_err_wrap(err, st, "sweep leftovers");
    *ret_failed = failed;
    return SBX_OK;
}

/* The record for reading and writing. One with further links (cp -al of a destination) is given up
 * rather than written to: what the copy holds is not ours to change. */
static enum sbx_status open_record(int statedir, int *ret_fd, struct sbx_error *err)
{
    SBX_FD_AUTO int fd = -1;
    enum sbx_status st = sbx_fs_own_file(statedir, RUN_FILE, 0600, &fd, err);
    struct stat facts;

    if (st)
        return st;
    if (fstat(fd, &facts) < 0)
        return sbx_err_host(err, errno, "fstat", "run record");
    if (facts.st_nlink > 1) {
        sbx_fd_close(&fd);
        st = sbx_fs_remove(statedir, RUN_FILE, err);
        if (!st)
            st = sbx_fs_own_file(statedir, RUN_FILE, 0600, &fd, err);
        if (st)
            return st;
    }
    *ret_fd = sbx_fd_take(&fd);
    return SBX_OK;
}

/* Appends {"key":value, "more":value}. A line that was not written whole is taken off again, and if
 * that fails too, the record is given up: a torn line may only ever be the last. */
static enum sbx_status append(struct sbx_run *run, struct sbx_json *json, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf line = SBX_BUF_INIT(SBX_MAX_MANIFEST_LINE);
    enum sbx_status st = sbx_json_write(json, &line, err);

    if (!st)
        st = sbx_buf_add(&line, "\n", 1, err);
    if (st)
        return st;
    if (run->end + line.len > SBX_MAX_RUN)
        return sbx_err_host(err, EFBIG, "write", "run record");
    st = sbx_fs_write_all(run->fd, line.data, line.len, err);
    if (st) {
        if (sbx_fs_cut(run->fd, run->end, NULL))
            sbx_fd_close(&run->fd);
        return sbx_err_wrap(err, st, "run record");
    }
    run->end += line.len;
    return SBX_OK;
}

static enum sbx_status begin(struct sbx_run *run, struct sbx_error *err)
{
    RECORD_AUTO struct record record = RECORD_INIT;
    SBX_JSON_AUTO struct sbx_json *json = sbx_json_object();
    enum sbx_status st = load(&record, run->fd, err);

    if (st == SBX_E_REMOTE)
        record.whole = 0;
    else if (st)
        return st;
    st = sbx_fs_cut(run->fd, record.whole, err);
    if (st)
        return st;
    run->kept = run->end = record.whole;
    sbx_random_hex(run->token, SBX_TOKEN_BYTES);
    sbx_json_add_str(json, "schema", RUN_SCHEMA);
    sbx_json_add_str(json, "token", run->token);
    return append(run, json, err);
}

enum sbx_status sbx_run_begin(struct sbx_run *run, int statedir, struct sbx_error *err)
{
    struct sbx_run begun = SBX_RUN_INIT;
    enum sbx_status st = open_record(statedir, &begun.fd, err);

    if (!st)
        st = begin(&begun, err);
    if (st) {
        sbx_run_done(&begun);
        return sbx_err_wrap(err, st, "begin the run record");
    }
    *run = begun;
    return SBX_OK;
}

enum sbx_status sbx_run_note(struct sbx_run *run, const char *path, size_t n, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = NULL;
    enum sbx_status st;

    if (run->fd < 0)
        return sbx_err_host(err, EBADF, "write", "run record that has failed before");
    if (run->noted && run->last.len == n && (n == 0 || memcmp(run->last.data, path, n) == 0))
        return SBX_OK;
    if (n > 0 && sbx_pre_path(path, n, SBX_NAMES_POSIX))
        return sbx_err_set(err, SBX_E_USAGE, 0, "a directory that preflight refuses");
    json = sbx_json_object();
    sbx_json_add_bytes(json, "dir", path, n);
    run->noted = false;
    sbx_buf_clear(&run->last);
    st = append(run, json, err);
    if (!st)
        st = sbx_buf_add(&run->last, path, n, err);
    run->noted = !st;
    return st;
}

enum sbx_status sbx_run_clear(struct sbx_run *run, struct sbx_error *err)
{
    enum sbx_status st;

    if (run->fd < 0)
        return sbx_err_host(err, EBADF, "ftruncate", "run record that has failed before");
    st = sbx_fs_cut(run->fd, run->kept, err);
    sbx_run_done(run);
    return st;
}

void sbx_run_done(struct sbx_run *run)
{
    sbx_fd_close(&run->fd);
    sbx_buf_done(&run->last);
    run->noted = false;
}
