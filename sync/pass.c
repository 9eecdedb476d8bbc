/* What the stages of a pass share: decisions about files, and why a pass has to end. */
#include "sync/pass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/quote.h"

bool sbx_pass_cancelled(const struct sbx_pass *p)
{
    struct pollfd fd = {.fd = p->cancel_fd, .events = POLLIN};

    return p->cancel_fd >= 0 && poll(&fd, 1, 0) > 0;
}

enum sbx_status sbx_pass_check(const struct sbx_pass *p, uint64_t until_ns, struct sbx_error *err)
{
    if (sbx_pass_cancelled(p))
        return sbx_err_set(err, SBX_E_CANCELLED, 0, "cancelled");
    if (sbx_clock_now() >= until_ns)
        return sbx_err_set(err, SBX_E_DEADLINE, 0, "the deadline passed");
    return SBX_OK;
}

void sbx_pass_decide(struct sbx_pass *p, size_t i, enum sbx_outcome outcome, enum sbx_reason reason)
{
    struct sbx_event file = {.path = p->records[i].path,
                             .path_len = p->records[i].path_len,
                             .outcome = outcome,
                             .reason = reason};

    pthread_mutex_lock(&p->lock);
    p->items[i].outcome = (uint8_t)outcome;
    p->items[i].reason = (uint8_t)reason;
    if (outcome == SBX_PUBLISHED) {
        p->eio_in_row = 0;
        file.unstable = p->items[i].flags & SBX_ITEM_UNSTABLE;
        file.unconfirmed = p->items[i].flags & SBX_ITEM_UNCONFIRMED;
    }
    file.replaces = outcome == SBX_WOULD_PUBLISH && p->items[i].flags & SBX_ITEM_REPLACES;
    pthread_mutex_unlock(&p->lock);
    if (outcome != SBX_UNCHANGED && outcome != SBX_OUTCOME_NONE)
        sbx_observe_file(&p->observer, &file);
}

/* Keeps what the report says beside a reason. Where memory or the limit of notes has run out the
 * reason stands alone: the report cannot name more files than it has notes for. */
static void note(struct sbx_pass *p, size_t i, const char *with, const char *step, int os_errno)
{
    struct sbx_note made = {.os_errno = os_errno};
    void *array;

    pthread_mutex_lock(&p->lock);
    array = p->notes;
    if ((!*with || !sbx_arena_copy(&p->text, with, strlen(with), &made.with, NULL)) &&
        (!*step || !sbx_arena_copy(&p->text, step, strlen(step), &made.step, NULL)) &&
        !sbx_array_grow(&array, &p->cap_notes, p->n_notes + 1, p->o->report_limit + 1, sizeof(made),
                        NULL)) {
        p->notes = array;
        p->notes[p->n_notes++] = made;
        p->items[i].note = (uint32_t)p->n_notes;
    }
    pthread_mutex_unlock(&p->lock);
}

void sbx_pass_refuse(struct sbx_pass *p, size_t i, enum sbx_reason reason, const char *with)
{
    if (*with)
        note(p, i, with, "", 0);
    sbx_pass_decide(p, i, SBX_REFUSED, reason);
}

static bool host_full(int os_errno)
{
    return os_errno == ENOSPC || os_errno == EDQUOT || os_errno == EROFS;
}

void sbx_pass_host_failed(struct sbx_pass *p, size_t i, const struct sbx_error *err)
{
    bool ends;

    note(p, i, "", err->step, err->os_errno);
    sbx_pass_decide(p, i, SBX_FAILED, SBX_FAIL_HOST);
    pthread_mutex_lock(&p->lock);
    p->eio_in_row = err->os_errno == EIO ? p->eio_in_row + 1 : 0;
    ends = host_full(err->os_errno) || err->status == SBX_E_NOMEM || p->eio_in_row >= SBX_EIO_FILES;
    if (ends && !p->host_error.status) {
        p->host_error = *err;
        (void)sbx_err_wrap(&p->host_error, err->status, "'%s'",
                           SBX_QUOTE_N(p->records[i].path, p->records[i].path_len));
    }
    pthread_mutex_unlock(&p->lock);
}

void sbx_pass_flag(struct sbx_pass *p, size_t i, uint8_t flag)
{
    pthread_mutex_lock(&p->lock);
    p->items[i].flags |= flag;
    pthread_mutex_unlock(&p->lock);
}

enum sbx_reason sbx_pass_ended(struct sbx_pass *p)
{
    enum sbx_reason reason = SBX_REASON_NONE;

    pthread_mutex_lock(&p->lock);
    if (p->host_error.status)
        reason = SBX_DEFER_HOST_FULL;
    else if (p->source_error.status)
        reason = SBX_DEFER_SOURCE_LOST;
    pthread_mutex_unlock(&p->lock);
    if (reason)
        return reason;
    if (sbx_pass_cancelled(p))
        return SBX_DEFER_CANCELLED;
    return sbx_clock_now() >= p->stop_ns ? SBX_DEFER_DEADLINE : SBX_REASON_NONE;
}

void sbx_pass_warn(struct sbx_pass *p, enum sbx_warning warning)
{
    bool first;

    pthread_mutex_lock(&p->lock);
    first = !p->warned[warning];
    p->warned[warning] = true;
    pthread_mutex_unlock(&p->lock);
    if (first)
        sbx_observe_warning(&p->observer, warning);
}

enum sbx_status sbx_pass_fact(struct sbx_pass *p, size_t i, const struct stat *st,
                              const unsigned char digest[SBX_DIGEST_LEN], struct sbx_error *err)
{
    struct sbx_item *item = &p->items[i];
    struct sbx_fact *fact;
    enum sbx_status rc = SBX_OK;
    void *array;

    if (!item->fact) {
        array = p->facts;
        rc = sbx_array_grow(&array, &p->cap_facts, p->n_facts + 1, p->n, sizeof(*fact), err);
        if (!rc) {
            p->facts = array;
            item->fact = (uint32_t)++p->n_facts;
        }
    }
    if (!rc) {
        fact = &p->facts[item->fact - 1];
        fact->host = (struct sbx_host_facts){
            .ino = st->st_ino,
            .size = (uint64_t)st->st_size,
            .mtime = {.sec = st->st_mtim.tv_sec, .nsec = (uint32_t)st->st_mtim.tv_nsec},
            .ctime = {.sec = st->st_ctim.tv_sec, .nsec = (uint32_t)st->st_ctim.tv_nsec},
        };
        memcpy(fact->digest, digest, SBX_DIGEST_LEN);
    }
    return rc;
}

size_t sbx_dir_len(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n > 0 ? n - 1 : 0;
}
