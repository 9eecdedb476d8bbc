/* What comes in are records that the sandbox prints after the bytes of a file; they are compared,
 * and nothing else is made of them. */
#include "sync/confirm.h"

#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "listing/script.h"
#include "sync/listing.h"

/* Tools that cut fractions print none in the listing but may print one here (a local fstat does).
 * Such a file is compared by whole seconds: it is either old enough that any change moves its
 * second, or it is young and never counts as unchanged. */
static bool same_time(struct sbx_time listed, struct sbx_time now, bool coarse)
{
    return listed.sec == now.sec && (coarse || listed.nsec == now.nsec);
}

enum sbx_confirmed sbx_confirm_compare(const struct sbx_record *listed,
                                       const struct sbx_record *now, bool ignore_ctime)
{
    bool coarse = listed->ctime.nsec == 0;

    if (now->flags & SBX_RECORD_BAD_TIME || now->size != listed->size ||
        !same_time(listed->mtime, now->mtime, coarse))
        return SBX_CONFIRM_CHANGED;
    if (!ignore_ctime && !same_time(listed->ctime, now->ctime, coarse))
        return SBX_CONFIRM_CTIME;
    return SBX_CONFIRM_SAME;
}

enum sbx_confirmed sbx_confirm_record(const struct sbx_record *listed, const char *bytes, size_t n,
                                      bool ignore_ctime)
{
    struct sbx_record now;

    if (n == 0)
        return SBX_CONFIRM_GONE;
    if (sbx_list_record_parse(bytes, n, &now, NULL) ||
        sbx_list_path_cmp(now.path, now.path_len, listed->path, listed->path_len) != 0)
        return SBX_CONFIRM_CHANGED;
    return sbx_confirm_compare(listed, &now, ignore_ctime);
}

static const struct sbx_record *find(const struct sbx_record *sorted, size_t n,
                                     const struct sbx_record *wanted)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = sbx_list_path_cmp(sorted[mid].path, sorted[mid].path_len, wanted->path,
                                      wanted->path_len);

        if (order == 0)
            return &sorted[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static void list_freep(struct sbx_list **list)
{
    sbx_list_free(*list);
}

/* One command for names[0..n), which belong to items[0..n). */
static enum sbx_status ask_some(struct sbx_pass *p, const uint32_t *items,
                                const struct sbx_list_name *names, size_t n, sbx_confirm_fn *tell,
                                void *ctx, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf script = SBX_BUF_INIT(SBX_MIB);
    SBX_CLEANUP(list_freep) struct sbx_list *list = NULL;
    const struct sbx_list_limits limits = {.max_bytes = p->o->max_listing, .max_records = n};
    struct sbx_list_script args = {.root = p->transport->root, .max_bytes = p->o->max_listing};
    const struct sbx_record *found;
    char nonce[SBX_NONCE_CHARS + 1];
    size_t n_found;
    enum sbx_status st;

    sbx_random_hex(nonce, SBX_NONCE_BYTES);
    args.nonce = nonce;
    st = sbx_list_confirm_script(&args, names, n, &script, err);
    if (!st)
        st = sbx_list_new(nonce, &limits, &list, err);
    if (!st)
        st = sbx_sync_run_script(p, p->deadline_ns, &script, list, err);
    if (st)
        return sbx_err_wrap(err, st, "confirm");
    found = sbx_list_records(list, &n_found);
    for (size_t k = 0; k < n; k++) {
        const struct sbx_record *now = find(found, n_found, &p->records[items[k]]);

        if (now)
            tell(ctx, items[k], now);
    }
    return SBX_OK;
}

enum sbx_status sbx_confirm_ask(struct sbx_pass *p, const uint32_t *items, size_t n,
                                sbx_confirm_fn *tell, void *ctx, struct sbx_error *err)
{
    struct sbx_list_name names[SBX_BATCH_FILES];
    size_t done = 0;

    while (done < n) {
        size_t count = 0, bytes = 0;
        enum sbx_status st;

        while (done + count < n && count < N_ELEMENTS(names)) {
            const struct sbx_record *r = &p->records[items[done + count]];

            bytes += 4 * (size_t)r->path_len; /* each byte as an octal escape at worst */
            if (count > 0 && bytes > SBX_BATCH_NAMES)
                break;
            names[count++] = (struct sbx_list_name){.path = r->path, .path_len = r->path_len};
        }
        st = ask_some(p, items + done, names, count, tell, ctx, err);
        if (st)
            return st;
        done += count;
    }
    return SBX_OK;
}
