/* A verdict for every record, before any download. Pure. */
#ifndef PREFLIGHT_PREFLIGHT_H
#define PREFLIGHT_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "listing/record.h"
#include "sbx/sync.h"
#include "sbx/verdict.h"

struct sbx_preflight;

struct sbx_pre_options {
    enum sbx_names names;
    const char *const *exclude;
    size_t n_exclude;
    uint64_t max_directories; /* distinct directories in the listing */
};

/* `records` are sorted by path, each path once, and must outlive the result.
 * SBX_E_LIMIT: more directories than the limit (the listing counts as truncated); SBX_E_NOMEM. */
SBX_MUST_CHECK enum sbx_status sbx_preflight_new(const struct sbx_record *records, size_t n,
                                                 const struct sbx_pre_options *options,
                                                 struct sbx_preflight **ret, struct sbx_error *err);
void sbx_preflight_free(struct sbx_preflight *p);

/* NONE: accepted. SBX_EXCLUDE_PATTERN: excluded. Else refused: a rule of paths, bad-time, alias. */
enum sbx_reason sbx_preflight_reason(const struct sbx_preflight *p, size_t i);

/* Another spelling of a refused alias, or of a directory above it. */
struct sbx_pre_with {
    const char *path; /* bytes from the root; not terminated at path_len */
    size_t path_len;
    bool directory;
};
/* Writes at most SBX_MAX_WITH of the other spellings into ret and returns how many; 0 unless the
 * reason is alias (a record listed twice with other facts has none either). */
size_t sbx_preflight_with(const struct sbx_preflight *p, size_t i, struct sbx_pre_with *ret);

/* Names refused under SBX_NAMES_PORTABLE that SBX_NAMES_POSIX would take. */
uint64_t sbx_preflight_posix_would_take(const struct sbx_preflight *p);

#endif
