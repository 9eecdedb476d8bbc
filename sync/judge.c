/* What becomes of a file that was fetched: published as listed, fetched once more, or failed with a
 * reason. The records that are compared come from the sandbox and decide about its files only. */
#include "sync/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "sync/transfer.h"

void sbx_judge_changed(struct sbx_transfer *t, uint32_t item, const unsigned char *digest)
{
    struct sbx_again again = {.item = item, .ctime_only = digest != NULL};
    void *array;
    bool kept = false;

    if (digest)
        memcpy(again.digest, digest, sizeof(again.digest));
    if (!t->last_round) {
        pthread_mutex_lock(&t->lock);
        array = t->again;
        if (!sbx_array_grow(&array, &t->cap_again, t->n_again + 1, SIZE_MAX / sizeof(again),
                            sizeof(again), NULL)) {
            t->again = array;
            t->again[t->n_again++] = again;
            kept = true;
        }
        pthread_mutex_unlock(&t->lock);
    }
    if (kept)
        sbx_pass_flag(t->p, item, SBX_ITEM_AGAIN);
    else
        sbx_pass_decide(t->p, item, SBX_FAILED, SBX_FAIL_CHANGED);
}

static int again_cmp(const void *a, const void *b)
{
    const struct sbx_again *x = a, *y = b;

    return (x->item > y->item) - (x->item < y->item);
}

void sbx_judge_sort(struct sbx_transfer *t)
{
    qsort(t->again, t->n_again, sizeof(*t->again), again_cmp);
}

static const struct sbx_again *before(const struct sbx_transfer *t, uint32_t item)
{
    const struct sbx_again wanted = {.item = item};

    if (!t->last_round || t->n_again == 0)
        return NULL;
    return bsearch(&wanted, t->again, t->n_again, sizeof(wanted), again_cmp);
}

/* A moved ctime may mean a chmod or a link, or a write that was finished before the first read: two
 * equal reads tell. */
static bool same_as_before(const struct sbx_transfer *t, uint32_t item, const unsigned char *digest)
{
    const struct sbx_again *b = before(t, item);

    return b && b->ctime_only && memcmp(b->digest, digest, SBX_DIGEST_LEN) == 0;
}

bool sbx_judge_file(struct sbx_transfer *t, uint32_t item, enum sbx_confirmed c, uint64_t got,
                    const unsigned char digest[SBX_DIGEST_LEN])
{
    const struct sbx_options *o = t->p->o;
    bool whole = got == t->p->records[item].size;

    if (c == SBX_CONFIRM_GONE) {
        sbx_pass_decide(t->p, item, SBX_FAILED, SBX_FAIL_VANISHED);
        return false;
    }
    if (o->allow_changing && (c != SBX_CONFIRM_SAME || !whole)) {
        sbx_pass_flag(t->p, item, SBX_ITEM_UNSTABLE);
        return true;
    }
    if (c == SBX_CONFIRM_CTIME && whole && same_as_before(t, item, digest)) {
        sbx_pass_warn(t->p, SBX_WARN_CTIME_MOVED);
        return true;
    }
    if (c != SBX_CONFIRM_SAME) {
        sbx_judge_changed(t, item, c == SBX_CONFIRM_CTIME && whole ? digest : NULL);
        return false;
    }
    if (!whole)
        sbx_pass_decide(t->p, item, SBX_FAILED, SBX_FAIL_SHORT);
    return whole;
}

void sbx_judge_result(struct sbx_transfer *t, uint32_t item, enum sbx_fetch_result result)
{
    static const struct {
        enum sbx_outcome outcome;
        enum sbx_reason reason;
    } table[] = {
        [SBX_FETCH_VANISHED] = {SBX_FAILED, SBX_FAIL_VANISHED},
        [SBX_FETCH_DENIED] = {SBX_FAILED, SBX_FAIL_DENIED},
        [SBX_FETCH_NOT_REGULAR] = {SBX_FAILED, SBX_FAIL_CHANGED},
        [SBX_FETCH_SHORT] = {SBX_FAILED, SBX_FAIL_SHORT},
        [SBX_FETCH_PROTOCOL] = {SBX_FAILED, SBX_FAIL_PROTOCOL},
        [SBX_FETCH_SERVER] = {SBX_FAILED, SBX_FAIL_SERVER},
        [SBX_FETCH_LOST] = {SBX_DEFERRED, SBX_DEFER_SOURCE_LOST},
        [SBX_FETCH_UNAUTHORISED] = {SBX_DEFERRED, SBX_DEFER_SOURCE_LOST},
        [SBX_FETCH_LIMIT] = {SBX_FAILED, SBX_FAIL_PROTOCOL},
    };

    if (result == SBX_FETCH_CHANGED)
        sbx_judge_changed(t, item, NULL);
    else if (result == SBX_FETCH_CANCELLED)
        sbx_pass_decide(t->p, item, SBX_DEFERRED,
                        sbx_pass_cancelled(t->p) ? SBX_DEFER_CANCELLED : SBX_DEFER_DEADLINE);
    else if ((size_t)result < N_ELEMENTS(table) && table[result].reason)
        sbx_pass_decide(t->p, item, table[result].outcome, table[result].reason);
    else
        sbx_pass_decide(t->p, item, SBX_FAILED, SBX_FAIL_PROTOCOL);
}
