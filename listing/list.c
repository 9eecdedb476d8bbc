/* Decoded bytes of a listing come in, chosen by the sandbox and trusted with nothing; out go
 * records in path order, only if the listing as a whole is valid. What a record says is not judged
 * here, except where it contradicts another. */
#include "listing/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"

struct sbx_list {
    struct sbx_list_decoder *decoder; /* owned */
    struct sbx_list_limits limits;
    struct sbx_buf part;        /* owned: the beginning of a record that was cut */
    struct sbx_arena paths;     /* owned */
    struct sbx_record *records; /* owned */
    size_t n, cap;
    uint64_t seen, bytes;
    bool closed; /* the `end` record was seen */
    uint64_t find;
    bool find_errors, duplicates;
    enum sbx_listing_state state;
};

static void drop_records(struct sbx_list *list)
{
    free(list->records);
    list->records = NULL;
    list->n = list->cap = 0;
    sbx_arena_done(&list->paths);
    sbx_buf_done(&list->part);
}

/* A failed listing has no records. Returns st. */
static enum sbx_status settle(struct sbx_list *list, enum sbx_status st)
{
    if (!st)
        return st;
    drop_records(list);
    list->state = st == SBX_E_LIMIT ? SBX_LISTING_TRUNCATED : SBX_LISTING_DAMAGED;
    return st;
}

static enum sbx_status add_record(struct sbx_list *list, const char *bytes, size_t n,
                                  struct sbx_error *err)
{
    struct sbx_record record;
    enum sbx_status st = sbx_list_record_parse(bytes, n, &record, err);
    void *array = list->records;

    if (st)
        return st;
    if (list->seen >= list->limits.max_records)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "more than %llu records",
                           (unsigned long long)list->limits.max_records);
    st = sbx_arena_copy(&list->paths, record.path, record.path_len, &record.path, err);
    if (st)
        return st;
    st = sbx_array_grow(&array, &list->cap, list->n + 1, SIZE_MAX, sizeof(record), err);
    if (st)
        return st;
    list->records = array;
    list->records[list->n++] = record;
    list->seen++;
    return SBX_OK;
}

/* A record without its NUL. The last one is "end <status>", and no other begins with a letter. */
static enum sbx_status one_record(struct sbx_list *list, const char *bytes, size_t n,
                                  struct sbx_error *err)
{
    static const char end[] = "end ";
    size_t n_end = sizeof(end) - 1;

    if (list->closed)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "records after the last one");
    if (n < n_end || memcmp(bytes, end, n_end) != 0)
        return add_record(list, bytes, n, err);
    if (!sbx_list_number(bytes + n_end, n - n_end, &list->find))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "a last record without a status");
    list->closed = true;
    return SBX_OK;
}

/* Takes the decoder's bytes, cut anywhere. Only a record that is cut is copied before it is read.
 */
static enum sbx_status on_decoded(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct sbx_list *list = ctx;
    const char *p = bytes, *end = p + n;

    list->bytes += n;
    while (p < end) {
        const char *nul = memchr(p, '\0', (size_t)(end - p));
        size_t len = (size_t)((nul ? nul : end) - p);
        enum sbx_status st = SBX_OK;

        if (!nul || list->part.len > 0)
            st = sbx_buf_add(&list->part, p, len, err);
        if (!st && nul && list->part.len > 0)
            st = one_record(list, list->part.data, list->part.len, err);
        else if (!st && nul)
            st = one_record(list, p, len, err);
        if (st)
            return st;
        if (nul)
            sbx_buf_clear(&list->part);
        p += len + (nul ? 1 : 0);
    }
    return SBX_OK;
}

enum sbx_status sbx_list_new(const char *nonce, const struct sbx_list_limits *limits,
                             struct sbx_list **ret, struct sbx_error *err)
{
    size_t most = limits->max_bytes < SIZE_MAX ? (size_t)limits->max_bytes : SIZE_MAX;
    struct sbx_list *list = calloc(1, sizeof(*list));
    enum sbx_status st;

    if (!list)
        return sbx_err_nomem(err);
    list->limits = *limits;
    list->part = SBX_BUF_INIT(most);
    list->paths = SBX_ARENA_INIT(most); /* a record is longer than its path and a NUL */
    st = sbx_list_decoder_new(nonce, limits->max_bytes, (struct sbx_sink){on_decoded, list},
                              &list->decoder, err);
    if (st) {
        free(list);
        return st;
    }
    *ret = list;
    return SBX_OK;
}

void sbx_list_free(struct sbx_list *list)
{
    if (!list)
        return;
    drop_records(list);
    sbx_list_decoder_free(list->decoder);
    free(list);
}

enum sbx_status sbx_list_write(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct sbx_list *list = ctx;

    return settle(list, sbx_list_decoder_push(list->decoder, bytes, n, err));
}

static enum sbx_status check_exit(struct sbx_exit ended, struct sbx_error *err)
{
    switch (ended.kind) {
    case SBX_EXIT_EXITED:
        if (ended.code == 0)
            return SBX_OK;
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the remote script ended with status %d",
                           ended.code);
    case SBX_EXIT_SIGNALLED:
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the remote script was ended by signal %d",
                           ended.code);
    case SBX_EXIT_DEADLINE:
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the remote script ran into its time limit");
    default:
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the end of the remote script is unknown");
    }
}

/* What is left to check of the records of a whole frame. */
static enum sbx_status check_records(struct sbx_list *list, struct sbx_error *err)
{
    const struct sbx_list_frame *frame = sbx_list_decoder_frame(list->decoder);

    if (!list->closed || list->part.len > 0)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the listing was cut: no last record");
    if (list->find != (uint64_t)frame->find)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the last record contradicts the end line");
    list->find_errors = frame->find != 0 || frame->walk != 0;
    if (list->find_errors && list->n == 0)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "remote find failed and listed nothing");
    return SBX_OK;
}

static int cmp_time(struct sbx_time a, struct sbx_time b)
{
    if (a.sec != b.sec)
        return a.sec < b.sec ? -1 : 1;
    return (a.nsec > b.nsec) - (a.nsec < b.nsec);
}

static bool same_facts(const struct sbx_record *a, const struct sbx_record *b)
{
    return a->size == b->size && a->flags == b->flags && sbx_time_equal(a->mtime, b->mtime) &&
           sbx_time_equal(a->ctime, b->ctime);
}

/* Facts take part, so that records of one path have one order whatever the sort does. */
static int cmp_records(const void *x, const void *y)
{
    const struct sbx_record *a = x, *b = y;
    int order = sbx_list_path_cmp(a->path, a->path_len, b->path, b->path_len);

    if (!order)
        order = (a->size > b->size) - (a->size < b->size);
    if (!order)
        order = cmp_time(a->mtime, b->mtime);
    if (!order)
        order = cmp_time(a->ctime, b->ctime);
    return order ? order : (a->flags > b->flags) - (a->flags < b->flags);
}

/* Sorted records of one path stand side by side: the first stays. */
static void merge(struct sbx_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct sbx_record *r = &list->records[i];
        struct sbx_record *last = kept ? &list->records[kept - 1] : NULL;

        if (!last || last->path_len != r->path_len ||
            memcmp(last->path, r->path, r->path_len) != 0) {
            list->records[kept++] = *r;
            continue;
        }
        if (same_facts(last, r))
            list->duplicates = true;
        else
            last->flags |= SBX_RECORD_CONFLICT;
    }
    list->n = kept;
}

/* A ctime in whole seconds does not tell a change within its second; one that is not over yet by
 * the remote clock, or only just, may still stand for two versions. */
static void mark_young(struct sbx_list *list)
{
    int64_t since;

    if (__builtin_sub_overflow(sbx_list_decoder_frame(list->decoder)->now, SBX_YOUNG_S, &since))
        since = INT64_MIN;
    for (size_t i = 0; i < list->n; i++) {
        struct sbx_record *r = &list->records[i];

        if (r->ctime.nsec == 0 && r->ctime.sec >= since)
            r->flags |= SBX_RECORD_YOUNG;
    }
}

static enum sbx_listing_state state_of(const struct sbx_list *list)
{
    switch (sbx_list_decoder_frame(list->decoder)->root) {
    case SBX_ROOT_MISSING:
        return SBX_LISTING_MISSING;
    case SBX_ROOT_NOTDIR:
        return SBX_LISTING_NOTDIR;
    case SBX_ROOT_DENIED:
        return SBX_LISTING_DENIED;
    default:
        return list->find_errors || list->duplicates ? SBX_LISTING_WARNED : SBX_LISTING_COMPLETE;
    }
}

enum sbx_status sbx_list_end(struct sbx_list *list, struct sbx_exit ended, struct sbx_error *err)
{
    /* A fault in what has come is the reason for whatever followed; else the script's own end
     * explains best why something is missing. */
    enum sbx_status st = sbx_list_decoder_push(list->decoder, "", 0, err);

    if (!st)
        st = check_exit(ended, err);
    if (!st)
        st = sbx_list_decoder_end(list->decoder, err);
    if (!st && sbx_list_decoder_frame(list->decoder)->root == SBX_ROOT_OK)
        st = check_records(list, err);
    if (st)
        return settle(list, st);
    sbx_buf_done(&list->part);
    if (list->n > 0)
        qsort(list->records, list->n, sizeof(*list->records), cmp_records);
    merge(list);
    mark_young(list);
    list->state = state_of(list);
    return SBX_OK;
}

enum sbx_listing_state sbx_list_state(const struct sbx_list *list)
{
    return list->state;
}

const struct sbx_list_frame *sbx_list_frame(const struct sbx_list *list)
{
    return sbx_list_decoder_frame(list->decoder);
}

struct sbx_record *sbx_list_records(struct sbx_list *list, size_t *ret_n)
{
    *ret_n = list->n;
    return list->records;
}

uint64_t sbx_list_bytes(const struct sbx_list *list)
{
    return list->bytes;
}

uint64_t sbx_list_seen(const struct sbx_list *list)
{
    return list->seen;
}

bool sbx_list_find_errors(const struct sbx_list *list)
{
    return list->find_errors;
}

bool sbx_list_duplicates(const struct sbx_list *list)
{
    return list->duplicates;
}
