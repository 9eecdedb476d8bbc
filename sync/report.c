/* Listed paths are bytes of the sandbox: they leave here as bytes with their length, and besides as
 * an escaped display. */
#include "sync/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "sync/pass.h"

#define DISPLAY_MAX 512 /* bytes of an escaped path */

_Static_assert(sizeof(((struct sbx_report_file *)0)->with) == (SBX_MAX_WITH + 1) * sizeof(char *),
               "the list of other spellings has room for its end");
_Static_assert(sizeof(((struct sbx_report_file *)0)->digest) == SBX_DIGEST_LEN, "digest");

enum sbx_status sbx_report_new(struct sbx_report **ret, struct sbx_error *err)
{
    struct sbx_report *r = calloc(1, sizeof(*r));

    if (!r)
        return sbx_err_nomem(err);
    r->text = SBX_ARENA_INIT(SIZE_MAX);
    r->with_left = SBX_MAX_WITH_BYTES;
    *ret = r;
    return SBX_OK;
}

void sbx_report_free(struct sbx_report *report)
{
    if (!report)
        return;
    sbx_arena_done(&report->text);
    free(report->files);
    free(report);
}

static const char *copy(struct sbx_report *r, const char *bytes, size_t n)
{
    const char *made = NULL;

    return sbx_arena_copy(&r->text, bytes, n, &made, NULL) ? NULL : made;
}

/* Text of the operator as JSON can hold it. */
static const char *copy_text(struct sbx_report *r, const char *text)
{
    char shown[DISPLAY_MAX];
    const char *made;

    if (!sbx_utf8_valid(text, strlen(text)))
        text = sbx_quote_ascii(shown, sizeof(shown), text, strlen(text));
    made = copy(r, text, strlen(text));
    return made ? made : "";
}

static void add_alias_spellings(struct sbx_report *r, const struct sbx_pass *p, size_t i,
                                struct sbx_report_file *file)
{
    struct sbx_pre_with with[SBX_MAX_WITH];
    size_t n = p->pre ? sbx_preflight_with(p->pre, i, with) : 0;

    for (size_t k = 0; k < n; k++) {
        SBX_BUF_AUTO struct sbx_buf text = SBX_BUF_INIT(SIZE_MAX / 2);

        if (with[k].path_len + 2 > r->with_left)
            return;
        r->with_left -= with[k].path_len + 2;
        if (sbx_buf_add(&text, with[k].path, with[k].path_len, NULL) ||
            (with[k].directory && sbx_buf_str(&text, "/", NULL)))
            return;
        file->with[k] = copy(r, text.data, text.len);
    }
}

static void add_note(struct sbx_report *r, const struct sbx_pass *p, size_t i,
                     struct sbx_report_file *file)
{
    const struct sbx_note *note;

    if (file->reason == SBX_REFUSE_ALIAS)
        add_alias_spellings(r, p, i, file);
    if (!p->items[i].note)
        return;
    note = &p->notes[p->items[i].note - 1];
    if (note->with && file->outcome == SBX_REFUSED &&
        sbx_utf8_valid(note->with, strlen(note->with)))
        file->with[0] = copy(r, note->with, strlen(note->with));
    if (note->step && (file->reason == SBX_FAIL_HOST || file->reason == SBX_REFUSE_HOST_NAME)) {
        file->step = copy(r, note->step, strlen(note->step));
        file->os_errno = note->os_errno;
    }
}

/* False where memory has run out: the file is then counted as omitted. */
static bool add_file(struct sbx_report *r, const struct sbx_pass *p, size_t i)
{
    const struct sbx_record *record = &p->records[i];
    const struct sbx_item *item = &p->items[i];
    struct sbx_report_file *file = &r->files[r->n_files];
    char shown[DISPLAY_MAX];

    *file = (struct sbx_report_file){
        .path = copy(r, record->path, record->path_len),
        .path_len = record->path_len,
        .outcome = item->outcome,
        .reason = item->reason,
        .size = record->size,
        .unstable = item->outcome == SBX_PUBLISHED && item->flags & SBX_ITEM_UNSTABLE,
        .unconfirmed = item->outcome == SBX_PUBLISHED && item->flags & SBX_ITEM_UNCONFIRMED,
        .replaces = item->flags & SBX_ITEM_REPLACES,
    };
    (void)sbx_quote_ascii(shown, sizeof(shown), record->path, record->path_len);
    file->display = copy(r, shown, strlen(shown));
    if (!file->path || !file->display)
        return false;
    if (item->outcome == SBX_PUBLISHED && item->fact) {
        const struct sbx_fact *fact = &p->facts[item->fact - 1];

        file->has_digest = true;
        file->size = fact->host.size;
        memcpy(file->digest, fact->digest, sizeof(file->digest));
    }
    add_note(r, p, i, file);
    r->n_files++;
    return true;
}

static bool is_trouble(enum sbx_outcome outcome)
{
    return outcome == SBX_REFUSED || outcome == SBX_FAILED || outcome == SBX_DEFERRED;
}

static void add_files(struct sbx_report *r, const struct sbx_pass *p)
{
    uint64_t named = p->n < p->o->report_limit ? p->n : p->o->report_limit;
    size_t cap = 0;
    void *array = NULL;

    r->omitted = p->n;
    if (named == 0 || sbx_array_grow(&array, &cap, named, named, sizeof(*r->files), NULL))
        return;
    r->files = array;
    for (int trouble = 1; trouble >= 0; trouble--) {
        for (size_t i = 0; i < p->n && r->n_files < named; i++) {
            if (is_trouble(p->items[i].outcome) == trouble && !add_file(r, p, i))
                break;
        }
    }
    r->omitted = p->n - r->n_files;
}

static enum sbx_pass_outcome outcome_of(const struct sbx_report *r, enum sbx_status status)
{
    uint64_t good = r->counts[SBX_PUBLISHED] + r->counts[SBX_WOULD_PUBLISH] +
                    r->counts[SBX_UNCHANGED] + r->counts[SBX_EXCLUDED];
    bool listed = r->listing == SBX_LISTING_COMPLETE || r->listing == SBX_LISTING_WARNED;

    if (!listed || (status && status != SBX_E_CANCELLED))
        return SBX_PASS_FAILED;
    if (status || good != r->listed || r->listing == SBX_LISTING_WARNED)
        return SBX_PASS_PARTIAL;
    return SBX_PASS_COMPLETE;
}

void sbx_report_fill(struct sbx_report *report, const struct sbx_pass *p, enum sbx_status status,
                     const struct sbx_error *why)
{
    report->source = copy_text(report, p->o->source ? p->o->source : p->identity);
    report->dest = copy_text(report, p->o->dest);
    report->started_s = p->started_s;
    report->elapsed_ns = sbx_clock_now() - p->started_ns;
    report->error = *why;
    report->listing = p->listing_state;
    if (p->list) {
        report->records = sbx_list_seen(p->list);
        report->listing_bytes = sbx_list_bytes(p->list);
        report->skipped = sbx_list_frame(p->list)->skipped;
    }
    report->listed = p->n;
    for (size_t i = 0; i < p->n; i++) {
        report->counts[p->items[i].outcome]++;
        if (p->items[i].reason)
            report->reasons[p->items[i].reason]++;
    }
    memcpy(report->warned, p->warned, sizeof(report->warned));
    report->dry_run = p->o->dry_run;
    report->posix_would_take = p->pre ? sbx_preflight_posix_would_take(p->pre) : 0;
    report->received = p->received;
    report->published = p->published;
    add_files(report, p);
    report->outcome = outcome_of(report, status);
}

enum sbx_pass_outcome sbx_report_outcome(const struct sbx_report *report)
{
    return report->outcome;
}

enum sbx_listing_state sbx_report_listing(const struct sbx_report *report)
{
    return report->listing;
}

uint64_t sbx_report_listed(const struct sbx_report *report)
{
    return report->listed;
}

uint64_t sbx_report_count(const struct sbx_report *report, enum sbx_outcome outcome)
{
    return (size_t)outcome < SBX_OUTCOMES ? report->counts[outcome] : 0;
}

uint64_t sbx_report_reason(const struct sbx_report *report, enum sbx_reason reason)
{
    return (size_t)reason < SBX_REASONS ? report->reasons[reason] : 0;
}

bool sbx_report_warned(const struct sbx_report *report, enum sbx_warning warning)
{
    return (size_t)warning < SBX_WARNINGS && report->warned[warning];
}

uint64_t sbx_report_skipped(const struct sbx_report *report)
{
    return report->skipped;
}

uint64_t sbx_report_posix_would_take(const struct sbx_report *report)
{
    return report->posix_would_take;
}

uint64_t sbx_report_received(const struct sbx_report *report)
{
    return report->received;
}

uint64_t sbx_report_published(const struct sbx_report *report)
{
    return report->published;
}

double sbx_report_elapsed(const struct sbx_report *report)
{
    return (double)report->elapsed_ns / SBX_NS_PER_S;
}

const struct sbx_error *sbx_report_error(const struct sbx_report *report)
{
    return &report->error;
}

const struct sbx_report_file *sbx_report_file(const struct sbx_report *report, size_t i)
{
    return i < report->n_files ? &report->files[i] : NULL;
}

size_t sbx_report_files(const struct sbx_report *report)
{
    return report->n_files;
}
