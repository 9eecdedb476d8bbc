/* The report as JSON, schema sbx-sync/report/1 (docs/report.schema.json). Files are written one by
 * one, so that a long report does not stand in memory twice. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/coding.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "sbx/version.h"
#include "sync/report.h"

/* Bytes of one entry: a path may be as long as a listing, and each byte an escape of six. */
#define JSON_MAX (SIZE_MAX / 2)

static void add_time(struct sbx_json *to, const char *key, int64_t epoch_s)
{
    char text[32];
    time_t t = (time_t)epoch_s;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        sbx_json_add_null(to, key);
    else
        sbx_json_add_str(to, key, text);
}

static void add_error(struct sbx_json *to, const struct sbx_error *error)
{
    struct sbx_json *e;

    if (!error->status) {
        sbx_json_add_null(to, "error");
        return;
    }
    e = sbx_json_object();
    if (error->step[0])
        sbx_json_add_str(e, "step", error->step);
    else
        sbx_json_add_null(e, "step");
    sbx_json_add_str(e, "status", sbx_status_name(error->status));
    if (error->os_errno)
        sbx_json_add_str(e, "errno", sbx_errno_name(error->os_errno));
    else
        sbx_json_add_null(e, "errno");
    sbx_json_add_str(e, "message", error->msg);
    sbx_json_add(to, "error", &e);
}

static void add_listing(struct sbx_json *to, const struct sbx_report *r)
{
    struct sbx_json *l = sbx_json_object();

    sbx_json_add_str(l, "state", sbx_listing_state_name(r->listing));
    sbx_json_add_uint(l, "records", r->records);
    sbx_json_add_uint(l, "bytes", r->listing_bytes);
    sbx_json_add_uint(l, "skipped", r->skipped);
    sbx_json_add(to, "listing", &l);
}

static void add_warnings(struct sbx_json *to, const struct sbx_report *r)
{
    struct sbx_json *list = sbx_json_array();

    for (int w = 0; w < SBX_WARNINGS; w++) {
        if (r->warned[w])
            sbx_json_add_str(list, NULL, sbx_warning_name((enum sbx_warning)w));
    }
    sbx_json_add(to, "warnings", &list);
}

static void add_counts(struct sbx_json *to, const struct sbx_report *r)
{
    struct sbx_json *counts = sbx_json_object();
    struct sbx_json *reasons = sbx_json_object();

    sbx_json_add_uint(counts, "listed", r->listed);
    for (int o = SBX_PUBLISHED; o < SBX_OUTCOMES; o++) {
        if (o != SBX_WOULD_PUBLISH || r->dry_run)
            sbx_json_add_uint(counts, sbx_outcome_name((enum sbx_outcome)o), r->counts[o]);
    }
    for (int k = SBX_REASON_NONE + 1; k < SBX_REASONS; k++) {
        if (r->reasons[k])
            sbx_json_add_uint(reasons, sbx_reason_name((enum sbx_reason)k), r->reasons[k]);
    }
    sbx_json_add(to, "counts", &counts);
    sbx_json_add(to, "reasons", &reasons);
}

static void add_bytes(struct sbx_json *to, const struct sbx_report *r)
{
    struct sbx_json *bytes = sbx_json_object();

    sbx_json_add_uint(bytes, "received", r->received);
    sbx_json_add_uint(bytes, "published", r->published);
    sbx_json_add(to, "bytes", &bytes);
}

static struct sbx_json *head(const struct sbx_report *r)
{
    struct sbx_json *o = sbx_json_object();

    sbx_json_add_str(o, "schema", "sbx-sync/report/1");
    sbx_json_add_str(o, "version", SBX_VERSION);
    sbx_json_add_str(o, "source", r->source ? r->source : "");
    sbx_json_add_str(o, "dest", r->dest ? r->dest : "");
    if (r->dry_run)
        sbx_json_add_bool(o, "dry_run", true);
    add_time(o, "started", r->started_s);
    sbx_json_add_uint(o, "elapsed_ms", r->elapsed_ns / SBX_NS_PER_MS);
    sbx_json_add_str(o, "outcome", sbx_pass_outcome_name(r->outcome));
    add_error(o, &r->error);
    add_listing(o, r);
    add_warnings(o, r);
    add_counts(o, r);
    add_bytes(o, r);
    return o;
}

static enum sbx_status add_path(struct sbx_json *to, const struct sbx_report_file *f,
                                struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf b64 = SBX_BUF_INIT(JSON_MAX);
    enum sbx_status st;

    if (sbx_utf8_valid(f->path, f->path_len)) {
        sbx_json_add_bytes(to, "path", f->path, f->path_len);
        return SBX_OK;
    }
    st = sbx_buf_reserve(&b64, SBX_ENCODE_ROOM(f->path_len), err);
    if (st)
        return st;
    sbx_encode_base64(f->path, f->path_len, b64.data);
    sbx_json_add_str(to, "path_b64", b64.data);
    sbx_json_add_str(to, "display", f->display);
    return SBX_OK;
}

static void add_digest(struct sbx_json *to, const struct sbx_report_file *f)
{
    char text[sizeof("blake2b-256:") + 2 * sizeof(f->digest)] = "blake2b-256:";

    sbx_encode_hex(f->digest, sizeof(f->digest), text + strlen(text));
    sbx_json_add_str(to, "digest", text);
}

static void add_details(struct sbx_json *to, const struct sbx_report_file *f)
{
    struct sbx_json *with = sbx_json_array();

    for (size_t k = 0; k < SBX_MAX_WITH && f->with[k]; k++)
        sbx_json_add_str(with, NULL, f->with[k]);
    if (f->with[0])
        sbx_json_add(to, "with", &with);
    sbx_json_freep(&with);
    if (f->step) {
        sbx_json_add_str(to, "step", f->step);
        sbx_json_add_str(to, "errno", sbx_errno_name(f->os_errno));
    }
    if (f->outcome == SBX_PUBLISHED || f->outcome == SBX_WOULD_PUBLISH ||
        f->outcome == SBX_UNCHANGED)
        sbx_json_add_uint(to, "size", f->size);
    if (f->has_digest)
        add_digest(to, f);
    if (f->unstable)
        sbx_json_add_bool(to, "unstable", true);
    if (f->unconfirmed)
        sbx_json_add_bool(to, "unconfirmed", true);
    if (f->replaces)
        sbx_json_add_bool(to, "replaces", true);
}

static enum sbx_status add_file(struct sbx_buf *out, const struct sbx_report_file *f,
                                struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *o = sbx_json_object();
    enum sbx_status st = add_path(o, f, err);

    if (st)
        return st;
    sbx_json_add_str(o, "outcome", sbx_outcome_name(f->outcome));
    if (f->reason)
        sbx_json_add_str(o, "reason", sbx_reason_name(f->reason));
    add_details(o, f);
    return sbx_json_write(o, out, err);
}

static enum sbx_status flush(struct sbx_buf *buf, size_t from, struct sbx_sink out,
                             struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    if (buf->len < from)
        return SBX_OK;
    if (out.write)
        st = out.write(out.ctx, buf->data, buf->len, err);
    sbx_buf_clear(buf);
    return st;
}

static enum sbx_status write_files(const struct sbx_report *r, struct sbx_buf *buf,
                                   struct sbx_sink out, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_str(buf, ",\"files\":[", err);

    for (size_t i = 0; i < r->n_files && !st; i++) {
        st = sbx_buf_str(buf, i ? ",\n " : "\n ", err);
        if (!st)
            st = add_file(buf, &r->files[i], err);
        if (!st)
            st = flush(buf, 64 * SBX_KIB, out, err);
    }
    if (!st)
        st = sbx_buf_printf(buf, err, "%s],\"files_omitted\":%llu}\n", r->n_files ? "\n" : "",
                            (unsigned long long)r->omitted);
    return st;
}

enum sbx_status sbx_report_json(const struct sbx_report *report, struct sbx_sink out,
                                struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf buf = SBX_BUF_INIT(JSON_MAX);
    SBX_JSON_AUTO struct sbx_json *o = head(report);
    enum sbx_status st = sbx_json_write(o, &buf, err);

    if (st)
        return st;
    buf.len--; /* the closing brace: the files come before it */
    st = write_files(report, &buf, out, err);
    return st ? st : flush(&buf, 1, out, err);
}
