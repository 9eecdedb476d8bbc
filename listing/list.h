/* A whole listing: from the output of a script to the sorted records.
 *
 *   new -> write* -> end             valid if end says so, and never before
 */
#ifndef LISTING_LIST_H
#define LISTING_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "listing/decode.h"
#include "listing/record.h"
#include "sbx/sync.h"
#include "sbx/transport.h"

struct sbx_list;

struct sbx_list_limits {
    uint64_t max_bytes;   /* decoded */
    uint64_t max_records; /* counted as they arrive, duplicates included */
};

SBX_MUST_CHECK enum sbx_status sbx_list_new(const char *nonce, const struct sbx_list_limits *limits,
                                            struct sbx_list **ret, struct sbx_error *err);
void sbx_list_free(struct sbx_list *list);

/* A sbx_write_fn; ctx is the struct sbx_list. */
enum sbx_status sbx_list_write(void *ctx, const void *bytes, size_t n, struct sbx_error *err);

/* The script's output has ended, and the script with it, as `ended` says. SBX_OK: the listing is
 * valid (or its root is missing, no directory, or denied); its records are sorted by path, each
 * path once, young ones marked. Else SBX_E_REMOTE or SBX_E_LIMIT, and there are no records. */
SBX_MUST_CHECK enum sbx_status sbx_list_end(struct sbx_list *list, struct sbx_exit ended,
                                            struct sbx_error *err);

/* After end, or after write has failed: complete, warned, truncated, damaged, missing, notdir,
 * denied. */
enum sbx_listing_state sbx_list_state(const struct sbx_list *list);
const struct sbx_list_frame *sbx_list_frame(const struct sbx_list *list);
/* Valid as long as the list; paths are NUL-terminated. The owner of the list may update facts. */
struct sbx_record *sbx_list_records(struct sbx_list *list, size_t *ret_n);
uint64_t sbx_list_bytes(const struct sbx_list *list);   /* decoded bytes */
uint64_t sbx_list_seen(const struct sbx_list *list);    /* records so far, also before end */
bool sbx_list_find_errors(const struct sbx_list *list); /* warning find-errors */
bool sbx_list_duplicates(const struct sbx_list *list);  /* warning duplicate */

#endif
