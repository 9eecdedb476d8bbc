/* In: the output of a fetch script, from a shell that the sandbox may own; trusted with nothing.
 * Every frame has to come in the order asked for, content stops at the listed size, and the record
 * is bounded and passed on unread. Out: bytes of files to the queue, which charges them. */
#include "transport/exec_stream.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

#define MAX_PIECE 65536 /* characters decoded at once */

#define STATUS_NO_TOOL 127 /* what a shell says of a command that it does not find */

static enum sbx_status broken(struct sbx_exec_stream *s, struct sbx_error *err, const char *what)
{
    s->broken = true;
    return sbx_err_set(err, SBX_E_REMOTE, 0, "fetch stream: %s", what);
}

/* Gives the file under way to the queue, unless it was refused and so given before. */
static void end_file(struct sbx_exec_stream *s, enum sbx_fetch_result result, const char *record,
                     size_t n, const struct sbx_error *why)
{
    if (s->ended > s->at)
        return;
    s->ended++;
    s->queue->end(s->queue->ctx, s->files[s->at], result, record, n, why);
}

static void end_failed(struct sbx_exec_stream *s, enum sbx_fetch_result result, const char *what,
                       int code)
{
    struct sbx_error why = {0};

    if (code == STATUS_NO_TOOL)
        (void)sbx_err_set(&why, SBX_E_REMOTE, 0, "remote tool missing: %s", what);
    else
        (void)sbx_err_set(&why, SBX_E_REMOTE, 0, "%s ended with status %d", what, code);
    end_file(s, result, NULL, 0, &why);
}

static void end_state(struct sbx_exec_stream *s, enum sbx_fetch_result result, const char *what)
{
    struct sbx_error why = {0};

    (void)sbx_err_set(&why, SBX_E_REMOTE, 0, "%s", what);
    end_file(s, result, NULL, 0, &why);
}

/* A decimal number and what follows it; false if there is none or it is no index or status. */
static bool number(const char **text, size_t *ret)
{
    const char *p = *text;
    size_t value = 0;

    while (*p >= '0' && *p <= '9' && value < INT_MAX / 10)
        value = 10 * value + (size_t)(*p++ - '0');
    if (p == *text || (*p >= '0' && *p <= '9'))
        return false;
    *text = p;
    *ret = value;
    return true;
}

static void begin_file(struct sbx_exec_stream *s)
{
    struct sbx_error ignored;

    s->state = SBX_EXEC_CONTENT;
    s->decoder = (struct sbx_decoder){.coding = s->coding};
    s->got = 0;
    sbx_buf_clear(&s->decoded);
    sbx_buf_clear(&s->trailer);
    /* A refused file is over for the queue; its bytes still have to be read to reach the next. */
    if (s->queue->begin(s->queue->ctx, s->files[s->at], &ignored))
        end_file(s, SBX_FETCH_SERVER, NULL, 0, NULL);
}

/* "file <index> <state>" */
static enum sbx_status on_file(struct sbx_exec_stream *s, const char *text, struct sbx_error *err)
{
    size_t index;

    if (s->state != SBX_EXEC_NOISE && s->state != SBX_EXEC_BETWEEN)
        return broken(s, err, "a file begins inside another");
    if (!number(&text, &index) || index != s->at || index >= s->n_files)
        return broken(s, err, "a file out of order");
    s->state = SBX_EXEC_BETWEEN;
    if (strcmp(text, " ok") == 0) {
        begin_file(s);
        return SBX_OK;
    }
    if (strcmp(text, " vanished") == 0)
        end_state(s, SBX_FETCH_VANISHED, "no such file any more");
    else if (strcmp(text, " denied") == 0)
        end_state(s, SBX_FETCH_DENIED, "may not be read");
    else if (strcmp(text, " notreg") == 0)
        end_state(s, SBX_FETCH_NOT_REGULAR, "no regular file any more");
    else
        return broken(s, err, "a file with an unknown state");
    s->at++;
    return SBX_OK;
}

/* The content is whole: what do `head` and the record say? Without a record the file is gone or is
 * no regular file: it vanished if nothing of it was read, else the bytes that came belong to no
 * version that anybody could check. */
static enum sbx_status judge(struct sbx_exec_stream *s, struct sbx_error *err)
{
    const char *record = s->trailer.data;
    const char *last = record + s->trailer.len;
    size_t code;

    if (s->trailer.len == 0 || !number(&record, &code) || *record++ != ' ')
        return broken(s, err, "a damaged record");
    if (record < last &&
        (last[-1] != '\0' || memchr(record, '\0', (size_t)(last - record)) != last - 1))
        return broken(s, err, "a damaged record");
    if (code == STATUS_NO_TOOL)
        end_failed(s, SBX_FETCH_SERVER, "head", STATUS_NO_TOOL);
    else if (record == last && (code || s->got == 0))
        end_state(s, SBX_FETCH_VANISHED, "gone before it was read");
    else if (record == last)
        end_state(s, SBX_FETCH_CHANGED, "gone, or no regular file, after it was read");
    else if (code)
        end_failed(s, SBX_FETCH_SERVER, "head", (int)code);
    else
        end_file(s, SBX_FETCH_OK, record, (size_t)(last - record) - 1, NULL);
    return SBX_OK;
}

/* "group <index of the first> <count>" */
static enum sbx_status on_group(struct sbx_exec_stream *s, const char *text, struct sbx_error *err)
{
    size_t index, count;

    if (s->state != SBX_EXEC_NOISE && s->state != SBX_EXEC_BETWEEN)
        return broken(s, err, "a group begins inside something else");
    if (!number(&text, &index) || index != s->at || index >= s->n_files || *text++ != ' ' ||
        !number(&text, &count) || *text || count < 2 ||
        count != sbx_exec_group(s->files, s->n_files, s->singles, s->at))
        return broken(s, err, "a group out of order");
    s->state = SBX_EXEC_GROUP;
    s->decoder = (struct sbx_decoder){.coding = s->coding};
    s->count = count;
    sbx_buf_done(&s->group);
    s->group.max = sbx_exec_group_max(s->files + s->at, count);
    return SBX_OK;
}

/* Whoever is in a group that did not come out right goes by itself next time. What came of it is
 * paid for all the same. */
static void put_group_off(struct sbx_exec_stream *s)
{
    size_t left = s->group.len, i;
    struct sbx_error ignored;

    for (i = 0; i < s->count; i++) {
        const struct sbx_wanted *file = s->files[s->at + i];
        size_t n = file->size < left ? (size_t)file->size : left;

        if (n > 0)
            (void)s->queue->write(s->queue->ctx, file, s->group.data, n, &ignored);
        left -= n;
        s->again[s->n_again++] = file;
    }
    s->ended += s->count;
}

static void bring_group(struct sbx_exec_stream *s, const struct sbx_exec_payload *payload)
{
    const char *content = payload->content, *record = payload->records;
    struct sbx_error ignored;
    size_t i;

    for (i = 0; i < s->count; i++) {
        const struct sbx_wanted *file = s->files[s->at + i];
        size_t n = (size_t)file->size;

        if (!s->queue->begin(s->queue->ctx, file, &ignored) && n > 0)
            (void)s->queue->write(s->queue->ctx, file, content, n, &ignored);
        s->ended++;
        s->queue->end(s->queue->ctx, file, SBX_FETCH_OK, record, strlen(record), NULL);
        content += n;
        record += strlen(record) + 1;
    }
}

/* "done <index of the first> <status>" of a group */
static enum sbx_status on_group_done(struct sbx_exec_stream *s, size_t code)
{
    struct sbx_exec_payload payload;

    if (code == 0 && !sbx_decode_end(&s->decoder, NULL) &&
        sbx_exec_group_prove(s->group.data, s->group.len, s->marker, SBX_EXEC_MARKER,
                             s->files + s->at, s->count, &payload))
        bring_group(s, &payload);
    else
        put_group_off(s);
    s->at += s->count;
    s->state = SBX_EXEC_BETWEEN;
    return SBX_OK;
}

/* "done <index> <status>" */
static enum sbx_status on_done(struct sbx_exec_stream *s, const char *text, struct sbx_error *err)
{
    size_t index, code;
    enum sbx_status st = SBX_OK;

    if (s->state != SBX_EXEC_CONTENT && s->state != SBX_EXEC_TRAILER && s->state != SBX_EXEC_GROUP)
        return broken(s, err, "the end of a file that did not begin");
    if (!number(&text, &index) || index != s->at || *text++ != ' ' || !number(&text, &code) ||
        *text)
        return broken(s, err, "the end of a file out of order");
    if (s->state == SBX_EXEC_GROUP)
        return on_group_done(s, code);
    if (code) {
        end_failed(s, SBX_FETCH_SERVER, "the encoder", (int)code);
    } else {
        st = sbx_decode_end(&s->decoder, err);
        if (st)
            return broken(s, err, "a damaged encoding");
        if (s->state != SBX_EXEC_TRAILER)
            return broken(s, err, "a file without its record");
        st = judge(s, err);
    }
    if (!st) {
        s->at++;
        s->state = SBX_EXEC_BETWEEN;
    }
    return st;
}

static enum sbx_status on_line(void *ctx, const char *text, bool *ret_taken, struct sbx_error *err)
{
    struct sbx_exec_stream *s = ctx;

    *ret_taken = true;
    if (s->state == SBX_EXEC_ENDED)
        return SBX_OK;
    if (strncmp(text, "file ", 5) == 0)
        return on_file(s, text + 5, err);
    if (strncmp(text, "group ", 6) == 0)
        return on_group(s, text + 6, err);
    if (strncmp(text, "done ", 5) == 0)
        return on_done(s, text + 5, err);
    if (strcmp(text, "end") != 0 || s->at != s->n_files || s->state != SBX_EXEC_BETWEEN)
        return broken(s, err, "a line out of order");
    s->state = SBX_EXEC_ENDED;
    return SBX_OK;
}

static enum sbx_status deliver(struct sbx_exec_stream *s, const char *bytes, size_t n,
                               struct sbx_error *err)
{
    struct sbx_error ignored;

    if (n > s->files[s->at]->size - s->got)
        return broken(s, err, "more bytes than were asked for");
    s->got += n;
    if (n == 0 || s->ended > s->at)
        return SBX_OK;
    if (s->queue->write(s->queue->ctx, s->files[s->at], bytes, n, &ignored))
        end_file(s, SBX_FETCH_SERVER, NULL, 0, NULL);
    return SBX_OK;
}

static enum sbx_status add_trailer(struct sbx_exec_stream *s, const char *bytes, size_t n,
                                   struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_add(&s->trailer, bytes, n, err);

    return st == SBX_E_LIMIT ? broken(s, err, "an endless record") : st;
}

static enum sbx_status add_payload(struct sbx_exec_stream *s, const char *bytes, size_t n,
                                   struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_add(&s->group, bytes, n, err);

    return st == SBX_E_LIMIT ? broken(s, err, "more bytes than a group has") : st;
}

/* How many of the last bytes may begin a marker. */
static size_t marker_begun(const struct sbx_exec_stream *s, const char *bytes, size_t n)
{
    size_t left = n < SBX_EXEC_MARKER - 1 ? n : SBX_EXEC_MARKER - 1;

    for (; left > 0; left--)
        if (bytes[n - left] == '\n' && memcmp(bytes + n - left, s->marker, left) == 0)
            return left;
    return 0;
}

/* decoded holds what was held back and what was decoded now. */
static enum sbx_status split_content(struct sbx_exec_stream *s, struct sbx_error *err)
{
    char *bytes = s->decoded.data;
    size_t n = s->decoded.len;
    const char *marker = memmem(bytes, n, s->marker, SBX_EXEC_MARKER);
    size_t whole = marker ? (size_t)(marker - bytes) : n - marker_begun(s, bytes, n);
    enum sbx_status st = deliver(s, bytes, whole, err);

    if (!st && marker) {
        s->state = SBX_EXEC_TRAILER;
        whole += SBX_EXEC_MARKER;
        st = add_trailer(s, bytes + whole, n - whole, err);
        whole = n;
    }
    sbx_buf_shift(&s->decoded, whole);
    return st;
}

static enum sbx_status on_encoded(struct sbx_exec_stream *s, const char *bytes, size_t n,
                                  struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_reserve(&s->decoded, SBX_DECODE_ROOM(n), err);
    size_t decoded = 0;
    char *to;

    if (st)
        return st;
    to = s->decoded.data + s->decoded.len;
    if (sbx_decode(&s->decoder, bytes, n, to, &decoded, err))
        return broken(s, err, "a damaged encoding");
    s->decoded.len += decoded;
    if (s->state == SBX_EXEC_CONTENT)
        return split_content(s, err);
    if (s->state == SBX_EXEC_GROUP)
        st = add_payload(s, s->decoded.data, s->decoded.len, err);
    else
        st = add_trailer(s, s->decoded.data, s->decoded.len, err);
    sbx_buf_clear(&s->decoded);
    return st;
}

static bool is_blank(const char *bytes, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (bytes[i] != '\n' && bytes[i] != '\r' && bytes[i] != ' ' && bytes[i] != '\t')
            return false;
    return true;
}

static enum sbx_status on_bytes(void *ctx, const char *bytes, size_t n, struct sbx_error *err)
{
    struct sbx_exec_stream *s = ctx;
    enum sbx_status st = SBX_OK;

    switch (s->state) {
    case SBX_EXEC_NOISE:
        s->noise += n;
        return s->noise > SBX_MAX_NOISE ? broken(s, err, "too much before the first line") : SBX_OK;
    case SBX_EXEC_BETWEEN:
        return is_blank(bytes, n) ? SBX_OK : broken(s, err, "foreign bytes between files");
    case SBX_EXEC_ENDED:
        return SBX_OK;
    default:
        break;
    }
    while (n > 0 && !st) {
        size_t piece = n < MAX_PIECE ? n : MAX_PIECE;

        st = on_encoded(s, bytes, piece, err);
        bytes += piece;
        n -= piece;
    }
    return st;
}

/* What the whole answer may have in raw bytes: hex pairs with a blank before each are three for
 * one, and the rest is room for lines, records and noise. Blanks mean nothing, but they are not
 * free. */
static uint64_t raw_max(const struct sbx_wanted *const files[], size_t n)
{
    uint64_t max = 2 * SBX_MAX_NOISE;

    for (size_t i = 0; i < n; i++) {
        uint64_t more = 8 * (files[i]->path_len + (uint64_t)512), content;

        if (__builtin_mul_overflow(files[i]->size, 4, &content) ||
            __builtin_add_overflow(max, more, &max) || __builtin_add_overflow(max, content, &max))
            return UINT64_MAX;
    }
    return max;
}

void sbx_exec_stream_init(struct sbx_exec_stream *s, const struct sbx_queue *queue,
                          const struct sbx_wanted *const files[], size_t n, const char *nonce,
                          enum sbx_coding coding)
{
    *s = (struct sbx_exec_stream){.queue = queue,
                                  .files = files,
                                  .n_files = n,
                                  .raw_left = raw_max(files, n),
                                  .coding = coding,
                                  .decoded = SBX_BUF_INIT(SBX_DECODE_ROOM(MAX_PIECE) + 64),
                                  .trailer = SBX_BUF_INIT(SBX_STREAM_TRAILER)};
    s->lines = (struct sbx_marked){.nonce = nonce, .ctx = s, .bytes = on_bytes, .line = on_line};
    (void)snprintf(s->marker, sizeof(s->marker), "\n%s ", nonce);
}

void sbx_exec_stream_done(struct sbx_exec_stream *s)
{
    sbx_buf_done(&s->decoded);
    sbx_buf_done(&s->trailer);
    sbx_buf_done(&s->group);
}

enum sbx_status sbx_exec_stream_write(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct sbx_exec_stream *s = ctx;

    if (n > s->raw_left)
        return broken(s, err, "more bytes than the answer can have");
    s->raw_left -= n;
    return sbx_marked_push(&s->lines, bytes, n, err);
}

bool sbx_exec_stream_blame(struct sbx_exec_stream *s, bool between, enum sbx_fetch_result result,
                           const struct sbx_error *why)
{
    bool inside = s->state == SBX_EXEC_CONTENT || s->state == SBX_EXEC_TRAILER;

    if (s->state == SBX_EXEC_GROUP)
        put_group_off(s);
    if (!inside && !(between && s->state == SBX_EXEC_BETWEEN && s->at < s->n_files))
        return false;
    end_file(s, result, NULL, 0, why);
    return true;
}
