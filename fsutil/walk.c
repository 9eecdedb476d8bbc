/* In come paths that preflight has accepted, and what other users may have put into the tree
 * meanwhile. No path string is ever resolved: each component is opened from the directory that
 * holds it and through no link. Out go descriptors, and reasons that refuse a file. */
#include "fsutil/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"
#include "fsutil/dirindex.h"

struct level {
    int fd; /* owned, but the root's; -1: forgotten by sbx_fs_walk_again() */
    uint64_t dev, ino;
    struct sbx_fs_index *index; /* owned; NULL until it is needed */
    uint64_t checked_at; /* the reading of the level above in which `name` was the only spelling */
    size_t name_len;
    char name[SBX_MAX_COMPONENT + 1];
};

/* levels[0] is the root. levels[0..depth] are open, levels[0..kept] have a name. */
struct sbx_fs_walk {
    size_t depth;
    size_t kept;
    bool arrived;
    struct level levels[SBX_MAX_DEPTH + 1];
};

/* One component on the way. */
struct step {
    const char *path;
    size_t start, n; /* path[start..start + n) */
    enum sbx_fs_go go;
    sbx_fs_making_fn *making;
    void *making_ctx;
};

enum sbx_status sbx_fs_walk_new(int rootfd, struct sbx_fs_walk **ret, struct sbx_error *err)
{
    struct sbx_fs_walk *walk;
    struct stat st;

    if (fstat(rootfd, &st) < 0)
        return sbx_err_host(err, errno, "fstat", "destination");
    walk = calloc(1, sizeof(*walk));
    if (!walk)
        return sbx_err_nomem(err);
    walk->levels[0].fd = rootfd;
    walk->levels[0].dev = st.st_dev;
    walk->levels[0].ino = st.st_ino;
    *ret = walk;
    return SBX_OK;
}

static void forget_index(struct level *level)
{
    sbx_fs_index_free(level->index);
    level->index = NULL;
}

/* Leaves levels[0..depth] only. */
static void cut(struct sbx_fs_walk *walk, size_t depth)
{
    for (size_t i = depth + 1; i <= walk->kept; i++) {
        sbx_fd_close(&walk->levels[i].fd);
        forget_index(&walk->levels[i]);
    }
    if (walk->kept > depth)
        walk->kept = depth;
    if (walk->depth > depth)
        walk->depth = depth;
}

void sbx_fs_walk_free(struct sbx_fs_walk *walk)
{
    if (!walk)
        return;
    cut(walk, 0);
    forget_index(&walk->levels[0]);
    free(walk);
}

void sbx_fs_walk_again(struct sbx_fs_walk *walk)
{
    for (size_t i = 1; i <= walk->kept; i++)
        sbx_fd_close(&walk->levels[i].fd);
    walk->depth = 0;
    walk->arrived = false;
}

static enum sbx_status fresh_index(struct level *level, struct sbx_error *err)
{
    struct sbx_fs_index *index = NULL;
    enum sbx_status st;

    if (level->index && sbx_clock_now() - sbx_fs_index_read_at(level->index) <= SBX_INDEX_AGE_NS)
        return SBX_OK;
    st = sbx_fs_index_new(level->fd, &index, err);
    if (st)
        return st;
    sbx_fs_index_free(level->index);
    level->index = index;
    return SBX_OK;
}

/* Names of the host may be longer than ours can be (FUSE); what is shown of them is cut. */
static void copy_name(char ret[SBX_MAX_COMPONENT + 1], const char *name, size_t n)
{
    if (n > SBX_MAX_COMPONENT)
        n = SBX_MAX_COMPONENT;
    memcpy(ret, name, n);
    ret[n] = '\0';
}

static enum sbx_status check_alias(struct level *above, const char *name, size_t n,
                                   enum sbx_reason *ret_reason, char ret_with[],
                                   struct sbx_error *err)
{
    const char *other = NULL;
    enum sbx_status st = fresh_index(above, err);

    if (!st)
        st = sbx_fs_index_other(above->index, name, n, &other, err);
    if (st || !other)
        return st;
    *ret_reason = SBX_REFUSE_ALIAS_LOCAL;
    copy_name(ret_with, other, strlen(other));
    return SBX_OK;
}

/* Checks a component once for each reading of the directory that holds it. */
static enum sbx_status check_level(struct level *level, struct sbx_fs_place *ret,
                                   struct sbx_error *err)
{
    struct level *above = level - 1;
    enum sbx_status st = fresh_index(above, err);

    if (st || level->checked_at == sbx_fs_index_read_at(above->index))
        return st;
    st = check_alias(above, level->name, level->name_len, &ret->reason, ret->with, err);
    if (!st && !ret->reason)
        level->checked_at = sbx_fs_index_read_at(above->index);
    return st;
}

bool sbx_fs_is_name_error(int os_errno)
{
    return os_errno == ENAMETOOLONG || os_errno == EILSEQ || os_errno == EINVAL;
}

/* Something stands there that cannot be entered: a link or a file? */
static enum sbx_status tell_obstacle(int dirfd, const char *name, enum sbx_reason *ret_reason,
                                     struct sbx_error *err)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            return SBX_OK;
        return sbx_err_host(err, errno, "fstatat", "'%s'", SBX_QUOTE(name));
    }
    /* A directory now: somebody is exchanging it with the link that it was a moment ago. */
    *ret_reason =
        S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode) ? SBX_REFUSE_LINKED : SBX_REFUSE_TYPE_CONFLICT;
    return SBX_OK;
}

/* Opens the component if it is there: *ret_fd stays -1 if it is not, or if there is a reason. */
static enum sbx_status open_component(int dirfd, const char *name, int *ret_fd,
                                      enum sbx_reason *ret_reason, struct sbx_error *err)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0) {
        *ret_fd = fd;
        return SBX_OK;
    }
    if (errno == ENOENT)
        return SBX_OK;
    if (errno == ENOTDIR || errno == ELOOP)
        return tell_obstacle(dirfd, name, ret_reason, err);
    if (sbx_fs_is_name_error(errno)) {
        *ret_reason = SBX_REFUSE_HOST_NAME;
        return SBX_OK;
    }
    return sbx_err_host(err, errno, "openat", "directory '%s'", SBX_QUOTE(name));
}

static enum sbx_status make_component(struct level *above, const struct level *level,
                                      const struct step *step, enum sbx_reason *ret_reason,
                                      struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    if (step->making)
        st = step->making(step->making_ctx, step->path, step->start + step->n, err);
    if (st)
        return st;
    if (mkdirat(above->fd, level->name, 0777) < 0 && errno != EEXIST) {
        if (!sbx_fs_is_name_error(errno))
            return sbx_err_host(err, errno, "mkdirat", "'%s'", SBX_QUOTE(level->name));
        *ret_reason = SBX_REFUSE_HOST_NAME;
        return SBX_OK;
    }
    if (!above->index)
        return SBX_OK;
    return sbx_fs_index_add(above->index, level->name, level->name_len, err);
}

static enum sbx_status open_or_make(struct level *above, const struct level *level,
                                    const struct step *step, int *ret_fd,
                                    enum sbx_reason *ret_reason, struct sbx_error *err)
{
    enum sbx_status st;

    for (unsigned i = 0; i < SBX_WALK_TRIES; i++) {
        st = open_component(above->fd, level->name, ret_fd, ret_reason, err);
        if (st || *ret_fd >= 0 || *ret_reason || step->go != SBX_FS_MAKE)
            return st;
        st = make_component(above, level, step, ret_reason, err);
        if (st || *ret_reason)
            return st;
    }
    st = open_component(above->fd, level->name, ret_fd, ret_reason, err);
    if (!st && *ret_fd < 0 && !*ret_reason)
        return sbx_err_host(err, ENOENT, "openat", "directory '%s'", SBX_QUOTE(level->name));
    return st;
}

/* Enters the component below levels[depth]; the walk is one deeper then, or has a reason, or the
 * directory is absent. */
static enum sbx_status enter(struct sbx_fs_walk *walk, const struct step *step,
                             struct sbx_fs_place *ret, struct sbx_error *err)
{
    struct level *above = &walk->levels[walk->depth], *level = above + 1;
    struct stat facts;
    enum sbx_status st = SBX_OK;
    int fd = -1;

    if (step->go != SBX_FS_LOOK)
        st = check_level(level, ret, err);
    if (!st && !ret->reason)
        st = open_or_make(above, level, step, &fd, &ret->reason, err);
    if (st || fd < 0)
        return st;
    if (fstat(fd, &facts) < 0) {
        st = sbx_err_host(err, errno, "fstat", "directory '%s'", SBX_QUOTE(level->name));
        sbx_fd_close(&fd);
        return st;
    }
    if (level->dev != facts.st_dev || level->ino != facts.st_ino)
        forget_index(level);
    level->fd = fd;
    level->dev = facts.st_dev;
    level->ino = facts.st_ino;
    walk->depth++;
    return SBX_OK;
}

/* Gives levels[at + 1] the name of the component, and keeps what it has if that is its name. */
static void name_level(struct sbx_fs_walk *walk, size_t at, const char *name, size_t n)
{
    struct level *level = &walk->levels[at + 1];

    if (at + 1 <= walk->kept && level->name_len == n && memcmp(level->name, name, n) == 0)
        return;
    cut(walk, at);
    memset(level, 0, sizeof(*level));
    level->fd = -1;
    level->name_len = n;
    copy_name(level->name, name, n);
    walk->kept = at + 1;
}

static enum sbx_status go_step(struct sbx_fs_walk *walk, size_t at, const struct step *step,
                               struct sbx_fs_place *ret, struct sbx_error *err)
{
    struct level *level = &walk->levels[at + 1];
    enum sbx_status st = SBX_OK;

    name_level(walk, at, step->path + step->start, step->n);
    if (at == walk->depth)
        st = enter(walk, step, ret, err);
    else if (step->go != SBX_FS_LOOK)
        st = check_level(level, ret, err);
    if (!st && ret->reason) {
        if (!ret->with[0])
            copy_name(ret->with, level->name, level->name_len);
    }
    return st;
}

static size_t component_len(const char *path, size_t n)
{
    const char *slash = memchr(path, '/', n);

    return slash ? (size_t)(slash - path) : n;
}

static size_t count_components(const char *path, size_t n)
{
    size_t count = 1;

    for (size_t i = 0; i < n; i++)
        count += path[i] == '/';
    return count;
}

enum sbx_status sbx_fs_walk_to(struct sbx_fs_walk *walk, const char *path, size_t n,
                               enum sbx_fs_go go, sbx_fs_making_fn *making, void *making_ctx,
                               struct sbx_fs_place *ret, struct sbx_error *err)
{
    struct step step = {.path = path, .go = go, .making = making, .making_ctx = making_ctx};
    struct sbx_fs_place place = {.dirfd = -1};
    size_t at = 0;

    walk->arrived = false;
    while (step.start < n) {
        enum sbx_status st;

        step.n = component_len(path + step.start, n - step.start);
        if (at == SBX_MAX_DEPTH || step.n == 0 || step.n > SBX_MAX_COMPONENT)
            return sbx_err_set(err, SBX_E_USAGE, 0, "path '%s' was not accepted by preflight",
                               SBX_QUOTE_N(path, n));
        st = go_step(walk, at, &step, &place, err);
        if (st)
            return sbx_err_wrap(err, st, "under '%s'", SBX_QUOTE_N(path, n));
        if (place.reason || walk->depth == at) {
            if (!place.reason)
                place.missing = count_components(path + step.start, n - step.start);
            *ret = place;
            return SBX_OK;
        }
        at++;
        step.start += step.n + 1;
    }
    /* Deeper ones are dropped, so that a directory that is removed from here is not held. */
    cut(walk, at);
    walk->arrived = true;
    place.dirfd = walk->levels[at].fd;
    place.dev = walk->levels[at].dev;
    place.ino = walk->levels[at].ino;
    *ret = place;
    return SBX_OK;
}

static void judge_target(struct sbx_fs_target *target)
{
    switch (target->st.st_mode & S_IFMT) {
    case S_IFREG:
        target->exists = true;
        break;
    case S_IFLNK:
        target->reason = SBX_REFUSE_LINKED;
        break;
    case S_IFDIR:
        target->reason = SBX_REFUSE_TYPE_CONFLICT;
        break;
    default:
        target->reason = SBX_REFUSE_SPECIAL;
        break;
    }
}

enum sbx_status sbx_fs_walk_look(struct sbx_fs_walk *walk, const char *name,
                                 struct sbx_fs_target *ret, struct sbx_error *err)
{
    struct level *level = &walk->levels[walk->depth];
    struct sbx_fs_target target = {0};
    enum sbx_status st;

    if (!walk->arrived)
        return sbx_err_set(err, SBX_E_USAGE, 0, "looked before the walk had arrived");
    st = check_alias(level, name, strlen(name), &target.reason, target.with, err);
    if (st)
        return st;
    if (target.reason) {
        *ret = target;
        return SBX_OK;
    }
    if (fstatat(level->fd, name, &target.st, AT_SYMLINK_NOFOLLOW) == 0)
        judge_target(&target);
    else if (sbx_fs_is_name_error(errno))
        target.reason = SBX_REFUSE_HOST_NAME;
    else if (errno != ENOENT)
        return sbx_err_host(err, errno, "fstatat", "'%s'", SBX_QUOTE(name));
    *ret = target;
    return SBX_OK;
}

enum sbx_status sbx_fs_walk_made(struct sbx_fs_walk *walk, const char *name, struct sbx_error *err)
{
    struct level *level = &walk->levels[walk->depth];

    if (!walk->arrived)
        return sbx_err_set(err, SBX_E_USAGE, 0, "made something before the walk had arrived");
    if (!level->index)
        return SBX_OK;
    return sbx_fs_index_add(level->index, name, strlen(name), err);
}
