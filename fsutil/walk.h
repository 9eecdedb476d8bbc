/* Reaching directories below the destination, one component at a time and through no link, and
 * looking at what stands there.
 *
 *   init -> (to -> look*)* -> done
 *
 * Made for paths in byte order: the descriptors along the current path are kept, so that a
 * directory is opened once and not for each file. Never resolves a path string. One thread each. */
#ifndef FSUTIL_WALK_H
#define FSUTIL_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "sbx/verdict.h"

struct sbx_fs_walk;

/* Called before a directory is made, with its path from the root. A failure of it is returned. */
typedef enum sbx_status sbx_fs_making_fn(void *ctx, const char *path, size_t n,
                                         struct sbx_error *err);

/* rootfd is borrowed. */
SBX_MUST_CHECK enum sbx_status sbx_fs_walk_new(int rootfd, struct sbx_fs_walk **ret,
                                               struct sbx_error *err);
void sbx_fs_walk_free(struct sbx_fs_walk *walk);

/* Forgets every descriptor, so that each directory is reached from the root again. Readings of
 * directories that turn out to be the same (device, inode) are kept. */
void sbx_fs_walk_again(struct sbx_fs_walk *walk);

/* ENAMETOOLONG, EILSEQ, EINVAL: the host will not have the name that the call was given. */
bool sbx_fs_is_name_error(int os_errno);

enum sbx_fs_go {
    SBX_FS_LOOK,       /* missing directories are absent */
    SBX_FS_LOOK_ALIAS, /* the same, and other spellings of each component are refused */
    SBX_FS_MAKE,       /* missing directories are made, 0777 & umask */
};

/* Where the walk has arrived. */
struct sbx_fs_place {
    enum sbx_reason reason;           /* NONE, LINKED, TYPE_CONFLICT, ALIAS_LOCAL or HOST_NAME */
    char with[SBX_MAX_COMPONENT + 1]; /* the entry in the way (terminated), "" if there is none */
    int dirfd;         /* borrowed until the next call; -1: absent, or there is a reason */
    uint64_t dev, ino; /* of the directory, 0 if absent */
    size_t missing;    /* how many components at the end of the path do not exist */
};

/* Goes to the directory path[0..n) ("" is the root itself), which preflight has accepted. A name
 * that the file system itself refuses is reason HOST_NAME. What
 * SBX_E_HOST tells is about this place (err->step names the call): the walk can go on elsewhere.
 * In it are also directories that we may search but not read, since they cannot be checked. */
SBX_MUST_CHECK enum sbx_status sbx_fs_walk_to(struct sbx_fs_walk *walk, const char *path, size_t n,
                                              enum sbx_fs_go go, sbx_fs_making_fn *making,
                                              void *making_ctx, struct sbx_fs_place *ret,
                                              struct sbx_error *err);

/* What stands at `name` (terminated) in the directory the walk has arrived at. */
struct sbx_fs_target {
    enum sbx_reason reason; /* NONE, ALIAS_LOCAL, LINKED, TYPE_CONFLICT, SPECIAL, HOST_NAME */
    char with[SBX_MAX_COMPONENT + 1]; /* alias-local: the host's spelling; else "" */
    bool exists;                      /* a regular file; st is its lstat */
    struct stat st;
};

/* Reads the directory for aliases where that has not been done, or not within SBX_INDEX_AGE_NS.
 * SBX_E_USAGE if the walk has not arrived anywhere; SBX_E_HOST is about this place. */
SBX_MUST_CHECK enum sbx_status sbx_fs_walk_look(struct sbx_fs_walk *walk, const char *name,
                                                struct sbx_fs_target *ret, struct sbx_error *err);

/* Tells the readings of a name that was made in the directory the walk has arrived at. */
SBX_MUST_CHECK enum sbx_status sbx_fs_walk_made(struct sbx_fs_walk *walk, const char *name,
                                                struct sbx_error *err);

#endif
