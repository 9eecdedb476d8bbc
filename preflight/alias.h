/* Which listed paths are spellings of one name (docs/ARCHITECTURE.md, "Names"). Pure. */
#ifndef PREFLIGHT_ALIAS_H
#define PREFLIGHT_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "listing/record.h"

/* A verdict in the making, one byte per record: an enum sbx_reason and perhaps this bit, for names
 * that only the portable profile refuses. */
#define SBX_PRE_POSIX_TAKES 0x80u

/* A spelling of a name that has several: records[record].path[0..len), a directory unless that is
 * the whole path. */
struct sbx_pre_spelling {
    uint32_t record;
    uint32_t len;
};

/* A record that is refused because of its own spelling or that of a directory above it. */
struct sbx_pre_member {
    uint32_t record;
    uint32_t spelling; /* index of the one that it stands at or under */
};

/* The names that are spelled in several ways. Nothing is kept about others. */
struct sbx_pre_alias {
    struct sbx_pre_spelling *spellings; /* owned; those of a name side by side, in path order */
    size_t cap_spellings;
    uint32_t *ends; /* owned; where the spellings of name i end and those of the next begin */
    size_t n_names, cap_ends;
    struct sbx_pre_member *members; /* owned; by record */
    size_t n_members, cap_members;
};

#define SBX_PRE_ALIAS_AUTO SBX_CLEANUP(sbx_pre_alias_done)

/* Compares all well-formed records that are not excluded, as `verdicts` says. A record without a
 * verdict that turns out to be an alias gets SBX_REFUSE_ALIAS and becomes a member; one that has a
 * verdict loses SBX_PRE_POSIX_TAKES. *ret is zero or done before.
 * SBX_E_LIMIT: more distinct directories than max_directories. SBX_E_NOMEM. */
SBX_MUST_CHECK enum sbx_status sbx_pre_alias_find(const struct sbx_record *records, size_t n,
                                                  uint64_t max_directories, unsigned char *verdicts,
                                                  struct sbx_pre_alias *ret, struct sbx_error *err);
void sbx_pre_alias_done(struct sbx_pre_alias *alias);

/* Up to `most` spellings, other than its own, of the name that makes record i an alias; the nearest
 * such name if there are several above it. Returns how many; 0 for a record that is no member. */
size_t sbx_pre_alias_others(const struct sbx_pre_alias *alias, size_t i, size_t most,
                            struct sbx_pre_spelling *ret);

#endif
