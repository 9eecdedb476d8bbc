#include "sync/batch.h"

#include <stdlib.h>

#include "base/limits.h"
#include "sync/ready_fd.h"
#include "sync/transfer.h"

void sbx_batch_free(struct sbx_batch *batch)
{
    if (!batch)
        return;
    free(batch->files);
    free(batch);
}

void sbx_batch_hand_over(struct sbx_transfer *t)
{
    struct sbx_batch **at = &t->ready;

    if (!t->filling)
        return;
    pthread_mutex_lock(&t->lock);
    while (*at)
        at = &(*at)->next;
    *at = t->filling;
    t->filling = NULL;
    t->n_ready++;
    sbx_ready_fd_set(t->ready_fd, t->n_ready < SBX_BATCHES_AHEAD);
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static struct sbx_batch *batch_new(void)
{
    struct sbx_batch *batch = calloc(1, sizeof(*batch));

    return batch;
}

enum sbx_status sbx_batch_add(struct sbx_transfer *t, const struct sbx_ready *ready,
                              struct sbx_error *err)
{
    struct sbx_batch *b = t->filling;
    void *array;
    enum sbx_status st;

    if (!b) {
        b = batch_new();
        if (!b)
            return sbx_err_nomem(err);
        t->filling = b;
    }
    array = b->files;
    st = sbx_array_grow(&array, &b->cap, b->n + 1, SIZE_MAX / sizeof(*ready), sizeof(*ready), err);
    if (st)
        return st;
    b->files = array;
    b->files[b->n++] = *ready;
    b->bytes += ready->size;
    /* A transport that cannot run beside its fetch is asked for no more files, and confirms this
     * batch when what it has begun is through. */
    if (!ready->confirmed && t->p->transport->ops.serial)
        t->needs_run = true;
    if (!t->needs_run && (b->n >= SBX_BATCH_FILES || b->bytes >= SBX_BATCH_BYTES))
        sbx_batch_hand_over(t);
    return SBX_OK;
}
