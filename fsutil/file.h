/* Opening and reading files of a directory that we hold, without being led astray by what stands
 * there. */
#ifndef FSUTIL_FILE_H
#define FSUTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/digest.h"
#include "base/error.h"

/* SBX_E_HOST: what stands at `name` was opened, but is not what it has to be ("'name' why"). */
enum sbx_status sbx_fs_unfit(struct sbx_error *err, const char *name, const char *why);

/* lstat of a regular file; SBX_E_HOST if there is none. */
SBX_MUST_CHECK enum sbx_status sbx_fs_stat(int dirfd, const char *name, struct stat *ret_st,
                                           struct sbx_error *err);

/* Digest of a regular file of `size` bytes by name, and what fstat told before and after. *ret_same
 * is false, with SBX_OK and nothing else set, if it has another size, is gone or no regular file,
 * may not be read, or changed meanwhile. Ends early at deadline_ns (SBX_E_DEADLINE). */
SBX_MUST_CHECK enum sbx_status sbx_fs_file_digest(int dirfd, const char *name, uint64_t size,
                                                  uint64_t deadline_ns, bool *ret_same,
                                                  unsigned char ret[SBX_DIGEST_LEN],
                                                  struct stat *ret_st, struct sbx_error *err);

/* Opens a file of ours for state: it is made if missing (`mode` & umask & ~022), and must then be
 * regular, ours (effective user), and writable by no one else; SBX_E_HOST otherwise. Read-write.
 * It may have further hard links: look at st_nlink before writing in place. */
SBX_MUST_CHECK enum sbx_status sbx_fs_own_file(int dirfd, const char *name, mode_t mode,
                                               int *ret_fd, struct sbx_error *err);
/* The same for a directory. With make = false, a missing one gives *ret_fd = -1 and SBX_OK. */
SBX_MUST_CHECK enum sbx_status sbx_fs_own_dir(int dirfd, const char *name, bool make, int *ret_fd,
                                              struct sbx_error *err);

/* An existing file of ours for reading only, with the same demands; a missing one gives
 * *ret_fd = -1 and SBX_OK. */
SBX_MUST_CHECK enum sbx_status sbx_fs_own_read(int dirfd, const char *name, int *ret_fd,
                                               struct sbx_error *err);

SBX_MUST_CHECK enum sbx_status sbx_fs_write_all(int fd, const void *bytes, size_t n,
                                                struct sbx_error *err);
/* Reads up to n bytes from `offset`; fewer only at the end of the file. */
SBX_MUST_CHECK enum sbx_status sbx_fs_read_at(int fd, uint64_t offset, void *ret, size_t n,
                                              size_t *ret_n, struct sbx_error *err);
/* Cuts or extends the file to n bytes and goes on writing there. */
SBX_MUST_CHECK enum sbx_status sbx_fs_cut(int fd, uint64_t n, struct sbx_error *err);

#endif
