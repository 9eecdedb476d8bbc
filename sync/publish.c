/* Stage 5 and 6 of a batch: what was received under a temporary name is confirmed, made durable,
 * checked against the host once more, and renamed. Directories are reached again from the root,
 * through descriptors, since others may have moved them since the temporaries were made. */
#include "sync/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "fsutil/durable.h"
#include "fsutil/file.h"
#include "sync/confirm.h"
#include "sync/judge.h"
#include "sync/transfer.h"

static const struct sbx_record *record_of(const struct sbx_transfer *t, const struct sbx_ready *f)
{
    return &t->p->records[f->item];
}

static const char *name_of(const struct sbx_record *r)
{
    size_t n = sbx_dir_len(r->path, r->path_len);

    return r->path + (n ? n + 1 : 0);
}

static void tmp_name(const struct sbx_transfer *t, const struct sbx_ready *f, char *out)
{
    sbx_fs_tmp_name(out, t->p->run.token, f->serial);
}

/* Goes to the file's directory. */
static enum sbx_status go_to(struct sbx_transfer *t, const struct sbx_ready *f, enum sbx_fs_go go,
                             struct sbx_fs_place *ret, struct sbx_error *err)
{
    const struct sbx_record *r = record_of(t, f);

    return sbx_fs_walk_to(t->publish_walk, r->path, sbx_dir_len(r->path, r->path_len), go, NULL,
                          NULL, ret, err);
}

/* Removes the temporary where it can still be reached; if not, the run record stays, so that the
 * next pass tries again. */
static void drop(struct sbx_transfer *t, struct sbx_ready *f)
{
    struct sbx_fs_place place;
    char tmp[SBX_TMP_NAME];

    f->dropped = true;
    tmp_name(t, f, tmp);
    if (go_to(t, f, SBX_FS_LOOK, &place, NULL) || place.dirfd < 0 ||
        sbx_fs_remove(place.dirfd, tmp, NULL)) {
        pthread_mutex_lock(&t->p->lock);
        t->p->temporaries_left = true;
        pthread_mutex_unlock(&t->p->lock);
    }
}

static void defer(struct sbx_transfer *t, struct sbx_ready *f, enum sbx_reason reason)
{
    drop(t, f);
    sbx_pass_decide(t->p, f->item, SBX_DEFERRED, reason);
}

static void fail_host(struct sbx_transfer *t, struct sbx_ready *f, const struct sbx_error *why)
{
    drop(t, f);
    sbx_pass_host_failed(t->p, f->item, why);
}

struct asked {
    struct sbx_transfer *t;
    struct sbx_batch *batch;
    uint32_t *items; /* owned */
    size_t n;
};

static int ready_cmp(const void *a, const void *b)
{
    const struct sbx_ready *x = a, *y = b;

    return (x->item > y->item) - (x->item < y->item);
}

static void on_confirmed(void *ctx, size_t i, const struct sbx_record *now)
{
    struct asked *a = ctx;
    const struct sbx_ready wanted = {.item = (uint32_t)i};
    struct sbx_ready *f = bsearch(&wanted, a->batch->files, a->batch->n, sizeof(wanted), ready_cmp);
    enum sbx_confirmed c;

    if (!f)
        return;
    c = sbx_confirm_compare(record_of(a->t, f), now, a->t->p->o->ignore_ctime);
    f->confirmed = true;
    if (sbx_judge_file(a->t, f->item, c, f->size, f->digest))
        return;
    drop(a->t, f);
}

static enum sbx_status confirm(struct sbx_transfer *t, struct sbx_batch *batch,
                               struct sbx_error *err)
{
    struct asked a = {.t = t, .batch = batch};
    size_t cap = 0;
    void *array = NULL;
    enum sbx_status st = SBX_OK;

    for (size_t k = 0; k < batch->n && !st; k++) {
        if (batch->files[k].confirmed)
            continue;
        st = sbx_array_grow(&array, &cap, a.n + 1, SBX_BATCH_FILES, sizeof(*a.items), err);
        a.items = array;
        if (!st)
            a.items[a.n++] = batch->files[k].item;
    }
    if (!st && a.n > 0)
        st = sbx_confirm_ask(t->p, a.items, a.n, on_confirmed, &a, err);
    free(array);
    for (size_t k = 0; k < batch->n && !st; k++) {
        struct sbx_ready *f = &batch->files[k];

        if (f->confirmed)
            continue;
        drop(t, f);
        sbx_pass_decide(t->p, f->item, SBX_FAILED, SBX_FAIL_VANISHED);
    }
    return st;
}

/* Where the temporary is not found any more, the check before its rename tells why. */
static bool sync_alone(struct sbx_transfer *t, const struct sbx_ready *f, bool renamed,
                       struct sbx_error *why)
{
    struct sbx_fs_place place;
    char tmp[SBX_TMP_NAME];

    if (go_to(t, f, SBX_FS_LOOK, &place, why))
        return false;
    tmp_name(t, f, tmp);
    if (place.dirfd < 0)
        (void)sbx_err_host(why, ENOENT, "openat", "directory");
    else if (!sbx_fs_sync_file(place.dirfd, renamed ? name_of(record_of(t, f)) : tmp, why))
        return true;
    return !renamed && why->os_errno == ENOENT;
}

/* syncfs has failed for a device: which of its files are safe, only fsync can tell. */
static void sync_one_by_one(struct sbx_transfer *t, struct sbx_batch *batch, uint64_t dev,
                            bool renamed)
{
    for (size_t k = 0; k < batch->n; k++) {
        struct sbx_ready *f = &batch->files[k];
        struct sbx_error why = {.status = SBX_OK};

        if (f->dropped || f->dev != dev || (renamed && !f->renamed) ||
            sync_alone(t, f, renamed, &why))
            continue;
        f->dropped = true;
        if (renamed)
            sbx_pass_host_failed(t->p, f->item, &why);
        else
            fail_host(t, f, &why);
    }
}

/* One syncfs for each device that the batch has files on. */
static void sync_devices(struct sbx_transfer *t, struct sbx_batch *batch, bool renamed)
{
    for (size_t k = 0; k < batch->n; k++) {
        const struct sbx_ready *f = &batch->files[k];
        struct sbx_fs_place place;
        bool seen = f->dropped || (renamed && !f->renamed);

        for (size_t j = 0; j < k && !seen; j++)
            seen = batch->files[j].dev == f->dev && !batch->files[j].dropped &&
                   (!renamed || batch->files[j].renamed);
        if (seen)
            continue;
        /* syncfs waits for other programs' data too, and nothing can end it early. */
        if (sbx_clock_now() + SBX_SYNC_MIN_NS > t->p->deadline_ns) {
            sbx_pass_warn(t->p, SBX_WARN_UNSYNCED);
            return;
        }
        if (go_to(t, f, SBX_FS_LOOK, &place, NULL) || place.dirfd < 0 ||
            sbx_fs_sync_all(place.dirfd, NULL))
            sync_one_by_one(t, batch, f->dev, renamed);
    }
}

static enum sbx_status sync_directory(struct sbx_transfer *t, const char *path, size_t n,
                                      struct sbx_error *err)
{
    struct sbx_fs_place place;
    bool cannot = false;
    enum sbx_status st =
        sbx_fs_walk_to(t->publish_walk, path, n, SBX_FS_LOOK, NULL, NULL, &place, err);

    if (!st && place.dirfd >= 0)
        st = sbx_fs_sync_dir(place.dirfd, &cannot, err);
    if (cannot)
        sbx_pass_warn(t->p, SBX_WARN_DIR_SYNC);
    return st;
}

/* Syncs the directory path[0..n) and those above it, as far as `last` has not been through them:
 * each may have been made in this pass, and is only safe once its own name is. */
static enum sbx_status sync_upwards(struct sbx_transfer *t, const char *path, size_t n,
                                    const char *last, size_t last_n, struct sbx_error *err)
{
    while (true) {
        enum sbx_status st;

        if (last && n <= last_n && memcmp(path, last, n) == 0 &&
            (n == last_n || n == 0 || last[n] == '/'))
            return SBX_OK;
        st = sync_directory(t, path, n, err);
        if (st || n == 0)
            return st;
        n = sbx_dir_len(path, n);
    }
}

/* Files are sorted by path, so those of one directory are mostly neighbours, and share its fate. */
static void sync_directories(struct sbx_transfer *t, struct sbx_batch *batch)
{
    const char *last = NULL;
    size_t last_n = 0;
    enum sbx_status st = SBX_OK;
    struct sbx_error why = {.status = SBX_OK};

    for (size_t k = 0; k < batch->n; k++) {
        struct sbx_ready *f = &batch->files[k];
        const struct sbx_record *r = record_of(t, f);
        size_t n = sbx_dir_len(r->path, r->path_len);

        if (f->dropped || !f->renamed)
            continue;
        if (!last || last_n != n || memcmp(last, r->path, n) != 0) {
            st = sync_upwards(t, r->path, n, st ? NULL : last, last_n, &why);
            last = r->path;
            last_n = n;
        }
        if (st) {
            f->dropped = true;
            sbx_pass_host_failed(t->p, f->item, &why);
        }
    }
}

/* Whether the directory that the path leads to now is the one in which the temporary was made: by
 * its identity, or by holding the temporary. */
static bool same_directory(const struct sbx_fs_place *place, const struct sbx_ready *f,
                           const char *tmp)
{
    struct stat st;

    return (place->dev == f->dev && place->ino == f->ino) ||
           !sbx_fs_stat(place->dirfd, tmp, &st, NULL);
}

/* Whether what stands at the name right after the rename is what we put there: the manifest must
 * not vouch for a file that somebody else has put in its place. Some file systems give an inode
 * another number each time; then the content tells. */
static bool is_ours(const struct sbx_transfer *t, const struct sbx_ready *f, int dirfd,
                    const char *name)
{
    unsigned char digest[SBX_DIGEST_LEN];
    struct stat st;
    bool same = false;

    if (f->st.st_ino == f->file_ino && (uint64_t)f->st.st_size == f->size)
        return true;
    return !sbx_fs_file_digest(dirfd, name, f->size, t->p->deadline_ns, &same, digest, &st, NULL) &&
           same && memcmp(digest, f->digest, sizeof(digest)) == 0;
}

static enum sbx_status rename_file(struct sbx_transfer *t, struct sbx_ready *f, int dirfd,
                                   const char *tmp, bool replace, struct sbx_error *err)
{
    const char *name = name_of(record_of(t, f));
    enum sbx_fs_published how;
    enum sbx_status st = sbx_fs_publish(dirfd, tmp, name, replace, &how, &f->st, err);

    if (st)
        return st;
    if (how == SBX_FS_APPEARED) {
        drop(t, f);
        sbx_pass_decide(t->p, f->item, SBX_FAILED, SBX_FAIL_APPEARED);
        return SBX_OK;
    }
    if (how == SBX_FS_NAME_REFUSED) {
        drop(t, f);
        sbx_pass_refuse(t->p, f->item, SBX_REFUSE_HOST_NAME, "");
        return SBX_OK;
    }
    if (how == SBX_FS_PUBLISHED_PLAIN)
        sbx_pass_warn(t->p, SBX_WARN_NO_NOREPLACE);
    f->renamed = true;
    /* An index that lacks our own name is only read again. */
    (void)!sbx_fs_walk_made(t->publish_walk, name, NULL);
    if (!is_ours(t, f, dirfd, name)) {
        f->dropped = true;
        sbx_pass_decide(t->p, f->item, SBX_FAILED, SBX_FAIL_APPEARED);
    }
    return SBX_OK;
}

/* The host-side checks again, then the rename. */
static enum sbx_status publish_file(struct sbx_transfer *t, struct sbx_ready *f,
                                    struct sbx_error *err)
{
    bool existed = t->p->items[f->item].flags & SBX_ITEM_EXISTS;
    struct sbx_fs_place place;
    struct sbx_fs_target target = {.reason = SBX_REASON_NONE};
    char tmp[SBX_TMP_NAME];
    enum sbx_status st = go_to(t, f, SBX_FS_LOOK_ALIAS, &place, err);

    if (st)
        return st;
    tmp_name(t, f, tmp);
    if (!place.reason && (place.dirfd < 0 || !same_directory(&place, f, tmp)))
        place.reason = SBX_REFUSE_LINKED;
    if (!place.reason)
        st = sbx_fs_walk_look(t->publish_walk, name_of(record_of(t, f)), &target, err);
    if (st)
        return st;
    if (place.reason || target.reason) {
        drop(t, f);
        sbx_pass_refuse(t->p, f->item, place.reason ? place.reason : target.reason,
                        place.reason ? place.with : target.with);
        return SBX_OK;
    }
    if (target.exists && !existed) {
        drop(t, f);
        sbx_pass_decide(t->p, f->item, SBX_FAILED, SBX_FAIL_APPEARED);
        return SBX_OK;
    }
    return rename_file(t, f, place.dirfd, tmp, target.exists, err);
}

/* Why no further rename may happen; what is renamed stays. A full disk is no reason: a rename takes
 * no room, and what is complete need not come again. */
static enum sbx_reason stopped(struct sbx_pass *p)
{
    if (sbx_pass_cancelled(p))
        return SBX_DEFER_CANCELLED;
    if (sbx_clock_now() >= p->deadline_ns)
        return SBX_DEFER_DEADLINE;
    return SBX_REASON_NONE;
}

static void rename_all(struct sbx_transfer *t, struct sbx_batch *batch)
{
    for (size_t k = 0; k < batch->n; k++) {
        struct sbx_ready *f = &batch->files[k];
        struct sbx_error why = {.status = SBX_OK};
        enum sbx_reason reason;

        if (f->dropped)
            continue;
        reason = stopped(t->p);
        if (reason) {
            defer(t, f, reason);
        } else if (publish_file(t, f, &why)) {
            fail_host(t, f, &why);
        }
    }
}

static void decide_published(struct sbx_transfer *t, const struct sbx_batch *batch)
{
    for (size_t k = 0; k < batch->n; k++) {
        const struct sbx_ready *f = &batch->files[k];
        struct sbx_error why = {.status = SBX_OK};

        if (f->dropped || !f->renamed)
            continue;
        if (sbx_pass_fact(t->p, f->item, &f->st, f->digest, &why)) {
            sbx_pass_host_failed(t->p, f->item, &why);
            continue;
        }
        t->p->published += f->size;
        sbx_pass_decide(t->p, f->item, SBX_PUBLISHED, SBX_REASON_NONE);
    }
}

/* The confirming command failed: nothing of the batch can be vouched for. */
static void give_up(struct sbx_transfer *t, struct sbx_batch *batch, enum sbx_status st)
{
    bool broken = st == SBX_E_REMOTE || st == SBX_E_LIMIT;
    enum sbx_reason reason = SBX_DEFER_SOURCE_LOST;

    if (broken)
        reason = SBX_FAIL_PROTOCOL;
    else if (st == SBX_E_CANCELLED)
        reason = SBX_DEFER_CANCELLED;
    else if (st == SBX_E_DEADLINE)
        reason = SBX_DEFER_DEADLINE;
    for (size_t k = 0; k < batch->n; k++) {
        struct sbx_ready *f = &batch->files[k];

        if (f->dropped)
            continue;
        drop(t, f);
        sbx_pass_decide(t->p, f->item, broken ? SBX_FAILED : SBX_DEFERRED, reason);
    }
}

enum sbx_status sbx_publish_batch(struct sbx_transfer *t, struct sbx_batch *batch,
                                  struct sbx_error *err)
{
    enum sbx_durability durability = t->p->o->durability;
    enum sbx_status st;

    qsort(batch->files, batch->n, sizeof(*batch->files), ready_cmp);
    sbx_fs_walk_again(t->publish_walk);
    st = confirm(t, batch, err);
    if (st) {
        give_up(t, batch, st);
        return st;
    }
    if (durability == SBX_DURABILITY_BATCH)
        sync_devices(t, batch, false);
    rename_all(t, batch);
    if (durability == SBX_DURABILITY_BATCH)
        sync_devices(t, batch, true);
    else if (durability == SBX_DURABILITY_FULL)
        sync_directories(t, batch);
    decide_published(t, batch);
    return SBX_OK;
}

void sbx_publish_tidy(struct sbx_transfer *t)
{
    if (t->n_made > 0)
        sbx_fs_walk_again(t->publish_walk);
    while (t->n_made > 0) {
        const char *path = t->made[--t->n_made];
        size_t n = sbx_dir_len(path, strlen(path));
        struct sbx_fs_place place;

        if (!sbx_fs_walk_to(t->publish_walk, path, n, SBX_FS_LOOK, NULL, NULL, &place, NULL) &&
            place.dirfd >= 0)
            sbx_fs_remove_dir(place.dirfd, path + (n ? n + 1 : 0));
    }
}
