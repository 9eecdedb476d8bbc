/* Stage 7: the new manifest, merged from the old one and what this pass has found out. Lines of
 * files that nothing is known about stay as they are; only a whole listing lets go of lines. */
#include "sync/record.h"

#include <string.h>

#include "preflight/exclude.h"
#include "preflight/path.h"

struct merge {
    struct sbx_pass *p;
    struct sbx_manifest_writer *writer;
    struct sbx_line old; /* at the cursor of the old manifest */
    const char *text;
    size_t text_len;
    bool has_old;
    bool prune;   /* lines of files that are not listed any more go */
    bool reached; /* some file that was tried in vain last time has been tried again */
};

static enum sbx_status next_old(struct merge *m, struct sbx_error *err)
{
    if (!m->p->manifest) {
        m->has_old = false;
        return SBX_OK;
    }
    return sbx_manifest_next(m->p->manifest, &m->old, &m->text, &m->text_len, &m->has_old, err);
}

/* A line that was written under another profile may hold a name that this one refuses. */
static bool name_fits(const struct merge *m)
{
    enum sbx_names names = m->p->o->names;

    return sbx_manifest_header(m->p->manifest)->names == names ||
           !sbx_pre_path(m->old.path, m->old.path_len, names);
}

static enum sbx_status keep_old(struct merge *m, struct sbx_error *err)
{
    if (!name_fits(m))
        return SBX_OK;
    return sbx_manifest_writer_text(m->writer, m->text, m->text_len, err);
}

static bool excluded(const struct merge *m)
{
    const struct sbx_options *o = m->p->o;

    for (size_t k = 0; k < o->n_exclude; k++) {
        if (sbx_pre_exclude(o->exclude[k], m->old.path, m->old.path_len))
            return true;
    }
    return false;
}

/* A file that was not listed. Excluded directories are not even walked, so that says nothing of
 * them. */
static enum sbx_status not_listed(struct merge *m, struct sbx_error *err)
{
    if (m->prune && !excluded(m))
        return SBX_OK;
    return keep_old(m, err);
}

static enum sbx_status write_known(struct merge *m, size_t i, const struct sbx_item *item,
                                   struct sbx_error *err)
{
    const struct sbx_record *r = &m->p->records[i];
    const struct sbx_fact *fact = &m->p->facts[item->fact - 1];
    struct sbx_line line = {
        .path = r->path,
        .path_len = r->path_len,
        .size = r->size,
        .mtime = r->mtime,
        .ctime = r->ctime,
        .young = r->flags & SBX_RECORD_YOUNG,
        .unstable = item->flags & SBX_ITEM_UNSTABLE,
        .has_host = true,
        .host = fact->host,
    };

    memcpy(line.digest, fact->digest, sizeof(line.digest));
    return sbx_manifest_writer_line(m->writer, &line, err);
}

/* What the next pass goes by: "deferred" comes before "failed". What was begun counts as failed,
 * for it may be what used up the time, or what killed the source; and what had failed stays so
 * until its kind gets a turn. Then those that were left out come first, so that all get theirs. */
static enum sbx_outcome last_outcome(const struct merge *m, const struct sbx_item *item)
{
    if (item->tried || (item->flags & SBX_ITEM_LAST && !m->reached))
        return SBX_FAILED;
    return item->outcome;
}

/* Failed or deferred: the host holds what the old line says, and next time others come first. */
static enum sbx_status write_unsuccessful(struct merge *m, size_t i, const struct sbx_item *item,
                                          bool same, struct sbx_error *err)
{
    const struct sbx_record *r = &m->p->records[i];
    struct sbx_line line = {.size = r->size, .mtime = r->mtime, .ctime = r->ctime};

    if (same)
        line = m->old;
    line.path = r->path;
    line.path_len = r->path_len;
    line.last = last_outcome(m, item);
    return sbx_manifest_writer_line(m->writer, &line, err);
}

/* The line of a listed file; `same`: the old line at the cursor is that of the same path. */
static enum sbx_status write_record(struct merge *m, size_t i, bool same, struct sbx_error *err)
{
    struct sbx_item item;

    pthread_mutex_lock(&m->p->lock);
    item = m->p->items[i];
    pthread_mutex_unlock(&m->p->lock);
    switch (item.outcome) {
    case SBX_PUBLISHED:
        return write_known(m, i, &item, err);
    case SBX_UNCHANGED:
        if (item.flags & SBX_ITEM_RENEWED)
            return write_known(m, i, &item, err);
        break;
    case SBX_FAILED:
    case SBX_DEFERRED:
        return write_unsuccessful(m, i, &item, same, err);
    case SBX_REFUSED:
        if (item.reason < SBX_REFUSE_BAD_TIME) /* a name that no manifest may hold */
            return SBX_OK;
        break;
    default:
        break;
    }
    return same ? keep_old(m, err) : SBX_OK;
}

static enum sbx_status merge_record(struct merge *m, size_t i, struct sbx_error *err)
{
    const struct sbx_record *r = &m->p->records[i];
    enum sbx_status st = SBX_OK;
    int order = 1;

    while (m->has_old && !st) {
        order = sbx_list_path_cmp(m->old.path, m->old.path_len, r->path, r->path_len);
        if (order >= 0)
            break;
        st = not_listed(m, err);
        if (!st)
            st = next_old(m, err);
    }
    if (st)
        return st;
    st = write_record(m, i, m->has_old && order == 0, err);
    if (!st && m->has_old && order == 0)
        st = next_old(m, err);
    return st;
}

static enum sbx_status merge_all(struct merge *m, struct sbx_error *err)
{
    enum sbx_status st;

    if (m->p->manifest)
        sbx_manifest_rewind(m->p->manifest);
    st = next_old(m, err);
    for (size_t i = 0; i < m->p->n && !st; i++)
        st = merge_record(m, i, err);
    while (m->has_old && !st) {
        st = not_listed(m, err);
        if (!st)
            st = next_old(m, err);
    }
    return st;
}

enum sbx_status sbx_sync_record(struct sbx_pass *p, struct sbx_error *err)
{
    const struct sbx_manifest_header header = {.identity = p->identity, .names = p->o->names};
    struct merge m = {.p = p, .prune = p->listing_state == SBX_LISTING_COMPLETE};
    uint64_t serial;
    enum sbx_status st;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n && !m.reached; i++)
        m.reached = p->items[i].tried && p->items[i].flags & SBX_ITEM_LAST;
    serial = ++p->serial;
    pthread_mutex_unlock(&p->lock);
    st = sbx_manifest_writer_new(p->state.dirfd, p->run.token, serial, &header, &m.writer, err);
    if (!st)
        st = merge_all(&m, err);
    if (!st)
        st = sbx_manifest_writer_commit(&m.writer, p->o->durability, err);
    sbx_manifest_writer_abort(&m.writer);
    if (st)
        return sbx_err_wrap(err, st, "record");
    p->manifest_written_ns = sbx_clock_now();
    return SBX_OK;
}
