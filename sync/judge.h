/* What becomes of a file that was fetched. */
#ifndef SYNC_JUDGE_H
#define SYNC_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "sbx/transport.h"
#include "sync/confirm.h"

struct sbx_transfer;

/* It is not what was listed: once more later, or failed. `digest` only for a moved ctime. */
void sbx_judge_changed(struct sbx_transfer *t, uint32_t item, const unsigned char *digest);
/* Whether a file of `got` bytes may be published as listed, given how its confirmation came out; if
 * not, it is decided here, or put aside for the next round. */
bool sbx_judge_file(struct sbx_transfer *t, uint32_t item, enum sbx_confirmed confirmed,
                    uint64_t got, const unsigned char digest[SBX_DIGEST_LEN]);
/* Before the last round: puts what is fetched once more in the order in which it is looked up. */
void sbx_judge_sort(struct sbx_transfer *t);
/* Decides a file whose fetch ended with another result than SBX_FETCH_OK. */
void sbx_judge_result(struct sbx_transfer *t, uint32_t item, enum sbx_fetch_result result);

#endif
