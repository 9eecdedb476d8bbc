/* Stage 4 to 6: a thread receives, this one publishes what is complete, batch by batch. */
#include "sync/transfer.h"

#include <signal.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/limits.h"
#include "listing/script.h"
#include "sync/budget.h"
#include "sync/flight.h"
#include "sync/judge.h"
#include "sync/listing.h"
#include "sync/publish.h"
#include "sync/ready_fd.h"
#include "sync/record.h"

/* What the listing said of the sandbox's tools goes with every fetch, so that both ends print
 * alike. */
static enum sbx_status fetch_once(struct sbx_transfer *t, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf snippet = SBX_BUF_INIT(SBX_MAX_LINE);
    const struct sbx_transport *tr = t->p->transport;
    const struct sbx_list_frame *frame = sbx_list_frame(t->p->list);
    struct sbx_call call = sbx_sync_call(t->p, t->p->stop_ns);
    struct sbx_queue queue = sbx_flight_queue(t);
    struct sbx_observe_diag diag = {.o = &t->p->observer};
    enum sbx_status st = sbx_list_snippet(tr->root, frame->tools, &snippet, err);

    if (st)
        return st;
    call.tools = frame->tools;
    call.snippet = snippet.data;
    st = tr->ops.fetch(tr->self, &call, &queue, sbx_observe_diag(&diag), err);
    sbx_observe_diag_end(&diag);
    return st;
}

/* For a serial transport: waits until its batches are published, since one of them needs `run`. */
static void wait_published(struct sbx_transfer *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->n_ready > 0)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void note_end(struct sbx_transfer *t, enum sbx_status st, const struct sbx_error *err)
{
    struct sbx_pass *p = t->p;

    if (!st || st == SBX_E_CANCELLED || st == SBX_E_DEADLINE)
        return;
    pthread_mutex_lock(&p->lock);
    if (st == SBX_E_NOMEM && !p->host_error.status)
        p->host_error = *err;
    else if (!p->source_error.status)
        p->source_error = *err;
    pthread_mutex_unlock(&p->lock);
}

static void *receive(void *arg)
{
    struct sbx_transfer *t = arg;
    enum sbx_status st = SBX_OK;
    size_t before;

    do {
        struct sbx_error err = {.status = SBX_OK};

        before = t->cursor;
        st = fetch_once(t, &err);
        sbx_flight_settle(t);
        note_end(t, st, &err);
        if (t->needs_run)
            wait_published(t);
        t->needs_run = false;
    } while (!st && t->cursor > before && t->cursor < t->n_order && !sbx_pass_ended(t->p));
    pthread_mutex_lock(&t->lock);
    t->finished = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* The oldest batch that waits; NULL once there will be no more. It stays counted until it is
 * published. */
static struct sbx_batch *next_batch(struct sbx_transfer *t)
{
    struct sbx_batch *batch;

    pthread_mutex_lock(&t->lock);
    while (!t->ready && !t->finished)
        pthread_cond_wait(&t->changed, &t->lock);
    batch = t->ready;
    if (batch)
        t->ready = batch->next;
    pthread_mutex_unlock(&t->lock);
    return batch;
}

static bool batch_done(struct sbx_transfer *t)
{
    bool last;

    pthread_mutex_lock(&t->lock);
    t->n_ready--;
    sbx_ready_fd_set(t->ready_fd, true);
    last = t->finished && !t->ready;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return last;
}

/* After the first batch, then now and then, so that a killed pass costs little. The last one is
 * followed by the final writing anyway. */
static void record_now_and_then(struct sbx_pass *p, bool last)
{
    uint64_t now = sbx_clock_now();

    if (last || sbx_pass_cancelled(p) ||
        (p->manifest_written_ns &&
         now < sbx_clock_after(p->manifest_written_ns, SBX_MANIFEST_EVERY_S)))
        return;
    if (sbx_sync_record(p, NULL))
        sbx_pass_warn(p, SBX_WARN_MANIFEST_WRITE);
}

static enum sbx_status publish_all(struct sbx_transfer *t, struct sbx_error *err)
{
    enum sbx_status first = SBX_OK;
    struct sbx_batch *batch;

    while ((batch = next_batch(t))) {
        struct sbx_error why = {.status = SBX_OK};
        enum sbx_status st = sbx_publish_batch(t, batch, &why);

        sbx_batch_free(batch);
        note_end(t, st, &why);
        if (st == SBX_E_NOMEM && !first) {
            first = st;
            if (err)
                *err = why;
        }
        record_now_and_then(t->p, batch_done(t));
    }
    return first;
}

static enum sbx_status run_round(struct sbx_transfer *t, const uint32_t *order, size_t n,
                                 struct sbx_error *err)
{
    pthread_t thread;
    sigset_t all, before;
    enum sbx_status st;
    int rc;

    t->order = order;
    t->n_order = n;
    t->cursor = 0;
    t->finished = false;
    t->began_ns = sbx_clock_now();
    t->began_received = t->p->received;
    /* A program's signal handlers are for its own threads. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, NULL, receive, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        return sbx_err_host(err, rc, "pthread_create", "transfer thread");
    st = publish_all(t, err);
    (void)pthread_join(thread, NULL);
    return st;
}

/* The round for what changed while it was fetched: what is known of it by now. */
struct fresh {
    struct sbx_pass *p;
    uint32_t *order; /* borrowed; those that are still there */
    size_t n;
    struct sbx_admission left;
};

static void on_fresh(void *ctx, size_t i, const struct sbx_record *now)
{
    struct fresh *f = ctx;
    struct sbx_record *r = &f->p->records[i];

    r->size = now->size;
    r->mtime = now->mtime;
    r->ctime = now->ctime;
    r->flags = (r->flags & ~SBX_RECORD_YOUNG) | (now->flags & SBX_RECORD_YOUNG);
    if (now->flags & SBX_RECORD_BAD_TIME)
        sbx_pass_refuse(f->p, i, SBX_REFUSE_BAD_TIME, "");
    else if (now->size > f->p->o->max_file_size)
        sbx_pass_refuse(f->p, i, SBX_REFUSE_TOO_LARGE, "");
    else if (!sbx_admit(&f->left, r, 0))
        sbx_pass_decide(f->p, i, SBX_FAILED, SBX_FAIL_CHANGED);
    else
        f->order[f->n++] = (uint32_t)i;
}

/* Every file that was wanted and has no outcome yet gets the reason why there was no time for it;
 * in the first round not those that are to be fetched once more. */
static void settle_rest(struct sbx_transfer *t, const uint32_t *order, size_t n)
{
    enum sbx_reason reason = sbx_pass_ended(t->p);

    if (!reason)
        reason = SBX_DEFER_SOURCE_LOST;
    for (size_t k = 0; k < n; k++) {
        const struct sbx_item *item = &t->p->items[order[k]];

        if (item->outcome == SBX_OUTCOME_NONE && (t->last_round || !(item->flags & SBX_ITEM_AGAIN)))
            sbx_pass_decide(t->p, order[k], SBX_DEFERRED, reason);
    }
}

/* Whatever still has no outcome did not get one more chance. */
static void settle_again(struct sbx_transfer *t, enum sbx_reason reason)
{
    for (size_t k = 0; k < t->n_again; k++) {
        if (t->p->items[t->again[k].item].outcome == SBX_OUTCOME_NONE)
            sbx_pass_decide(t->p, t->again[k].item, SBX_FAILED, reason);
    }
}

static enum sbx_status second_round(struct sbx_transfer *t, struct sbx_error *err)
{
    struct fresh f = {.p = t->p,
                      .order = t->p->order, /* the first round is over: its order is free */
                      .left = {.files_left = UINT64_MAX, .bytes_left = t->bytes_left}};
    uint32_t *asked = NULL;
    size_t cap = 0;
    void *array = NULL;
    enum sbx_status st;

    if (t->n_again == 0)
        return SBX_OK;
    t->last_round = true;
    sbx_judge_sort(t);
    if (sbx_pass_ended(t->p)) {
        settle_again(t, SBX_FAIL_CHANGED);
        return SBX_OK;
    }
    st = sbx_array_grow(&array, &cap, t->n_again, t->n_again, sizeof(*asked), err);
    if (st)
        return st;
    asked = array;
    for (size_t k = 0; k < t->n_again; k++)
        asked[k] = t->again[k].item;
    st = sbx_confirm_ask(t->p, asked, t->n_again, on_fresh, &f, err);
    free(asked);
    if (st) {
        settle_again(t, SBX_FAIL_CHANGED);
        return st == SBX_E_NOMEM ? st : SBX_OK;
    }
    if (f.n > 0)
        st = run_round(t, f.order, f.n, err);
    settle_rest(t, f.order, f.n);
    return st;
}

static void transfer_done(struct sbx_transfer *t)
{
    sbx_flight_free_all(t);
    sbx_fs_walk_free(t->walk);
    sbx_fs_walk_free(t->publish_walk);
    sbx_fd_close(&t->ready_fd);
    free(t->again);
    free(t->made);
    (void)pthread_cond_destroy(&t->changed);
    (void)pthread_mutex_destroy(&t->lock);
}

static enum sbx_status all_rounds(struct sbx_transfer *t, struct sbx_error *err)
{
    enum sbx_status st = run_round(t, t->p->order, t->p->n_order, err);

    settle_rest(t, t->p->order, t->p->n_order);
    if (!st)
        st = second_round(t, err);
    settle_again(t, SBX_FAIL_VANISHED);
    return st;
}

enum sbx_status sbx_sync_transfer(struct sbx_pass *p, struct sbx_error *err)
{
    SBX_CLEANUP(transfer_done)
    struct sbx_transfer t = {
        .p = p,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .bytes_left = p->o->max_bytes,
        .ready_fd = -1,
    };
    enum sbx_status st;

    sbx_observe_stage(&p->observer, SBX_STAGE_TRANSFER);
    sbx_observe_wanted(&p->observer, p->n_order, p->wanted_bytes);
    if (p->n_order == 0)
        return SBX_OK;
    if (p->o->no_confirm)
        sbx_pass_warn(p, SBX_WARN_UNCONFIRMED);
    st = sbx_ready_fd_new(&t.ready_fd, err);
    if (!st)
        st = sbx_fs_walk_new(p->rootfd, &t.walk, err);
    if (!st)
        st = sbx_fs_walk_new(p->rootfd, &t.publish_walk, err);
    if (!st)
        st = all_rounds(&t, err);
    else
        settle_rest(&t, p->order, p->n_order);
    sbx_publish_tidy(&t);
    return st ? sbx_err_wrap(err, st, "transfer") : SBX_OK;
}
