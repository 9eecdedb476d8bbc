/* Stage 1 and 2: asks the transport for a listing, reads it, and has every record judged. What
 * comes in is bytes of the sandbox; what goes out is records that the listing's own proofs vouch
 * for. */
#include "sync/listing.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/quote.h"
#include "listing/script.h"
#include "preflight/exclude.h"

/* The reader of the output, and the observer that is told how far it is. */
struct reading {
    struct sbx_list *list;
    struct sbx_pass *p;
};

static enum sbx_status on_output(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct reading *r = ctx;
    enum sbx_status st = sbx_list_write(r->list, bytes, n, err);

    sbx_observe_records(&r->p->observer, sbx_list_seen(r->list));
    return st;
}

struct sbx_call sbx_sync_call(const struct sbx_pass *p, uint64_t deadline_ns)
{
    return (struct sbx_call){
        .version = SBX_CALL_VERSION,
        .deadline_ns = deadline_ns,
        .cancel_fd = p->cancel_fd,
        .jobs = p->o->jobs,
        .idle_ns = (uint64_t)(p->o->idle_s * SBX_NS_PER_S),
    };
}

enum sbx_status sbx_sync_run_script(struct sbx_pass *p, uint64_t deadline_ns,
                                    const struct sbx_buf *script, struct sbx_list *list,
                                    struct sbx_error *err)
{
    const struct sbx_transport_ops *ops = &p->transport->ops;
    struct sbx_call call = sbx_sync_call(p, deadline_ns);
    struct sbx_observe_diag diag = {.o = &p->observer};
    struct reading reading = {.list = list, .p = p};
    struct sbx_sink out = {.write = on_output, .ctx = &reading};
    struct sbx_exit ended = {.kind = SBX_EXIT_UNKNOWN};
    enum sbx_status st;

    if (ops->max_script && script->len > ops->max_script)
        return sbx_err_set(err, SBX_E_USAGE, 0, "a script of %zu bytes is too long for this source",
                           script->len);
    st = ops->run(p->transport->self, &call, script->data, script->len, out,
                  sbx_observe_diag(&diag), &ended, err);
    sbx_observe_diag_end(&diag);
    if (st)
        return st;
    return sbx_list_end(list, ended, err);
}

static enum sbx_status make_script(const struct sbx_pass *p, const char *nonce, struct sbx_buf *out,
                                   struct sbx_error *err)
{
    struct sbx_list_script args = {
        .nonce = nonce, .root = p->transport->root, .max_bytes = p->o->max_listing};
    const char **prune = NULL;
    size_t cap = 0;
    void *array = NULL;
    enum sbx_status st = SBX_OK;

    for (size_t i = 0; i < p->o->n_exclude && !st; i++) {
        if (!sbx_pre_exclude_plain(p->o->exclude[i]))
            continue;
        st = sbx_array_grow(&array, &cap, args.n_prune + 1, SIZE_MAX / sizeof(*prune),
                            sizeof(*prune), err);
        prune = array;
        if (!st)
            prune[args.n_prune++] = p->o->exclude[i];
    }
    args.prune = prune;
    if (!st)
        st = sbx_list_script(&args, out, err);
    free(array);
    return st;
}

/* What a status means for the report, where the listing itself does not know. */
static enum sbx_listing_state state_of(const struct sbx_list *list, enum sbx_status st)
{
    switch (st) {
    case SBX_E_CANCELLED:
        return SBX_LISTING_CANCELLED;
    case SBX_E_DEADLINE:
        return SBX_LISTING_DEADLINE;
    case SBX_E_REMOTE:
    case SBX_E_LIMIT:
        return sbx_list_state(list);
    default:
        return sbx_list_frame(list)->root == SBX_ROOT_UNKNOWN ? SBX_LISTING_UNREACHABLE
                                                              : SBX_LISTING_DAMAGED;
    }
}

static enum sbx_status check_root(const struct sbx_pass *p, enum sbx_listing_state state,
                                  struct sbx_error *err)
{
    const char *why;

    if (state == SBX_LISTING_MISSING)
        why = "no such directory";
    else if (state == SBX_LISTING_NOTDIR)
        why = "not a directory";
    else if (state == SBX_LISTING_DENIED)
        why = "permission denied";
    else
        return SBX_OK;
    return sbx_err_set(err, SBX_E_REMOTE, 0, "source '%s': %s", SBX_QUOTE(p->transport->root), why);
}

/* What the transport found on its way there. */
static void warn(struct sbx_pass *p)
{
    for (enum sbx_warning w = 0; w < SBX_WARNINGS; w++)
        if (p->transport->warnings & 1u << w)
            sbx_pass_warn(p, w);
}

static enum sbx_status read_listing(struct sbx_pass *p, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf script = SBX_BUF_INIT(SBX_MIB);
    const struct sbx_list_limits limits = {.max_bytes = p->o->max_listing,
                                           .max_records = p->o->max_records};
    char nonce[SBX_NONCE_CHARS + 1];
    enum sbx_status st;

    sbx_random_hex(nonce, SBX_NONCE_BYTES);
    st = sbx_list_new(nonce, &limits, &p->list, err);
    if (!st)
        st = make_script(p, nonce, &script, err);
    if (st)
        return st;
    st = sbx_sync_run_script(p, p->stop_ns, &script, p->list, err);
    /* Ctrl-C at a terminal reaches COMMAND too, which may end before we hear of it: that is no
     * failure of the source. */
    if (st && sbx_pass_cancelled(p))
        st = sbx_err_set(err, SBX_E_CANCELLED, 0, "cancelled");
    warn(p);
    p->listing_state = st ? state_of(p->list, st) : sbx_list_state(p->list);
    return st ? st : check_root(p, p->listing_state, err);
}

static enum sbx_status judge(struct sbx_pass *p, struct sbx_error *err)
{
    const struct sbx_pre_options options = {
        .names = p->o->names,
        .exclude = p->o->exclude,
        .n_exclude = p->o->n_exclude,
        .max_directories = p->o->max_directories,
    };
    enum sbx_status st = sbx_preflight_new(p->records, p->n, &options, &p->pre, err);

    if (st == SBX_E_LIMIT) {
        p->listing_state = SBX_LISTING_TRUNCATED;
        p->n = 0;
    }
    return st;
}

enum sbx_status sbx_sync_listing(struct sbx_pass *p, struct sbx_error *err)
{
    enum sbx_status st;

    sbx_observe_stage(&p->observer, SBX_STAGE_LIST);
    st = read_listing(p, err);
    if (st)
        return sbx_err_wrap(err, st, "listing");
    if (sbx_list_find_errors(p->list))
        sbx_pass_warn(p, SBX_WARN_FIND_ERRORS);
    if (sbx_list_duplicates(p->list))
        sbx_pass_warn(p, SBX_WARN_DUPLICATE);
    p->records = sbx_list_records(p->list, &p->n);
    st = judge(p, err);
    return st ? sbx_err_wrap(err, st, "listing") : SBX_OK;
}
