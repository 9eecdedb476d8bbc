/* The conductor: one pass, from options to report. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"
#include "fsutil/root.h"
#include "sync/cancel.h"
#include "sync/listing.h"
#include "sync/pass.h"
#include "sync/plan.h"
#include "sync/record.h"
#include "sync/report.h"
#include "sync/transfer.h"

static void pass_init(struct sbx_pass *p, struct sbx_transport *transport,
                      const struct sbx_options *o)
{
    double kept = o->deadline_s / 10;

    if (kept < SBX_STOP_S)
        kept = SBX_STOP_S;
    if (kept > o->deadline_s / 2)
        kept = o->deadline_s / 2;
    memset(p, 0, sizeof(*p));
    p->o = o;
    p->transport = transport;
    p->identity = o->identity ? o->identity : transport->identity;
    p->cancel_fd = sbx_cancel_fd(o->cancel);
    p->started_ns = sbx_clock_now();
    p->started_s = sbx_clock_epoch();
    p->deadline_ns = sbx_clock_after(p->started_ns, o->deadline_s);
    p->stop_ns = sbx_clock_after(p->started_ns, o->deadline_s - kept);
    p->rootfd = -1;
    p->state = SBX_STATE_INIT;
    p->run = SBX_RUN_INIT;
    p->text = SBX_ARENA_INIT(SIZE_MAX);
    (void)pthread_mutex_init(&p->lock, NULL);
    sbx_observer_init(&p->observer, o->observe, o->observe_ctx);
}

static void pass_done(struct sbx_pass *p)
{
    sbx_run_done(&p->run);
    sbx_manifest_close(p->manifest);
    sbx_state_close(&p->state);
    sbx_fd_close(&p->rootfd);
    sbx_preflight_free(p->pre);
    sbx_list_free(p->list);
    free(p->items);
    free(p->order);
    free(p->facts);
    free(p->notes);
    sbx_arena_done(&p->text);
    sbx_observer_done(&p->observer);
    (void)pthread_mutex_destroy(&p->lock);
}

/* Mirroring a directory into itself would list its own output next time. */
static enum sbx_status check_apart(const struct sbx_pass *p, int dest, bool dest_is_parent,
                                   struct sbx_error *err)
{
    SBX_FD_AUTO int source = -1;
    bool below = false, above = false;
    enum sbx_status st;

    if (!p->transport->local_dir || dest < 0 ||
        sbx_fs_root_open(p->transport->local_dir, false, &source, NULL) || source < 0)
        return SBX_OK; /* what is wrong with the source, the listing will tell */
    st = sbx_fs_within(dest, source, &below, err);
    if (!st && !dest_is_parent)
        st = sbx_fs_within(source, dest, &above, err);
    if (!st && (below || above))
        st = sbx_err_set(err, SBX_E_USAGE, 0,
                         "source '%s' and destination '%s' must not contain each other",
                         SBX_QUOTE(p->transport->local_dir), SBX_QUOTE(p->o->dest));
    return st;
}

static enum sbx_status open_dest(struct sbx_pass *p, struct sbx_error *err)
{
    SBX_FD_AUTO int parent = -1;
    enum sbx_status st = sbx_fs_root_open(p->o->dest, false, &p->rootfd, err);

    if (!st && p->rootfd >= 0)
        return check_apart(p, p->rootfd, false, err);
    if (!st)
        st = sbx_fs_root_open_above(p->o->dest, &parent, err);
    if (!st)
        st = check_apart(p, parent, true, err);
    if (!st && !p->o->dry_run)
        st = sbx_fs_root_open(p->o->dest, true, &p->rootfd, err);
    return st;
}

/* Takes the lock, and removes what a dead pass has left. */
static enum sbx_status open_state(struct sbx_pass *p, struct sbx_error *err)
{
    uint64_t until = p->o->wait_s > 0 ? sbx_clock_after(p->started_ns, p->o->wait_s) : 0;
    size_t failed = 0;
    enum sbx_status st;

    if (p->o->dry_run)
        return p->rootfd >= 0 ? sbx_state_peek(&p->state, p->rootfd, err) : SBX_OK;
    st = sbx_state_open(&p->state, p->rootfd, until < p->stop_ns ? until : p->stop_ns, p->cancel_fd,
                        err);
    if (st == SBX_E_BUSY)
        return sbx_err_set(err, st, 0, "another pass holds '%s'", SBX_QUOTE(p->o->dest));
    if (st == SBX_E_HOST)
        return sbx_err_wrap(err, st, "destination '%s'", SBX_QUOTE(p->o->dest));
    if (st)
        return st;
    if (p->state.no_lock)
        sbx_pass_warn(p, SBX_WARN_NO_LOCK);
    else
        st = sbx_run_sweep(p->state.dirfd, p->rootfd, &failed, err);
    if (failed > 0)
        sbx_pass_warn(p, SBX_WARN_SWEEP);
    return st ? st : sbx_run_begin(&p->run, p->state.dirfd, err);
}

static enum sbx_status stages(struct sbx_pass *p, struct sbx_error *err)
{
    enum sbx_status st = open_dest(p, err);
    enum sbx_status recorded;

    if (!st)
        st = open_state(p, err);
    if (!st)
        st = sbx_sync_listing(p, err);
    if (!st)
        st = sbx_sync_plan(p, err);
    if (st || p->o->dry_run)
        return st;
    st = sbx_sync_transfer(p, err);
    sbx_observe_stage(&p->observer, SBX_STAGE_RECORD);
    recorded = sbx_sync_record(p, NULL);
    if (recorded)
        sbx_pass_warn(p, SBX_WARN_MANIFEST_WRITE);
    return st;
}

/* A pass that was stopped early still owes every listed file its outcome. */
static void settle(struct sbx_pass *p, enum sbx_status st)
{
    enum sbx_reason reason = SBX_DEFER_HOST_FULL;

    if (!p->items)
        p->n = 0;
    if (st == SBX_E_CANCELLED)
        reason = SBX_DEFER_CANCELLED;
    else if (st == SBX_E_DEADLINE)
        reason = SBX_DEFER_DEADLINE;
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].outcome == SBX_OUTCOME_NONE)
            sbx_pass_decide(p, i, SBX_DEFERRED, reason);
    }
}

/* Of several things that went wrong, which one is the result: the destination before a
 * cancellation, and a source that was lost after its listing is a partial pass. */
static enum sbx_status result_of(struct sbx_pass *p, enum sbx_status st, struct sbx_error *why)
{
    if (st)
        return st;
    if (p->host_error.status) {
        *why = p->host_error;
        return why->status;
    }
    if (sbx_pass_cancelled(p))
        return sbx_err_set(why, SBX_E_CANCELLED, 0, "cancelled");
    if (p->source_error.status)
        *why = p->source_error;
    return SBX_OK;
}

static void tidy(struct sbx_pass *p)
{
    if (p->run.fd >= 0 && !p->temporaries_left && sbx_run_clear(&p->run, NULL))
        sbx_pass_warn(p, SBX_WARN_SWEEP);
}

enum sbx_status sbx_sync(struct sbx_transport *transport, const struct sbx_options *options,
                         struct sbx_report *report, struct sbx_error *err)
{
    struct sbx_options resolved;
    struct sbx_error why = {.status = SBX_OK};
    struct sbx_pass p;
    enum sbx_status st = sbx_sync_options(options, &resolved, &why);

    if (st) {
        report->error = why;
        if (err)
            *err = why;
        return st;
    }
    pass_init(&p, transport, &resolved);
    st = stages(&p, &why);
    settle(&p, st);
    st = result_of(&p, st, &why);
    tidy(&p);
    sbx_report_fill(report, &p, st, &why);
    pass_done(&p);
    if (err && st)
        *err = why;
    return st;
}
