#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "fsutil/durable.h"
#include "fsutil/tmp.h"
#include "preflight/path.h"
#include "state/manifest.h"
#include "state/manifest_format.h"

#define FLUSH_AT (64 * SBX_KIB)

struct sbx_manifest_writer {
    struct sbx_fs_tmp tmp;
    struct sbx_buf buf; /* not written yet */
    struct sbx_digest digest;
    enum sbx_names names;
    uint64_t bytes, lines;
    enum sbx_status failed; /* what is on disk is no prefix of a manifest any more */
    size_t prev_len;        /* of the path of the last line; 0 if that came as text */
    char prev[SBX_MAX_PATH];
};

static void writer_free(struct sbx_manifest_writer **take_writer)
{
    struct sbx_manifest_writer *w = *take_writer;

    if (!w)
        return;
    sbx_fs_tmp_abort(&w->tmp);
    sbx_buf_done(&w->buf);
    free(w);
    *take_writer = NULL;
}

void sbx_manifest_writer_abort(struct sbx_manifest_writer **take_writer)
{
    writer_free(take_writer);
}

static enum sbx_status flush(struct sbx_manifest_writer *w, struct sbx_error *err)
{
    w->failed = sbx_fs_tmp_write(&w->tmp, w->buf.data, w->buf.len, err);
    sbx_buf_clear(&w->buf);
    return w->failed;
}

/* Takes buf[from..] as part of the file. A manifest over its limit would be of no use to anyone, so
 * it is not written. */
static enum sbx_status accept_bytes(struct sbx_manifest_writer *w, size_t from,
                                    struct sbx_error *err)
{
    size_t n = w->buf.len - from;

    if (n > SBX_MAX_MANIFEST_LINE || w->bytes + n > SBX_MAX_MANIFEST - SBX_MANIFEST_TRAILER) {
        w->failed = sbx_err_set(err, SBX_E_LIMIT, 0, "a line or the whole would be over its limit");
        return w->failed;
    }
    sbx_digest_add(&w->digest, w->buf.data + from, n);
    w->bytes += n;
    return w->buf.len >= FLUSH_AT ? flush(w, err) : SBX_OK;
}

static enum sbx_status add_json(struct sbx_manifest_writer *w, const struct sbx_json *json,
                                struct sbx_error *err)
{
    size_t from = w->buf.len;
    enum sbx_status st = sbx_json_write(json, &w->buf, err);

    if (!st)
        st = sbx_buf_add(&w->buf, "\n", 1, err);
    if (st) {
        w->failed = st;
        return st;
    }
    return accept_bytes(w, from, err);
}

static enum sbx_status failed_before(const struct sbx_manifest_writer *w, struct sbx_error *err)
{
    return sbx_err_set(err, w->failed, 0, "writing the manifest has failed before");
}

static enum sbx_status add_header(struct sbx_manifest_writer *w,
                                  const struct sbx_manifest_header *header, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf scratch = SBX_BUF_INIT(SBX_MAX_MANIFEST_LINE);
    SBX_JSON_AUTO struct sbx_json *json = sbx_json_object();
    size_t n = strlen(header->identity);

    sbx_json_add_str(json, "schema", SBX_MANIFEST_SCHEMA);
    if (sbx_utf8_valid(header->identity, n)) {
        sbx_json_add_bytes(json, "identity", header->identity, n);
    } else {
        enum sbx_status st = sbx_buf_reserve(&scratch, SBX_ENCODE_ROOM(n), err);

        if (st)
            return st;
        sbx_encode_base64(header->identity, n, scratch.data);
        sbx_json_add_str(json, "identity_b64", scratch.data);
    }
    sbx_json_add_str(json, "names",
                     header->names == SBX_NAMES_POSIX ? SBX_MANIFEST_NAMES_POSIX
                                                      : SBX_MANIFEST_NAMES_PORTABLE);
    return add_json(w, json, err);
}

enum sbx_status sbx_manifest_writer_new(int statedir, const char *token, uint64_t serial,
                                        const struct sbx_manifest_header *header,
                                        struct sbx_manifest_writer **ret, struct sbx_error *err)
{
    struct sbx_manifest_writer *w = calloc(1, sizeof(*w));
    enum sbx_status st;

    if (!w)
        return sbx_err_nomem(err);
    w->tmp = SBX_FS_TMP_INIT;
    w->buf = SBX_BUF_INIT(FLUSH_AT + SBX_MAX_MANIFEST_LINE);
    w->names = header->names;
    sbx_digest_init(&w->digest);
    /* 0644 & umask is 0666 & umask & ~022, also under a default ACL; a chmod could be refused. */
    st = sbx_fs_tmp_open_mode(&w->tmp, statedir, token, serial, 0644, err);
    if (!st)
        st = add_header(w, header, err);
    if (st) {
        writer_free(&w);
        return sbx_err_wrap(err, st, "manifest");
    }
    *ret = w;
    return SBX_OK;
}

static void add_time(struct sbx_json *json, const char *key, struct sbx_time t)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%" PRId64 ".%09" PRIu32, t.sec, t.nsec);
    sbx_json_add_str(json, key, text);
}

static void add_host(struct sbx_json *json, const struct sbx_line *line)
{
    char ino[24], digest[sizeof(SBX_MANIFEST_DIGEST ":") + (size_t)(2 * SBX_DIGEST_LEN)];
    const size_t prefix = sizeof(SBX_MANIFEST_DIGEST ":") - 1;

    (void)snprintf(ino, sizeof(ino), "%" PRIu64, line->host.ino);
    memcpy(digest, SBX_MANIFEST_DIGEST ":", prefix);
    sbx_encode_hex(line->digest, SBX_DIGEST_LEN, digest + prefix);
    sbx_json_add_str(json, "ino", ino);
    sbx_json_add_uint(json, "host_size", line->host.size);
    add_time(json, "host_mtime", line->host.mtime);
    add_time(json, "host_ctime", line->host.ctime);
    sbx_json_add_str(json, "digest", digest);
}

/* What the reader will ask of the line. */
static enum sbx_status check_line(struct sbx_manifest_writer *w, const struct sbx_line *line,
                                  struct sbx_error *err)
{
    size_t least = line->path_len < w->prev_len ? line->path_len : w->prev_len;
    enum sbx_reason reason = sbx_pre_path(line->path, line->path_len, w->names);
    int c = reason ? 0 : memcmp(line->path, w->prev, least);

    if (reason || line->size > INT64_MAX || line->host.size > INT64_MAX ||
        line->mtime.nsec >= SBX_NS_PER_S || line->ctime.nsec >= SBX_NS_PER_S)
        return sbx_err_set(err, SBX_E_USAGE, 0, "manifest: a line that could not be read again");
    if (c < 0 || (c == 0 && line->path_len <= w->prev_len))
        return sbx_err_set(err, SBX_E_USAGE, 0, "manifest: lines out of order");
    return SBX_OK;
}

enum sbx_status sbx_manifest_writer_line(struct sbx_manifest_writer *writer,
                                         const struct sbx_line *line, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = NULL;
    enum sbx_status st;

    if (writer->failed)
        return failed_before(writer, err);
    st = check_line(writer, line, err);
    if (st)
        return st;
    json = sbx_json_object();
    sbx_json_add_bytes(json, "path", line->path, line->path_len);
    sbx_json_add_uint(json, "size", line->size);
    add_time(json, "mtime", line->mtime);
    add_time(json, "ctime", line->ctime);
    if (line->young)
        sbx_json_add_bool(json, "young", true);
    if (line->unstable)
        sbx_json_add_bool(json, "unstable", true);
    if (line->has_host)
        add_host(json, line);
    if (sbx_manifest_last(line->last))
        sbx_json_add_str(json, "last", sbx_manifest_last(line->last));
    st = add_json(writer, json, err);
    if (st)
        return sbx_err_wrap(err, st, "manifest");
    memcpy(writer->prev, line->path, line->path_len);
    writer->prev_len = line->path_len;
    writer->lines++;
    return SBX_OK;
}

enum sbx_status sbx_manifest_writer_text(struct sbx_manifest_writer *writer, const char *text,
                                         size_t n, struct sbx_error *err)
{
    size_t from = writer->buf.len;
    enum sbx_status st;

    if (writer->failed)
        return failed_before(writer, err);
    if (n == 0 || n > SBX_MAX_MANIFEST_LINE || memchr(text, '\n', n) != text + n - 1)
        return sbx_err_set(err, SBX_E_USAGE, 0, "manifest: text that is no line");
    st = sbx_buf_add(&writer->buf, text, n, err);
    if (!st)
        st = accept_bytes(writer, from, err);
    if (st) {
        writer->failed = st;
        return sbx_err_wrap(err, st, "manifest");
    }
    writer->prev_len = 0;
    writer->lines++;
    return SBX_OK;
}

static enum sbx_status add_trailer(struct sbx_manifest_writer *w, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = sbx_json_object();
    unsigned char digest[SBX_DIGEST_LEN];
    char hex[2 * SBX_DIGEST_LEN + 1];
    enum sbx_status st;

    sbx_digest_final(&w->digest, digest);
    sbx_encode_hex(digest, sizeof(digest), hex);
    sbx_json_add_uint(json, "lines", w->lines);
    sbx_json_add_str(json, SBX_MANIFEST_DIGEST, hex);
    st = sbx_json_write(json, &w->buf, err);
    if (!st)
        st = sbx_buf_add(&w->buf, "\n", 1, err);
    return st ? st : flush(w, err);
}

/* Gives the finished temporary its name; a failure before that removes it. */
static enum sbx_status publish(const struct sbx_fs_tmp *tmp, bool sync, struct sbx_error *err)
{
    enum sbx_fs_published how;
    struct stat st;
    bool cannot;
    enum sbx_status status =
        sbx_fs_publish(tmp->dirfd, tmp->name, SBX_MANIFEST_FILE, true, &how, &st, err);

    if (!status && how == SBX_FS_NAME_REFUSED)
        status = sbx_err_set(err, SBX_E_HOST, 0, "the host refuses the name " SBX_MANIFEST_FILE);
    if (status) {
        (void)!sbx_fs_remove(tmp->dirfd, tmp->name, NULL);
        return status;
    }
    return sync ? sbx_fs_sync_dir(tmp->dirfd, &cannot, err) : SBX_OK;
}

enum sbx_status sbx_manifest_writer_commit(struct sbx_manifest_writer **take_writer,
                                           enum sbx_durability durability, struct sbx_error *err)
{
    struct sbx_manifest_writer *w = *take_writer;
    const struct sbx_fs_finish how = {.sync = durability != SBX_DURABILITY_NONE};
    bool no_times, no_mode;
    enum sbx_status st = w->failed ? failed_before(w, err) : add_trailer(w, err);

    if (!st)
        st = sbx_fs_tmp_finish(&w->tmp, &how, &no_times, &no_mode, err);
    if (!st)
        st = publish(&w->tmp, how.sync, err);
    writer_free(take_writer);
    return st ? sbx_err_wrap(err, st, "manifest") : SBX_OK;
}
