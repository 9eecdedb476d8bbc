/* Stage 3: what is to be fetched, in which order, within the budgets. Looks at the host and changes
 * nothing there. Names have passed preflight; the manifest has proved itself whole. */
#include "sync/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "fsutil/file.h"
#include "fsutil/walk.h"
#include "state/manifest_format.h"
#include "sync/budget.h"

struct planner {
    struct sbx_pass *p;
    struct sbx_fs_walk *walk; /* owned; NULL if the destination does not exist */
    struct sbx_line line;     /* the manifest's line at the cursor */
    bool has_line;
    bool late; /* no time is left to look at the host */
    /* The directory looked at last, as the place of the records that follow. */
    const char *dir;
    size_t dir_len;
    struct sbx_fs_place place;
};

static void planner_done(struct planner *pl)
{
    sbx_fs_walk_free(pl->walk);
}

static enum sbx_status next_line(struct planner *pl, struct sbx_error *err)
{
    const char *text;
    size_t n;

    if (!pl->p->manifest) {
        pl->has_line = false;
        return SBX_OK;
    }
    return sbx_manifest_next(pl->p->manifest, &pl->line, &text, &n, &pl->has_line, err);
}

/* Moves the cursor up to the record: both are in path order. */
static enum sbx_status find_line(struct planner *pl, const struct sbx_record *r,
                                 const struct sbx_line **ret, struct sbx_error *err)
{
    int order = -1;

    *ret = NULL;
    while (pl->has_line) {
        enum sbx_status st;

        order = sbx_list_path_cmp(pl->line.path, pl->line.path_len, r->path, r->path_len);
        if (order >= 0)
            break;
        st = next_line(pl, err);
        if (st)
            return st;
    }
    if (pl->has_line && order == 0)
        *ret = &pl->line;
    return SBX_OK;
}

/* Goes to the record's directory, once for all records of it. */
static enum sbx_status go_to(struct planner *pl, const struct sbx_record *r, struct sbx_error *err)
{
    size_t n = sbx_dir_len(r->path, r->path_len);
    enum sbx_status st;

    if (pl->dir && n == pl->dir_len && memcmp(pl->dir, r->path, n) == 0)
        return SBX_OK;
    pl->dir = NULL;
    if (!pl->walk) {
        pl->place = (struct sbx_fs_place){.dirfd = -1};
        for (size_t i = 0; i <= n && n > 0; i++)
            pl->place.missing += i == n || r->path[i] == '/';
        st = SBX_OK;
    } else {
        st = sbx_fs_walk_to(pl->walk, r->path, n, SBX_FS_LOOK_ALIAS, NULL, NULL, &pl->place, err);
    }
    if (st)
        return st;
    pl->dir = r->path;
    pl->dir_len = n;
    return SBX_OK;
}

static bool same_version(const struct sbx_pass *p, const struct sbx_record *r,
                         const struct sbx_line *line)
{
    return line->has_host && !line->young && !line->unstable && line->size == r->size &&
           sbx_time_equal(line->mtime, r->mtime) &&
           (p->o->ignore_ctime || sbx_time_equal(line->ctime, r->ctime));
}

static bool same_stamp(const struct stat *st, const struct sbx_host_facts *host)
{
    return st->st_ino == host->ino && (uint64_t)st->st_size == host->size &&
           st->st_mtim.tv_sec == host->mtime.sec &&
           (uint32_t)st->st_mtim.tv_nsec == host->mtime.nsec &&
           st->st_ctim.tv_sec == host->ctime.sec &&
           (uint32_t)st->st_ctim.tv_nsec == host->ctime.nsec;
}

/* The host's file has another stamp than we left it with, but the size is right: only its content
 * can tell. A copy with `cp -al`, a chmod or a coarse file system move stamps and not contents. */
static enum sbx_status same_content(struct planner *pl, size_t i, const char *name,
                                    const struct sbx_line *line, bool *ret, struct sbx_error *err)
{
    struct sbx_pass *p = pl->p;
    unsigned char digest[SBX_DIGEST_LEN];
    struct stat st;
    enum sbx_status rc;

    rc = sbx_pass_check(p, p->stop_ns, err);
    if (rc)
        return rc;
    rc = sbx_fs_file_digest(pl->place.dirfd, name, line->host.size, p->stop_ns, ret, digest, &st,
                            err);
    if (rc || !*ret)
        return rc;
    *ret = memcmp(digest, line->digest, sizeof(digest)) == 0;
    if (!*ret)
        return SBX_OK;
    p->items[i].flags |= SBX_ITEM_RENEWED;
    return sbx_pass_fact(p, i, &st, digest, err);
}

static enum sbx_status is_unchanged(struct planner *pl, size_t i, const char *name,
                                    const struct sbx_fs_target *target, const struct sbx_line *line,
                                    bool *ret, struct sbx_error *err)
{
    *ret = false;
    if (!line || !target->exists || !same_version(pl->p, &pl->p->records[i], line))
        return SBX_OK;
    if (same_stamp(&target->st, &line->host)) {
        *ret = true;
        return SBX_OK;
    }
    if ((uint64_t)target->st.st_size != line->host.size)
        return SBX_OK;
    return same_content(pl, i, name, line, ret, err);
}

/* What the host has to say about the record; *ret_wanted if it is to be fetched. */
static enum sbx_status look_at_host(struct planner *pl, size_t i, const struct sbx_line *line,
                                    bool *ret_wanted, struct sbx_error *err)
{
    struct sbx_pass *p = pl->p;
    struct sbx_item *item = &p->items[i];
    const struct sbx_record *r = &p->records[i];
    struct sbx_fs_target target = {.reason = SBX_REASON_NONE};
    const char *name;
    bool unchanged;
    enum sbx_status st = go_to(pl, r, err);

    if (st)
        return st;
    name = r->path + (pl->dir_len ? pl->dir_len + 1 : 0);
    if (pl->place.reason) {
        sbx_pass_refuse(p, i, pl->place.reason, pl->place.with);
        return SBX_OK;
    }
    item->absent = (uint8_t)pl->place.missing;
    if (pl->place.dirfd >= 0)
        st = sbx_fs_walk_look(pl->walk, name, &target, err);
    if (st)
        return st;
    if (target.reason) {
        sbx_pass_refuse(p, i, target.reason, target.with);
        return SBX_OK;
    }
    st = is_unchanged(pl, i, name, &target, line, &unchanged, err);
    if (st)
        return st;
    if (unchanged) {
        sbx_pass_decide(p, i, SBX_UNCHANGED, SBX_REASON_NONE);
    } else if (r->size > p->o->max_file_size) {
        sbx_pass_refuse(p, i, SBX_REFUSE_TOO_LARGE, "");
    } else {
        if (target.exists)
            item->flags |= SBX_ITEM_EXISTS;
        if (target.exists && !(line && line->has_host))
            item->flags |= SBX_ITEM_REPLACES;
        item->mode = target.exists ? target.st.st_mode & 0777 : 0;
        *ret_wanted = true;
    }
    return SBX_OK;
}

/* Only memory and the end of the pass stop the stage; what the host refuses fails its file. */
static enum sbx_status host_error(struct planner *pl, size_t i, enum sbx_status st,
                                  struct sbx_error *err)
{
    if (st == SBX_E_HOST) {
        pl->dir = NULL;
        sbx_pass_host_failed(pl->p, i, err);
        return SBX_OK;
    }
    if (st == SBX_E_DEADLINE) {
        sbx_pass_decide(pl->p, i, SBX_DEFERRED, SBX_DEFER_DEADLINE);
        return SBX_OK;
    }
    return st;
}

static enum sbx_status plan_record(struct planner *pl, size_t i, struct sbx_error *err)
{
    struct sbx_pass *p = pl->p;
    enum sbx_reason reason = sbx_preflight_reason(p->pre, i);
    const struct sbx_line *line;
    struct sbx_error host = {.status = SBX_OK};
    bool wanted = false;
    enum sbx_status st;

    if (reason == SBX_EXCLUDE_PATTERN)
        sbx_pass_decide(p, i, SBX_EXCLUDED, reason);
    else if (reason)
        sbx_pass_refuse(p, i, reason, "");
    if (reason)
        return SBX_OK;
    if (pl->late) {
        sbx_pass_decide(p, i, SBX_DEFERRED, SBX_DEFER_DEADLINE);
        return SBX_OK;
    }
    st = find_line(pl, &p->records[i], &line, err);
    if (st)
        return st;
    if (line && line->last)
        p->items[i].flags |=
            line->last == SBX_FAILED ? SBX_ITEM_LATE | SBX_ITEM_LAST : SBX_ITEM_LATE;
    st = look_at_host(pl, i, line, &wanted, &host);
    if (st) {
        st = host_error(pl, i, st, &host);
        if (st && err)
            *err = host;
        return st;
    }
    if (wanted)
        p->order[p->n_order++] = (uint32_t)i;
    return SBX_OK;
}

static enum sbx_status plan_all(struct sbx_pass *p, struct sbx_error *err)
{
    SBX_CLEANUP(planner_done) struct planner pl = {.p = p};
    enum sbx_status st = SBX_OK;

    if (p->rootfd >= 0)
        st = sbx_fs_walk_new(p->rootfd, &pl.walk, err);
    if (!st)
        st = next_line(&pl, err);
    for (size_t i = 0; i < p->n && !st; i++) {
        st = plan_record(&pl, i, err);
        if (!st && i % 256 == 0)
            st = sbx_pass_check(p, p->stop_ns, err);
        if (st == SBX_E_DEADLINE) {
            pl.late = true;
            st = SBX_OK;
        }
    }
    return st;
}

/* Items with the flag go behind those without it; apart from that the order stays. */
static void put_last(struct sbx_pass *p, unsigned flag, uint32_t *scratch)
{
    size_t early = 0, late = 0;

    for (size_t k = 0; k < p->n_order; k++) {
        if (p->items[p->order[k]].flags & flag)
            scratch[late++] = p->order[k];
        else
            p->order[early++] = p->order[k];
    }
    memcpy(p->order + early, scratch, late * sizeof(*scratch));
}

/* Takes what fits, in order; what does not is deferred, and smaller ones still get their chance. */
static void admit(struct sbx_pass *p)
{
    struct sbx_admission a = {.files_left = p->o->max_files, .bytes_left = p->o->max_bytes};
    size_t kept = 0;

    for (size_t k = 0; k < p->n_order; k++) {
        uint32_t i = p->order[k];

        if (!sbx_admit(&a, &p->records[i], p->items[i].absent)) {
            sbx_pass_decide(p, i, SBX_DEFERRED, SBX_DEFER_OVER_BUDGET);
            continue;
        }
        p->order[kept++] = i;
        p->wanted_bytes += p->records[i].size;
        if (p->o->dry_run)
            sbx_pass_decide(p, i, SBX_WOULD_PUBLISH, SBX_REASON_NONE);
    }
    p->n_order = kept;
}

static enum sbx_status allocate(struct sbx_pass *p, uint32_t **ret_scratch, struct sbx_error *err)
{
    size_t items = 0, order = 0, scratch = 0;
    void *array = NULL;
    enum sbx_status st;

    if (p->n == 0)
        return SBX_OK;
    st = sbx_array_grow(&array, &items, p->n, p->n, sizeof(*p->items), err);
    if (st)
        return st;
    p->items = array;
    memset(p->items, 0, p->n * sizeof(*p->items));
    array = NULL;
    st = sbx_array_grow(&array, &order, p->n, p->n, sizeof(*p->order), err);
    if (st)
        return st;
    p->order = array;
    array = NULL;
    st = sbx_array_grow(&array, &scratch, p->n, p->n, sizeof(*p->order), err);
    if (!st)
        *ret_scratch = array;
    return st;
}

/* The pass goes on as if there were no manifest. */
static void distrust(struct sbx_pass *p, const struct sbx_error *why)
{
    static const char path[] = SBX_STATE_DIR "/" SBX_MANIFEST_FILE;

    sbx_pass_warn(p, SBX_WARN_MANIFEST);
    sbx_observe_text(&p->observer, path, sizeof(path) - 1, why->msg);
}

/* Opens the manifest; one that cannot be trusted costs a full pass and nothing else. */
static enum sbx_status open_manifest(struct sbx_pass *p, struct sbx_error *err)
{
    struct sbx_error why = {.status = SBX_OK};
    enum sbx_manifest_state state;
    const struct sbx_manifest_header *header;
    enum sbx_status st = sbx_manifest_open(p->state.dirfd, &p->manifest, &state, &why, err);

    if (st)
        return st;
    if (state == SBX_MANIFEST_DAMAGED)
        distrust(p, &why);
    if (state != SBX_MANIFEST_OK)
        return SBX_OK;
    header = sbx_manifest_header(p->manifest);
    if (strcmp(header->identity, p->identity) != 0) {
        sbx_manifest_close(p->manifest);
        p->manifest = NULL;
    }
    return SBX_OK;
}

enum sbx_status sbx_sync_plan(struct sbx_pass *p, struct sbx_error *err)
{
    struct sbx_error why = {.status = SBX_OK};
    uint32_t *scratch = NULL;
    enum sbx_status st;

    sbx_observe_stage(&p->observer, SBX_STAGE_PLAN);
    st = open_manifest(p, &why);
    if (!st)
        st = allocate(p, &scratch, &why);
    if (!st)
        st = plan_all(p, &why);
    if (st == SBX_E_REMOTE) { /* the manifest proved damaged after all: once more, without it */
        distrust(p, &why);
        sbx_manifest_close(p->manifest);
        p->manifest = NULL;
        p->n_order = p->n_facts = p->n_notes = 0;
        memset(p->items, 0, p->n * sizeof(*p->items));
        st = plan_all(p, &why);
    }
    if (!st && p->n_order > 0) {
        /* What was tried in vain comes after what there was no room for, or a pass with room for
         * few would try the same ones each time. */
        put_last(p, SBX_ITEM_LATE, scratch);
        put_last(p, SBX_ITEM_LAST, scratch);
        admit(p);
    }
    free(scratch);
    if (st && err)
        *err = why;
    return st ? sbx_err_wrap(err, st, "plan") : SBX_OK;
}
