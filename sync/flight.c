/* The queue that a transport fetches from. What comes in are bytes of the sandbox for a file that
 * preflight has accepted; they are paid for as they come, and go into a temporary and a digest. */
#include "sync/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "sync/judge.h"
#include "sync/ready_fd.h"
#include "sync/transfer.h"

/* A file that the transport has taken. */
struct sbx_flight {
    struct sbx_wanted wanted; /* first: the transport knows a flight by it */
    struct sbx_flight *next;
    uint32_t item;
    bool begun;
    bool decided; /* refused by us: whatever the transport says of it does not count */
    int dirfd;    /* owned; the temporary's directory */
    uint64_t serial, dev, ino, got;
    uint64_t reserve;      /* of the pass's bytes, for what has not arrived yet */
    struct sbx_fs_tmp tmp; /* borrows dirfd */
    struct sbx_digest digest;
};

/* The transport holds const pointers to what it may not change; each is the head of a flight. */
static struct sbx_flight *flight_of(const struct sbx_wanted *file)
{
    return (struct sbx_flight *)file;
}

static const struct sbx_record *record_of(const struct sbx_transfer *t, const struct sbx_flight *f)
{
    return &t->p->records[f->item];
}

static uint64_t unreserved(const struct sbx_transfer *t)
{
    return t->bytes_left > t->reserved ? t->bytes_left - t->reserved : 0;
}

/* Puts aside what the file needs, or as much as there is. */
static void reserve(struct sbx_transfer *t, struct sbx_flight *f)
{
    uint64_t more = f->wanted.size - f->reserve, most = unreserved(t);

    if (more > most)
        more = most;
    f->reserve += more;
    t->reserved += more;
}

static struct sbx_flight *flight_new(struct sbx_transfer *t, uint32_t item)
{
    const struct sbx_record *r = &t->p->records[item];
    struct sbx_flight *f = t->spare;

    if (f)
        t->spare = f->next;
    else
        f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->wanted = (struct sbx_wanted){.path = r->path, .path_len = r->path_len, .size = r->size};
    f->item = item;
    f->begun = f->decided = false;
    f->got = f->reserve = 0;
    f->dirfd = -1;
    f->tmp = SBX_FS_TMP_INIT;
    f->next = t->busy;
    t->busy = f;
    reserve(t, f);
    return f;
}

static void flight_done(struct sbx_transfer *t, struct sbx_flight *f)
{
    struct sbx_flight **at = &t->busy;

    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    sbx_fs_tmp_abort(&f->tmp);
    sbx_fd_close(&f->dirfd);
    t->reserved -= f->reserve;
    f->next = t->spare;
    t->spare = f;
}

void sbx_flight_free_all(struct sbx_transfer *t)
{
    while (t->spare) {
        struct sbx_flight *f = t->spare;

        t->spare = f->next;
        free(f);
    }
}

/* At the rate seen so far, a file that cannot arrive in time is not begun. The rate means something
 * only once a second and a MiB have passed. */
static bool too_slow_for(const struct sbx_transfer *t, uint64_t size)
{
    uint64_t now = sbx_clock_now(), received = t->p->received - t->began_received;
    double rate, left;

    if (now - t->began_ns < SBX_NS_PER_S || received < SBX_MIB)
        return false;
    rate = (double)received / (double)(now - t->began_ns);
    left = now < t->p->stop_ns ? (double)(t->p->stop_ns - now) : 0;
    return (double)size + (double)t->reserved > rate * left;
}

/* Batches that wait for their names are bounded, and so is what their temporaries take on disk. */
static bool must_wait(struct sbx_transfer *t)
{
    bool wait;

    pthread_mutex_lock(&t->lock);
    wait = t->n_ready >= SBX_BATCHES_AHEAD;
    sbx_ready_fd_set(t->ready_fd, !wait);
    pthread_mutex_unlock(&t->lock);
    return wait;
}

static enum sbx_next on_next(void *ctx, const struct sbx_wanted **ret)
{
    struct sbx_transfer *t = ctx;

    while (t->cursor < t->n_order) {
        uint32_t item = t->order[t->cursor];
        uint64_t size = t->p->records[item].size;
        struct sbx_flight *f;

        if (t->needs_run || sbx_pass_ended(t->p))
            return SBX_NEXT_NONE;
        if (must_wait(t))
            return SBX_NEXT_WAIT;
        t->cursor++;
        if (size > unreserved(t)) {
            sbx_pass_decide(t->p, item, SBX_DEFERRED, SBX_DEFER_OVER_BUDGET);
            continue;
        }
        if (too_slow_for(t, size)) {
            sbx_pass_decide(t->p, item, SBX_DEFERRED, SBX_DEFER_DEADLINE);
            continue;
        }
        f = flight_new(t, item);
        if (!f) {
            const struct sbx_error nomem = {.status = SBX_E_NOMEM, .step = "calloc"};

            sbx_pass_host_failed(t->p, item, &nomem);
            continue;
        }
        *ret = &f->wanted;
        return SBX_NEXT_FILE;
    }
    return SBX_NEXT_NONE;
}

static enum sbx_status on_making(void *ctx, const char *path, size_t n, struct sbx_error *err)
{
    struct sbx_transfer *t = ctx;
    const char *copy;
    void *array = t->made;
    enum sbx_status st;

    pthread_mutex_lock(&t->p->lock);
    st = sbx_arena_copy(&t->p->text, path, n, &copy, err);
    pthread_mutex_unlock(&t->p->lock);
    if (!st)
        st = sbx_array_grow(&array, &t->cap_made, t->n_made + 1, SIZE_MAX / sizeof(*t->made),
                            sizeof(*t->made), err);
    if (st)
        return st;
    t->made = array;
    t->made[t->n_made++] = copy;
    return SBX_OK;
}

/* Makes the temporary in the target's own directory, which the run record knows of by then. */
static enum sbx_status open_temporary(struct sbx_transfer *t, struct sbx_flight *f,
                                      enum sbx_reason *ret_reason, char *ret_with, size_t with_cap,
                                      struct sbx_error *err)
{
    const struct sbx_item *item = &t->p->items[f->item];
    const struct sbx_record *r = record_of(t, f);
    size_t n = sbx_dir_len(r->path, r->path_len);
    struct sbx_fs_place place;
    enum sbx_status st;

    st = sbx_run_note(&t->p->run, r->path, n, err);
    if (!st)
        st = sbx_fs_walk_to(t->walk, r->path, n, SBX_FS_MAKE, on_making, t, &place, err);
    if (st)
        return st;
    if (place.reason) {
        (void)snprintf(ret_with, with_cap, "%s", place.with);
        *ret_reason = place.reason;
        return SBX_OK;
    }
    f->dirfd = fcntl(place.dirfd, F_DUPFD_CLOEXEC, 3);
    if (f->dirfd < 0)
        return sbx_err_host(err, errno, "fcntl", "duplicate a directory");
    f->dev = place.dev;
    f->ino = place.ino;
    pthread_mutex_lock(&t->p->lock);
    f->serial = ++t->p->serial;
    pthread_mutex_unlock(&t->p->lock);
    /* What replaces a private file is private from its first byte. */
    return sbx_fs_tmp_open_mode(&f->tmp, f->dirfd, t->p->run.token, f->serial,
                                item->flags & SBX_ITEM_EXISTS ? item->mode & 0666 : 0666, err);
}

/* Our side has failed: the file is decided, and the transport is told to send no more of it. */
static enum sbx_status host_refused(struct sbx_transfer *t, struct sbx_flight *f,
                                    const struct sbx_error *why, struct sbx_error *err)
{
    f->decided = true;
    sbx_pass_host_failed(t->p, f->item, why);
    if (err)
        *err = *why;
    return why->status;
}

static enum sbx_status on_begin(void *ctx, const struct sbx_wanted *file, struct sbx_error *err)
{
    struct sbx_transfer *t = ctx;
    struct sbx_flight *f = flight_of(file);
    struct sbx_error why = {.status = SBX_OK};
    enum sbx_reason reason = SBX_REASON_NONE;
    char with[SBX_MAX_COMPONENT + 1];
    enum sbx_status st;

    if (f->decided)
        return sbx_err_set(err, SBX_E_CANCELLED, 0, "the file was refused");
    pthread_mutex_lock(&t->p->lock);
    t->p->items[f->item].tried = true;
    pthread_mutex_unlock(&t->p->lock);
    f->got = 0;
    reserve(t, f);
    sbx_digest_init(&f->digest);
    st = f->begun ? sbx_fs_tmp_restart(&f->tmp, &why)
                  : open_temporary(t, f, &reason, with, sizeof(with), &why);
    f->begun = true;
    if (st)
        return host_refused(t, f, &why, err);
    if (reason) {
        f->decided = true;
        sbx_pass_refuse(t->p, f->item, reason, with);
        return sbx_err_set(err, SBX_E_HOST, 0, "%s", sbx_reason_name(reason));
    }
    return SBX_OK;
}

static void charge(struct sbx_transfer *t, struct sbx_flight *f, size_t n)
{
    uint64_t spent = n < f->reserve ? n : f->reserve;

    f->reserve -= spent;
    t->reserved -= spent;
    pthread_mutex_lock(&t->p->lock);
    t->p->received += n;
    pthread_mutex_unlock(&t->p->lock);
    t->bytes_left -= n < t->bytes_left ? n : t->bytes_left;
    sbx_observe_bytes(&t->p->observer, n);
}

static enum sbx_status on_write(void *ctx, const struct sbx_wanted *file, const void *bytes,
                                size_t n, struct sbx_error *err)
{
    struct sbx_transfer *t = ctx;
    struct sbx_flight *f = flight_of(file);
    struct sbx_error why = {.status = SBX_OK};
    bool fits = n <= t->bytes_left;

    charge(t, f, n);
    if (f->decided || !f->begun)
        return sbx_err_set(err, SBX_E_CANCELLED, 0, "the file was refused");
    if (!fits) {
        f->decided = true;
        sbx_pass_decide(t->p, f->item, SBX_DEFERRED, SBX_DEFER_OVER_BUDGET);
        return sbx_err_set(err, SBX_E_LIMIT, 0, "the pass's bytes ran out");
    }
    if (n > f->wanted.size - f->got) {
        f->decided = true;
        sbx_judge_changed(t, f->item, NULL);
        return sbx_err_set(err, SBX_E_LIMIT, 0, "more than the listed bytes");
    }
    if (sbx_fs_tmp_write(&f->tmp, bytes, n, &why))
        return host_refused(t, f, &why, err);
    sbx_digest_add(&f->digest, bytes, n);
    f->got += n;
    return SBX_OK;
}

/* Judges what can be judged now: the record that came with the stream, or nothing at all if files
 * are not confirmed. A file without a record is judged with its batch, and so is one that may have
 * come in several blocks, whatever the user wants: those could be of several versions. */
static bool acceptable(struct sbx_transfer *t, const struct sbx_flight *f, const char *record,
                       size_t n, struct sbx_ready *ready)
{
    const struct sbx_options *o = t->p->o;
    enum sbx_confirmed c = SBX_CONFIRM_SAME;
    bool trusted = o->no_confirm && (record || f->got <= SBX_HTTP_BLOCK);

    ready->confirmed = trusted || record;
    if (!ready->confirmed)
        return true;
    if (trusted)
        sbx_pass_flag(t->p, f->item, SBX_ITEM_UNCONFIRMED);
    else
        c = sbx_confirm_record(record_of(t, f), record, n, o->ignore_ctime);
    return sbx_judge_file(t, f->item, c, f->got, ready->digest);
}

static enum sbx_status finish(struct sbx_transfer *t, struct sbx_flight *f, struct sbx_error *err)
{
    const struct sbx_item *item = &t->p->items[f->item];
    const struct sbx_fs_finish how = {
        .mtime = record_of(t, f)->mtime,
        .has_mtime = true,
        .has_mode = item->flags & SBX_ITEM_EXISTS,
        .mode = item->mode,
        .sync = t->p->o->durability == SBX_DURABILITY_FULL,
    };
    bool no_times = false, no_mode = false;
    enum sbx_status st = sbx_fs_tmp_finish(&f->tmp, &how, &no_times, &no_mode, err);

    if (st)
        return st;
    if (no_times)
        sbx_pass_warn(t->p, SBX_WARN_TIMES);
    if (no_mode)
        sbx_pass_warn(t->p, SBX_WARN_MODE);
    return SBX_OK;
}

static void complete(struct sbx_transfer *t, struct sbx_flight *f, const char *record, size_t n)
{
    struct sbx_ready ready = {
        .item = f->item, .serial = f->serial, .dev = f->dev, .ino = f->ino, .size = f->got};
    struct sbx_error why = {.status = SBX_OK};
    char name[SBX_TMP_NAME];
    struct stat st;

    if (fstat(f->tmp.fd, &st) == 0)
        ready.file_ino = st.st_ino;
    sbx_digest_final(&f->digest, ready.digest);
    if (!acceptable(t, f, record, n, &ready))
        return;
    memcpy(name, f->tmp.name, sizeof(name));
    if (finish(t, f, &why)) {
        sbx_pass_host_failed(t->p, f->item, &why);
        return;
    }
    if (sbx_batch_add(t, &ready, &why)) {
        (void)!sbx_fs_remove(f->dirfd, name, NULL);
        sbx_pass_host_failed(t->p, f->item, &why);
    }
}

/* Whether a result has more to say than its reason's name does. */
static bool needs_words(enum sbx_fetch_result result)
{
    switch (result) {
    case SBX_FETCH_OK:
    case SBX_FETCH_VANISHED:
    case SBX_FETCH_DENIED:
    case SBX_FETCH_NOT_REGULAR:
    case SBX_FETCH_CHANGED:
    case SBX_FETCH_CANCELLED:
        return false;
    default:
        return true;
    }
}

static void on_end(void *ctx, const struct sbx_wanted *file, enum sbx_fetch_result result,
                   const char *record, size_t record_len, const struct sbx_error *why)
{
    struct sbx_transfer *t = ctx;
    struct sbx_flight *f = flight_of(file);

    if (!f->decided && why && why->status && needs_words(result))
        sbx_observe_text(&t->p->observer, file->path, file->path_len, why->msg);
    if (!f->decided && result == SBX_FETCH_OK && f->begun)
        complete(t, f, record, record_len);
    else if (!f->decided)
        sbx_judge_result(t, f->item, result);
    flight_done(t, f);
}

struct sbx_queue sbx_flight_queue(struct sbx_transfer *t)
{
    return (struct sbx_queue){
        .ctx = t,
        .ready_fd = t->ready_fd,
        .next = on_next,
        .begin = on_begin,
        .write = on_write,
        .end = on_end,
    };
}

void sbx_flight_settle(struct sbx_transfer *t)
{
    while (t->busy) {
        struct sbx_flight *f = t->busy;

        if (!f->decided)
            sbx_judge_result(t, f->item, SBX_FETCH_LOST);
        flight_done(t, f);
    }
    sbx_batch_hand_over(t);
}
