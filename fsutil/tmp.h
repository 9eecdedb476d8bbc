/* A file that exists under a random name of ours until it is published.
 *
 *   open -> write* -> finish -> publish      the file has its final name, whole
 *   open -> write* -> abort                  nothing is left
 *   open -> write* -> finish -> remove       nothing is left
 *
 * finish closes the file; the temporary name stays. abort before open, after finish, or twice, does
 * nothing: declare it with SBX_TMP_AUTO. */
#ifndef FSUTIL_TMP_H
#define FSUTIL_TMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"

#define SBX_TOKEN_BYTES 12 /* 96 random bits */
#define SBX_TOKEN_CHARS 24 /* the same in hex */
#define SBX_TMP_NAME 64    /* room for ".sbx-sync.<token>.<n>", terminated */

struct sbx_fs_tmp {
    int dirfd; /* borrowed: must stay open until finish or abort */
    int fd;    /* owned; -1 when there is nothing to abort */
    char name[SBX_TMP_NAME];
};

#define SBX_FS_TMP_INIT ((struct sbx_fs_tmp){.dirfd = -1, .fd = -1})
#define SBX_TMP_AUTO SBX_CLEANUP(sbx_fs_tmp_abort)

/* Writes the name that the temporary of this token and serial has. */
void sbx_fs_tmp_name(char ret[SBX_TMP_NAME], const char *token, uint64_t serial);

/* Makes ".sbx-sync.<token>.<serial>", exclusively, 0666 & umask (or the default ACL's). */
SBX_MUST_CHECK enum sbx_status sbx_fs_tmp_open(struct sbx_fs_tmp *t, int dirfd, const char *token,
                                               uint64_t serial, struct sbx_error *err);
/* The same with another mode than 0666 to begin with. */
SBX_MUST_CHECK enum sbx_status sbx_fs_tmp_open_mode(struct sbx_fs_tmp *t, int dirfd,
                                                    const char *token, uint64_t serial, mode_t mode,
                                                    struct sbx_error *err);
SBX_MUST_CHECK enum sbx_status sbx_fs_tmp_write(struct sbx_fs_tmp *t, const void *bytes, size_t n,
                                                struct sbx_error *err);
/* Drops what was written, so that the file starts over. */
SBX_MUST_CHECK enum sbx_status sbx_fs_tmp_restart(struct sbx_fs_tmp *t, struct sbx_error *err);

/* What finish puts on the file. */
struct sbx_fs_finish {
    struct sbx_time mtime; /* clamped to what the host can store */
    bool has_mtime;
    bool has_mode; /* carry `mode & 0777` over from the file that is replaced */
    mode_t mode;
    bool sync; /* fsync before close */
};
/* Sets mode and times, syncs, closes (the result of close counts). *ret_no_times and *ret_no_mode
 * tell that the host would not (EPERM, ENOTSUP, …): a warning. On failure the temporary is gone. */
SBX_MUST_CHECK enum sbx_status sbx_fs_tmp_finish(struct sbx_fs_tmp *t,
                                                 const struct sbx_fs_finish *how,
                                                 bool *ret_no_times, bool *ret_no_mode,
                                                 struct sbx_error *err);
void sbx_fs_tmp_abort(struct sbx_fs_tmp *t);

enum sbx_fs_published {
    SBX_FS_PUBLISHED,
    SBX_FS_PUBLISHED_PLAIN, /* by a plain rename, since nothing better is to be had: a warning */
    SBX_FS_APPEARED,        /* something stands there that did not in plan; not published */
    SBX_FS_NAME_REFUSED,    /* the host will not have this name; not published */
};
/* Gives the finished temporary `tmp` its final `name`, both in dirfd: with `replace` by rename over
 * whatever file stands there, else so that nothing is overwritten (RENAME_NOREPLACE; linkat and
 * unlinkat; plain rename). *ret_st is the lstat of the published file, zeroed if it cannot be had.
 * Unless published, the temporary is still there. SBX_E_HOST: not published. */
SBX_MUST_CHECK enum sbx_status sbx_fs_publish(int dirfd, const char *tmp, const char *name,
                                              bool replace, enum sbx_fs_published *ret,
                                              struct stat *ret_st, struct sbx_error *err);

/* Removes a file (a temporary) by name; a missing one is fine. */
SBX_MUST_CHECK enum sbx_status sbx_fs_remove(int dirfd, const char *name, struct sbx_error *err);
/* Removes an empty directory; one that is missing or not empty stays as it is. */
void sbx_fs_remove_dir(int dirfd, const char *name);

#endif
