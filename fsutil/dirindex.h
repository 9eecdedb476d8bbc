/* The spellings that a host directory holds, by alias key: who stands where a new name would go. */
#ifndef FSUTIL_DIRINDEX_H
#define FSUTIL_DIRINDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sbx_fs_index;

/* Reads the directory once. Names that are not UTF-8 are left out, so are ours (.sbx-sync…). */
SBX_MUST_CHECK enum sbx_status sbx_fs_index_new(int dirfd, struct sbx_fs_index **ret,
                                                struct sbx_error *err);
void sbx_fs_index_free(struct sbx_fs_index *index);

/* *ret_other is another spelling with the same key as name, terminated and valid as long as the
 * index, or NULL. */
SBX_MUST_CHECK enum sbx_status sbx_fs_index_other(struct sbx_fs_index *index, const char *name,
                                                  size_t n, const char **ret_other,
                                                  struct sbx_error *err);
/* Tells it of a name that we made. */
SBX_MUST_CHECK enum sbx_status sbx_fs_index_add(struct sbx_fs_index *index, const char *name,
                                                size_t n, struct sbx_error *err);
/* When the reading ended, CLOCK_MONOTONIC. */
uint64_t sbx_fs_index_read_at(const struct sbx_fs_index *index);

#endif
