/* A directory of this machine as a transport. In: files and directories that others may write to
 * and swap at any moment: opened below the root one component at a time, no link followed, nothing
 * but regular files read. Out: bytes to the queue, and a record of what was read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/shell.h"
#include "transport/transport.h"

#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define MAX_RECORD (SBX_MAX_PATH + 128u) /* the path, a size and two times */

struct local {
    char *dir; /* owned */
};

/* The directory that was reached last, with those on the way to it: files come in path order, so
 * that few have to be opened for the next one. */
struct way {
    int root;                   /* owned */
    int fds[SBX_MAX_DEPTH];     /* owned */
    size_t ends[SBX_MAX_DEPTH]; /* where in path the component of fds[i] ends */
    size_t depth;
    char path[SBX_MAX_PATH + 1];
};

/* A fetch under way. */
struct fetch {
    const struct sbx_call *call;
    const struct sbx_queue *queue;
    struct way way;
    struct sbx_buf chunk;  /* owned */
    struct sbx_buf record; /* owned */
};

static void way_cut(struct way *way, size_t depth)
{
    while (way->depth > depth)
        sbx_fd_close(&way->fds[--way->depth]);
}

static int way_at(const struct way *way)
{
    return way->depth > 0 ? way->fds[way->depth - 1] : way->root;
}

/* How many of the open directories lead to dir[0..n). */
static size_t way_common(const struct way *way, const char *dir, size_t n)
{
    size_t depth = 0;

    while (depth < way->depth) {
        size_t end = way->ends[depth];

        if (end > n || memcmp(way->path, dir, end) != 0 || (end < n && dir[end] != '/'))
            break;
        depth++;
    }
    return depth;
}

/* Goes to the directory dir[0..n), "" being the root. Returns 0 or an errno value. */
static int way_go(struct way *way, const char *dir, size_t n)
{
    size_t at;

    way_cut(way, way_common(way, dir, n));
    at = way->depth > 0 ? way->ends[way->depth - 1] + 1 : 0;
    while (at < n) {
        const char *slash = memchr(dir + at, '/', n - at);
        size_t end = slash ? (size_t)(slash - dir) : n;
        int fd;

        if (way->depth == SBX_MAX_DEPTH || end > SBX_MAX_PATH)
            return ENAMETOOLONG;
        memcpy(way->path, dir, end);
        way->path[end] = '\0';
        fd = openat(way_at(way), way->path + at, OPEN_FLAGS | O_DIRECTORY);
        if (fd < 0)
            return errno;
        way->fds[way->depth] = fd;
        way->ends[way->depth++] = end;
        at = end + 1;
    }
    return 0;
}

static enum sbx_fetch_result result_of(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
        return SBX_FETCH_VANISHED;
    case ELOOP: /* O_NOFOLLOW met a link */
    case ENXIO: /* a socket */
        return SBX_FETCH_NOT_REGULAR;
    case EACCES:
    case EPERM:
        return SBX_FETCH_DENIED;
    default:
        return SBX_FETCH_SERVER;
    }
}

static enum sbx_fetch_result failed(struct sbx_error *why, int os_errno, const char *call)
{
    (void)sbx_err_host(why, os_errno, call, "source file");
    return result_of(os_errno);
}

/* A path is a name only once it is split: refuses what would lead elsewhere, though preflight has
 * done so before. */
static bool name_ok(const char *name, size_t n)
{
    return n > 0 && n <= SBX_MAX_COMPONENT && !memchr(name, '\0', n) &&
           !(n == 1 && name[0] == '.') && !(n == 2 && name[0] == '.' && name[1] == '.');
}

static bool path_ok(const char *path, size_t n)
{
    size_t at = 0;

    while (true) {
        const char *slash = memchr(path + at, '/', n - at);
        size_t end = slash ? (size_t)(slash - path) : n;

        if (!name_ok(path + at, end - at))
            return false;
        if (!slash)
            return n <= SBX_MAX_PATH;
        at = end + 1;
    }
}

static enum sbx_status add_record(struct sbx_buf *out, const struct stat *st,
                                  const struct sbx_wanted *file, struct sbx_error *err)
{
    enum sbx_status status;

    sbx_buf_clear(out);
    status = sbx_buf_printf(out, err, "%" PRId64 " %" PRId64 ".%09ld %" PRId64 ".%09ld ",
                            (int64_t)st->st_size, (int64_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                            (int64_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
    return status ? status : sbx_buf_add(out, file->path, file->path_len, err);
}

/* What stands there after the last byte: the same file, then its record tells if it changed. */
static enum sbx_fetch_result close_up(struct fetch *f, const struct sbx_wanted *file, int fd,
                                      const char *name, struct sbx_error *why)
{
    struct stat open_one, named;

    if (fstat(fd, &open_one) < 0)
        return failed(why, errno, "fstat");
    if (fstatat(way_at(&f->way), name, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(why, errno, "fstatat");
    if (!S_ISREG(named.st_mode)) {
        (void)sbx_err_set(why, SBX_E_REMOTE, 0, "no regular file any more");
        return SBX_FETCH_NOT_REGULAR;
    }
    if (named.st_dev != open_one.st_dev || named.st_ino != open_one.st_ino) {
        (void)sbx_err_set(why, SBX_E_REMOTE, 0, "replaced while it was read");
        return SBX_FETCH_CHANGED;
    }
    return add_record(&f->record, &open_one, file, why) ? SBX_FETCH_SERVER : SBX_FETCH_OK;
}

/* Reads the listed size and no more, or what there is: the record tells which. *ret_refused: the
 * queue wants no more of this file. */
static enum sbx_fetch_result copy(struct fetch *f, const struct sbx_wanted *file, int fd,
                                  bool *ret_refused, struct sbx_error *why)
{
    uint64_t left = file->size;

    while (left > 0) {
        size_t want = left < SBX_IO_CHUNK ? (size_t)left : SBX_IO_CHUNK;
        ssize_t n;

        if (sbx_transport_check(f->call, why))
            return SBX_FETCH_CANCELLED;
        n = read(fd, f->chunk.data, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(why, errno, "read");
        if (n == 0)
            break;
        left -= (uint64_t)n;
        if (f->queue->write(f->queue->ctx, file, f->chunk.data, (size_t)n, why)) {
            *ret_refused = true;
            return SBX_FETCH_SERVER;
        }
    }
    return SBX_FETCH_OK;
}

static enum sbx_fetch_result open_file(struct fetch *f, const struct sbx_wanted *file,
                                       char name[SBX_MAX_COMPONENT + 1], int *ret_fd,
                                       struct sbx_error *why)
{
    SBX_FD_AUTO int fd = -1;
    const char *slash;
    size_t dir, at;
    struct stat st;
    int os_errno;

    if (!path_ok(file->path, file->path_len)) {
        (void)sbx_err_set(why, SBX_E_USAGE, 0, "no relative path");
        return SBX_FETCH_SERVER;
    }
    slash = memrchr(file->path, '/', file->path_len);
    dir = slash ? (size_t)(slash - file->path) : 0;
    at = slash ? dir + 1 : 0;
    memcpy(name, file->path + at, file->path_len - at);
    name[file->path_len - at] = '\0';
    os_errno = way_go(&f->way, file->path, dir);
    if (os_errno)
        return failed(why, os_errno, "openat");
    fd = openat(way_at(&f->way), name, OPEN_FLAGS);
    if (fd < 0)
        return failed(why, errno, "openat");
    if (fstat(fd, &st) < 0)
        return failed(why, errno, "fstat");
    if (!S_ISREG(st.st_mode)) {
        (void)sbx_err_set(why, SBX_E_REMOTE, 0, "no regular file any more");
        return SBX_FETCH_NOT_REGULAR;
    }
    if (st.st_size > (off_t)SBX_IO_CHUNK)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    *ret_fd = sbx_fd_take(&fd);
    return SBX_FETCH_OK;
}

static void fetch_file(struct fetch *f, const struct sbx_wanted *file)
{
    SBX_FD_AUTO int fd = -1;
    char name[SBX_MAX_COMPONENT + 1];
    struct sbx_error why = {0};
    bool refused = false;
    enum sbx_fetch_result result = open_file(f, file, name, &fd, &why);

    if (result == SBX_FETCH_OK) {
        if (f->queue->begin(f->queue->ctx, file, &why))
            refused = true;
        else
            result = copy(f, file, fd, &refused, &why);
    }
    if (result == SBX_FETCH_OK && !refused)
        result = close_up(f, file, fd, name, &why);
    if (result == SBX_FETCH_OK && !refused)
        f->queue->end(f->queue->ctx, file, result, f->record.data, f->record.len, NULL);
    else
        f->queue->end(f->queue->ctx, file, result, NULL, 0, &why);
}

static enum sbx_status open_root(const char *dir, int *ret_fd, struct sbx_error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return sbx_err_set(err, errno == ENOENT ? SBX_E_GONE : SBX_E_UNREACHABLE, errno,
                           "open directory '%s'", SBX_QUOTE(dir));
    *ret_fd = fd;
    return SBX_OK;
}

static enum sbx_status fetch_all(struct fetch *f, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_reserve(&f->chunk, SBX_IO_CHUNK, err);

    while (!st) {
        const struct sbx_wanted *file = NULL;
        enum sbx_next next;

        st = sbx_transport_next(f->call, f->queue, true, &next, &file, err);
        if (st || next == SBX_NEXT_NONE)
            break;
        fetch_file(f, file);
    }
    return st;
}

static enum sbx_status local_fetch(void *self, const struct sbx_call *call,
                                   const struct sbx_queue *queue, struct sbx_sink diag,
                                   struct sbx_error *err)
{
    const struct local *local = self;
    struct fetch f = {.call = call,
                      .queue = queue,
                      .way = {.root = -1},
                      .chunk = SBX_BUF_INIT(SBX_IO_CHUNK),
                      .record = SBX_BUF_INIT(MAX_RECORD)};
    enum sbx_status st = open_root(local->dir, &f.way.root, err);

    (void)diag;
    if (!st)
        st = fetch_all(&f, err);
    way_cut(&f.way, 0);
    sbx_fd_close(&f.way.root);
    sbx_buf_done(&f.chunk);
    sbx_buf_done(&f.record);
    return st;
}

/* A shell for each script: it costs a millisecond, and a fetch may be under way meanwhile. */
static enum sbx_status local_run(void *self, const struct sbx_call *call, const char *script,
                                 size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                                 struct sbx_exit *ret_exit, struct sbx_error *err)
{
    static const char *const argv[] = {"sh", NULL};
    struct sbx_shell shell = SBX_SHELL_INIT;
    enum sbx_status st;

    (void)self;
    shell.argv = argv;
    shell.starts_left = 1;
    st = sbx_shell_run(&shell, call, script, script_len, 0, out, diag, ret_exit, err);
    sbx_shell_end(&shell);
    return st;
}

static void local_destroy(void *self)
{
    struct local *local = self;

    free(local->dir);
    free(local);
}

/* "local:" and the directory with its links resolved; as an absolute path if it does not exist. */
static enum sbx_status make_identity(const char *dir, struct sbx_buf *out, struct sbx_error *err)
{
    char real[PATH_MAX], here[PATH_MAX];

    if (realpath(dir, real))
        return sbx_buf_printf(out, err, "local:%s", real);
    if (dir[0] == '/' || !getcwd(here, sizeof(here)))
        return sbx_buf_printf(out, err, "local:%s", dir);
    return sbx_buf_printf(out, err, "local:%s/%s", here, dir);
}

enum sbx_status sbx_transport_local_new(const char *dir, struct sbx_transport **ret,
                                        struct sbx_error *err)
{
    static const struct sbx_transport_ops ops = {
        .version = SBX_TRANSPORT_OPS_VERSION,
        .run = local_run,
        .fetch = local_fetch,
        .destroy = local_destroy,
    };
    SBX_BUF_AUTO struct sbx_buf identity = SBX_BUF_INIT(SBX_MIB);
    struct sbx_transport *transport = NULL;
    struct local *local;
    enum sbx_status st;

    if (!dir[0])
        return sbx_err_set(err, SBX_E_USAGE, 0, "the source directory has an empty name");
    local = calloc(1, sizeof(*local));
    if (!local)
        return sbx_err_nomem(err);
    local->dir = strdup(dir);
    st = local->dir ? make_identity(dir, &identity, err) : sbx_err_nomem(err);
    if (st) {
        local_destroy(local);
        return st;
    }
    st = sbx_transport_new(&ops, local, dir, identity.data, &transport, err);
    if (st)
        return st;
    transport->local_dir = local->dir;
    *ret = transport;
    return SBX_OK;
}
