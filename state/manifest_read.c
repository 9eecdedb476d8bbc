/* In comes a file of ours that a crash, a full disk or a hand may have damaged, or that a newer
 * version has written: nothing of it is used before its digest is proven, and its paths pass
 * preflight like remote ones. Out go facts by which a download is saved, never a deletion. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "fsutil/file.h"
#include "preflight/path.h"
#include "state/lines.h"
#include "state/manifest.h"
#include "state/manifest_format.h"

struct sbx_manifest_reader {
    int fd; /* owned */
    struct sbx_manifest_header header;
    struct sbx_buf identity;
    uint64_t body, end; /* file offsets of the first line, and of the trailer */
    struct sbx_lines lines;
    struct sbx_json *line; /* owned: what the path of the last line is borrowed from */
    size_t prev_len;       /* of the path before; 0 at the begin */
    char prev[SBX_MAX_PATH];
};

static enum sbx_status damaged(struct sbx_error *err, const char *why)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "manifest: %s", why);
}

void sbx_manifest_close(struct sbx_manifest_reader *reader)
{
    if (!reader)
        return;
    sbx_fd_close(&reader->fd);
    sbx_buf_done(&reader->identity);
    sbx_lines_done(&reader->lines);
    sbx_json_freep(&reader->line);
    free(reader);
}

const struct sbx_manifest_header *sbx_manifest_header(const struct sbx_manifest_reader *reader)
{
    return &reader->header;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_digest(const char *text, size_t n, unsigned char ret[SBX_DIGEST_LEN])
{
    if (n != 2 * (size_t)SBX_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < SBX_DIGEST_LEN; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret[i] = (unsigned char)(16 * high + low);
    }
    return true;
}

/* Decimal digits and nothing else, up to `max`. */
static bool parse_digits(const char *text, size_t n, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;

    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    if (value > max)
        return false;
    *ret = value;
    return true;
}

static bool parse_time(const char *text, size_t n, struct sbx_time *ret)
{
    const size_t fraction = 9;
    bool negative = n > 0 && text[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + (negative ? 1 : 0), sec, nsec;

    if (negative) {
        text++;
        n--;
    }
    if (n < fraction + 2 || text[n - fraction - 1] != '.' ||
        !parse_digits(text, n - fraction - 1, most, &sec) ||
        !parse_digits(text + n - fraction, fraction, UINT32_MAX, &nsec))
        return false;
    ret->sec = negative ? (int64_t)(0 - sec) : (int64_t)sec;
    ret->nsec = (uint32_t)nsec;
    return true;
}

static bool get_time(const struct sbx_json *json, const char *key, struct sbx_time *ret)
{
    const char *text;
    size_t n;

    return sbx_json_get_str(json, key, &text, &n) && parse_time(text, n, ret);
}

/* The member is missing, or has a value of its type. */
static bool get_flag(const struct sbx_json *json, const char *key, bool *ret)
{
    return sbx_json_get_bool(json, key, ret) || !sbx_json_has(json, key);
}

/* ".sbx-sync/manifest/" and a number without leading zeros above ours. */
static bool is_newer(const char *schema)
{
    const char *number = schema + strlen(SBX_MANIFEST_FAMILY);

    return strncmp(schema, SBX_MANIFEST_FAMILY, strlen(SBX_MANIFEST_FAMILY)) == 0 &&
           *number != '0' && strspn(number, "0123456789") == strlen(number) && *number;
}

static enum sbx_status read_identity(struct sbx_manifest_reader *r, const struct sbx_json *json,
                                     struct sbx_error *err)
{
    struct sbx_decoder decoder = {.coding = SBX_CODING_BASE64};
    enum sbx_status st;
    const char *text;
    size_t n, got = 0;

    if (sbx_json_get_str(json, "identity", &text, &n)) {
        st = sbx_buf_add(&r->identity, text, n, err);
    } else if (sbx_json_get_str(json, "identity_b64", &text, &n)) {
        st = sbx_buf_reserve(&r->identity, SBX_DECODE_ROOM(n), err);
        if (!st)
            st = sbx_decode(&decoder, text, n, r->identity.data, &got, err);
        if (!st)
            st = sbx_decode_end(&decoder, err);
        r->identity.len = got;
        if (!st)
            st = sbx_buf_add(&r->identity, "", 0, err);
    } else {
        return damaged(err, "no identity");
    }
    if (!st && memchr(r->identity.data, '\0', r->identity.len))
        return damaged(err, "NUL in the identity");
    r->header.identity = r->identity.data;
    return st;
}

static enum sbx_status read_header(struct sbx_manifest_reader *r, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = NULL;
    const char *text = NULL;
    size_t n = 0;
    enum sbx_status st = sbx_lines_next(&r->lines, &text, &n, err);

    if (st)
        return st;
    r->body = n;
    st = sbx_json_parse(text ? text : "", n, &json, err);
    if (st)
        return sbx_err_wrap(err, st, "manifest: header");
    if (!sbx_json_get_str(json, "schema", &text, &n))
        return damaged(err, "no schema");
    if (strcmp(text, SBX_MANIFEST_SCHEMA) != 0)
        return damaged(err, is_newer(text) ? "written by a newer version" : "unknown schema");
    if (!sbx_json_get_str(json, "names", &text, &n))
        return damaged(err, "no name profile");
    if (strcmp(text, SBX_MANIFEST_NAMES_POSIX) == 0)
        r->header.names = SBX_NAMES_POSIX;
    else if (strcmp(text, SBX_MANIFEST_NAMES_PORTABLE) == 0)
        r->header.names = SBX_NAMES_PORTABLE;
    else
        return damaged(err, "unknown name profile");
    return read_identity(r, json, err);
}

/* Finds the last line of the file and reads it; r->end is where it begins. */
static enum sbx_status read_trailer(struct sbx_manifest_reader *r, uint64_t size,
                                    uint64_t *ret_lines, unsigned char ret_digest[SBX_DIGEST_LEN],
                                    struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = NULL;
    size_t room = size < SBX_MANIFEST_TRAILER ? (size_t)size : SBX_MANIFEST_TRAILER, n = 0;
    char tail[SBX_MANIFEST_TRAILER];
    const char *begin, *text;
    enum sbx_status st = sbx_fs_read_at(r->fd, size - room, tail, room, &n, err);

    if (st)
        return st;
    if (n != room || n == 0 || tail[n - 1] != '\n')
        return damaged(err, "cut");
    begin = memrchr(tail, '\n', n - 1);
    if (!begin)
        return damaged(err, "no trailer");
    begin++;
    r->end = size - (uint64_t)(tail + n - begin);
    st = sbx_json_parse(begin, (size_t)(tail + n - begin), &json, err);
    if (st)
        return sbx_err_wrap(err, st, "manifest: trailer");
    if (!sbx_json_get_uint(json, "lines", ret_lines) ||
        !sbx_json_get_str(json, SBX_MANIFEST_DIGEST, &text, &n) ||
        !parse_digest(text, n, ret_digest))
        return damaged(err, "no trailer");
    return SBX_OK;
}

static uint64_t count_newlines(const char *bytes, size_t n)
{
    const char *end = bytes + n, *p = bytes;
    uint64_t count = 0;

    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        count++;
        p++;
    }
    return count;
}

/* Digest and line count of all that stands before the trailer. */
static enum sbx_status digest_body(const struct sbx_manifest_reader *r,
                                   unsigned char ret[SBX_DIGEST_LEN], uint64_t *ret_newlines,
                                   struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf buf = SBX_BUF_INIT(SBX_IO_CHUNK);
    struct sbx_digest digest;
    uint64_t at = 0, newlines = 0;
    enum sbx_status st = sbx_buf_reserve(&buf, SBX_IO_CHUNK, err);

    sbx_digest_init(&digest);
    while (!st && at < r->end) {
        size_t want = r->end - at < SBX_IO_CHUNK ? (size_t)(r->end - at) : SBX_IO_CHUNK, got = 0;

        st = sbx_fs_read_at(r->fd, at, buf.data, want, &got, err);
        if (!st && got != want)
            st = damaged(err, "cut");
        sbx_digest_add(&digest, buf.data, got);
        newlines += count_newlines(buf.data, got);
        at += got;
    }
    if (st)
        return st;
    sbx_digest_final(&digest, ret);
    *ret_newlines = newlines;
    return SBX_OK;
}

static enum sbx_status prove(struct sbx_manifest_reader *r, struct sbx_error *err)
{
    unsigned char said[SBX_DIGEST_LEN], is[SBX_DIGEST_LEN];
    uint64_t lines = 0, newlines = 0;
    struct stat facts;
    enum sbx_status st;

    if (fstat(r->fd, &facts) < 0)
        return sbx_err_host(err, errno, "fstat", "manifest");
    if (facts.st_size == 0)
        return damaged(err, "empty");
    if ((uint64_t)facts.st_size > SBX_MAX_MANIFEST)
        return damaged(err, "over its limit");
    /* The header first: a newer schema may have another trailer. */
    sbx_lines_start(&r->lines, r->fd, 0, (uint64_t)facts.st_size);
    st = read_header(r, err);
    if (!st)
        st = read_trailer(r, (uint64_t)facts.st_size, &lines, said, err);
    if (!st)
        st = digest_body(r, is, &newlines, err);
    if (st)
        return st;
    if (memcmp(said, is, sizeof(is)) != 0 || r->end < r->body || newlines - 1 != lines)
        return damaged(err, "its digest or count is another");
    sbx_manifest_rewind(r);
    return SBX_OK;
}

enum sbx_status sbx_manifest_open(int statedir, struct sbx_manifest_reader **ret,
                                  enum sbx_manifest_state *ret_state, struct sbx_error *ret_why,
                                  struct sbx_error *err)
{
    SBX_FD_AUTO int fd = -1;
    struct sbx_error why = {.status = SBX_OK};
    struct sbx_manifest_reader *reader;
    enum sbx_status st = SBX_OK;

    if (statedir >= 0)
        st = sbx_fs_own_read(statedir, SBX_MANIFEST_FILE, &fd, err);
    if (st)
        return st;
    if (fd < 0) {
        *ret = NULL;
        *ret_state = SBX_MANIFEST_ABSENT;
        return SBX_OK;
    }
    reader = calloc(1, sizeof(*reader));
    if (!reader)
        return sbx_err_nomem(err);
    reader->fd = sbx_fd_take(&fd);
    reader->identity = SBX_BUF_INIT(SBX_MAX_MANIFEST_LINE);
    reader->lines = SBX_LINES_INIT;
    st = prove(reader, &why);
    if (st) {
        bool is_damaged = st == SBX_E_REMOTE || st == SBX_E_LIMIT;
        struct sbx_error *told = is_damaged ? ret_why : err;

        sbx_manifest_close(reader);
        if (told)
            *told = why;
        if (!is_damaged)
            return st;
        *ret = NULL;
        *ret_state = SBX_MANIFEST_DAMAGED;
        return SBX_OK;
    }
    *ret = reader;
    *ret_state = SBX_MANIFEST_OK;
    return SBX_OK;
}

void sbx_manifest_rewind(struct sbx_manifest_reader *reader)
{
    sbx_lines_start(&reader->lines, reader->fd, reader->body, reader->end);
    sbx_json_freep(&reader->line);
    reader->prev_len = 0;
}

static bool get_host(const struct sbx_json *json, struct sbx_line *line)
{
    const char *digest, *ino;
    const size_t prefix = sizeof(SBX_MANIFEST_DIGEST ":") - 1;
    size_t n_digest, n_ino;

    if (!sbx_json_has(json, "ino") && !sbx_json_has(json, "host_size") &&
        !sbx_json_has(json, "host_mtime") && !sbx_json_has(json, "host_ctime") &&
        !sbx_json_has(json, "digest"))
        return true;
    line->has_host = true;
    return sbx_json_get_str(json, "ino", &ino, &n_ino) &&
           parse_digits(ino, n_ino, UINT64_MAX, &line->host.ino) &&
           sbx_json_get_uint(json, "host_size", &line->host.size) &&
           get_time(json, "host_mtime", &line->host.mtime) &&
           get_time(json, "host_ctime", &line->host.ctime) &&
           sbx_json_get_str(json, "digest", &digest, &n_digest) && n_digest > prefix &&
           memcmp(digest, SBX_MANIFEST_DIGEST ":", prefix) == 0 &&
           parse_digest(digest + prefix, n_digest - prefix, line->digest);
}

static bool get_last(const struct sbx_json *json, enum sbx_outcome *ret)
{
    static const enum sbx_outcome outcomes[] = {SBX_REFUSED, SBX_DEFERRED, SBX_FAILED};
    const char *text;
    size_t n;

    if (!sbx_json_has(json, "last"))
        return true;
    if (!sbx_json_get_str(json, "last", &text, &n))
        return false;
    for (size_t i = 0; i < N_ELEMENTS(outcomes); i++) {
        const char *name = sbx_manifest_last(outcomes[i]);

        if (name && strcmp(text, name) == 0) {
            *ret = outcomes[i];
            return true;
        }
    }
    return false;
}

static bool get_line(const struct sbx_json *json, struct sbx_line *line)
{
    return sbx_json_get_str(json, "path", &line->path, &line->path_len) &&
           sbx_json_get_uint(json, "size", &line->size) && line->size <= INT64_MAX &&
           get_time(json, "mtime", &line->mtime) && get_time(json, "ctime", &line->ctime) &&
           get_flag(json, "young", &line->young) && get_flag(json, "unstable", &line->unstable) &&
           get_host(json, line) && get_last(json, &line->last);
}

/* Preflight accepts the path, and it comes after the one before. */
static enum sbx_status check_path(struct sbx_manifest_reader *r, const struct sbx_line *line,
                                  struct sbx_error *err)
{
    size_t least = line->path_len < r->prev_len ? line->path_len : r->prev_len;
    enum sbx_reason reason = sbx_pre_path(line->path, line->path_len, r->header.names);
    int c = reason ? 0 : memcmp(line->path, r->prev, least);

    if (reason)
        return damaged(err, "a path that preflight refuses");
    if (c < 0 || (c == 0 && line->path_len <= r->prev_len))
        return damaged(err, "lines out of order");
    memcpy(r->prev, line->path, line->path_len);
    r->prev_len = line->path_len;
    return SBX_OK;
}

enum sbx_status sbx_manifest_next(struct sbx_manifest_reader *reader, struct sbx_line *ret,
                                  const char **ret_text, size_t *ret_text_len, bool *ret_more,
                                  struct sbx_error *err)
{
    struct sbx_line line = {0};
    const char *text = NULL;
    size_t n = 0;
    enum sbx_status st = sbx_lines_next(&reader->lines, &text, &n, err);

    if (st)
        return st;
    if (!text) {
        *ret_more = false;
        return SBX_OK;
    }
    sbx_json_freep(&reader->line);
    st = sbx_json_parse(text, n, &reader->line, err);
    if (st)
        return sbx_err_wrap(err, st, "manifest");
    if (!get_line(reader->line, &line))
        return damaged(err, "a line that is none");
    st = check_path(reader, &line, err);
    if (st)
        return st;
    *ret = line;
    *ret_text = text;
    *ret_text_len = n;
    *ret_more = true;
    return SBX_OK;
}
