/* The output of a listing script comes in: bytes that the sandbox chose, trusted with nothing and
 * cut anywhere. Out go decoded bytes, no more trusted, as long as each of three budgets lasts: raw
 * bytes, encoded characters, decoded bytes. */
#include "listing/decode.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/limits.h"
#include "listing/script.h"

#define PIECE (8 * SBX_KIB) /* of a line at a time, so that no scan for its end runs far */
#define GZIP_ONLY (16 + MAX_WBITS)

/* What the lines are that come next. */
enum phase {
    PHASE_NOISE, /* the begin line is still to come */
    PHASE_DATA,
    PHASE_OVER, /* nothing but blanks may follow */
};

/* Where in a line we are. A line that begins with the nonce is ours, every other is a body. */
enum place {
    PLACE_HEAD, /* `matched` characters of the nonce so far */
    PLACE_BODY,
    PLACE_OURS,
};

struct sbx_list_decoder {
    char nonce[SBX_NONCE_CHARS + 1];
    struct sbx_sink out;
    struct sbx_list_frame frame;
    enum phase phase;
    enum place place;
    size_t matched;
    struct sbx_buf ours; /* owned: the current line after its nonce */
    uint64_t noise;      /* bytes before the begin line */
    uint64_t raw_left, encoded_left, decoded_left;
    struct sbx_decoder coding;
    z_stream z;
    bool z_open; /* z is owned */
    bool z_ended;
    enum sbx_status status; /* once it is not SBX_OK nothing happens any more */
    struct sbx_error error;
    char decoded[SBX_DECODE_ROOM(PIECE)];
    char inflated[64 * SBX_KIB];
};

static enum sbx_status inflate_init(struct sbx_list_decoder *d, struct sbx_error *err)
{
    if (inflateInit2(&d->z, GZIP_ONLY) != Z_OK)
        return sbx_err_nomem(err);
    d->z_open = true;
    return SBX_OK;
}

/* The script sends one decoded byte more than it may, so that we see that there is more. Hex and
 * base64 of it, and what packing may add, fit the limits; blanks may double them. */
static void set_budgets(struct sbx_list_decoder *d)
{
    uint64_t most = d->decoded_left < UINT64_MAX / 16 ? d->decoded_left : UINT64_MAX / 16;

    d->encoded_left = (d->frame.hex ? most * 2 : most / 3 * 4 + 4) + SBX_ENCODED_SLACK;
    d->raw_left = d->encoded_left * 2;
}

static enum sbx_status begin_line(struct sbx_list_decoder *d, const char *text, size_t n,
                                  struct sbx_error *err)
{
    enum sbx_status st = sbx_list_frame_begin(&d->frame, text, n, err);

    if (!st && d->frame.packed && d->frame.root == SBX_ROOT_OK)
        st = inflate_init(d, err);
    if (st)
        return st;
    d->coding.coding = d->frame.hex ? SBX_CODING_HEX : SBX_CODING_BASE64;
    set_budgets(d);
    d->phase = d->frame.root == SBX_ROOT_OK ? PHASE_DATA : PHASE_OVER;
    return SBX_OK;
}

/* The encoded stream must be whole by now. */
static enum sbx_status stream_ended(const struct sbx_list_decoder *d, struct sbx_error *err)
{
    enum sbx_status st = sbx_decode_end(&d->coding, err);

    if (st)
        return st;
    if (d->frame.packed && !d->z_ended)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "the packed stream was cut");
    return SBX_OK;
}

static enum sbx_status end_line(struct sbx_list_decoder *d, const char *text, size_t n,
                                struct sbx_error *err)
{
    enum sbx_status st = sbx_list_frame_end(&d->frame, text, n, err);

    if (!st)
        st = stream_ended(d, err);
    if (!st)
        d->phase = PHASE_OVER;
    return st;
}

static enum sbx_status over(struct sbx_error *err)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "text after the end of the listing");
}

static enum sbx_status charge_noise(struct sbx_list_decoder *d, size_t n, struct sbx_error *err)
{
    d->noise += n;
    if (d->noise <= SBX_MAX_NOISE)
        return SBX_OK;
    return sbx_err_set(err, SBX_E_REMOTE, 0, "no begin line within %llu bytes", SBX_MAX_NOISE);
}

/* A whole line that begins with our nonce. */
static enum sbx_status our_line(struct sbx_list_decoder *d, struct sbx_error *err)
{
    static const char begin[] = " begin ", end[] = " end ";
    const char *text = d->ours.data;
    size_t n = d->ours.len;

    if (d->phase == PHASE_OVER)
        return over(err);
    if (d->phase == PHASE_NOISE && n >= sizeof(begin) - 1 &&
        memcmp(text, begin, sizeof(begin) - 1) == 0)
        return begin_line(d, text + sizeof(begin) - 1, n - (sizeof(begin) - 1), err);
    if (d->phase == PHASE_NOISE)
        return charge_noise(d, SBX_NONCE_CHARS + n, err);
    if (n >= sizeof(end) - 1 && memcmp(text, end, sizeof(end) - 1) == 0)
        return end_line(d, text + sizeof(end) - 1, n - (sizeof(end) - 1), err);
    return sbx_err_set(err, SBX_E_REMOTE, 0, "unexpected line of the script");
}

static enum sbx_status charge_raw(struct sbx_list_decoder *d, size_t n, struct sbx_error *err)
{
    if (n > d->raw_left)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "more raw bytes than a listing may have");
    d->raw_left -= n;
    return SBX_OK;
}

/* Passes decoded bytes on as far as they are within the limit, so that what comes first, the limit
 * or a fault found by the receiver, does not depend on how the stream was cut. */
static enum sbx_status emit(struct sbx_list_decoder *d, const char *bytes, size_t n,
                            struct sbx_error *err)
{
    size_t most = n <= d->decoded_left ? n : (size_t)d->decoded_left;
    enum sbx_status st = SBX_OK;

    d->decoded_left -= most;
    if (most > 0 && d->out.write)
        st = d->out.write(d->out.ctx, bytes, most, err);
    if (!st && most < n)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "more decoded bytes than a listing may have");
    return st;
}

static enum sbx_status unpack(struct sbx_list_decoder *d, char *bytes, size_t n,
                              struct sbx_error *err)
{
    d->z.next_in = (unsigned char *)bytes;
    d->z.avail_in = (unsigned)n;
    do {
        enum sbx_status st;
        int rc;

        if (d->z_ended)
            return sbx_err_set(err, SBX_E_REMOTE, 0, "data after the packed stream");
        d->z.next_out = (unsigned char *)d->inflated;
        d->z.avail_out = sizeof(d->inflated);
        rc = inflate(&d->z, Z_NO_FLUSH);
        /* What was unpacked before a fault counts before it. */
        st = emit(d, d->inflated, sizeof(d->inflated) - d->z.avail_out, err);
        if (st)
            return st;
        if (rc == Z_MEM_ERROR)
            return sbx_err_nomem(err);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return sbx_err_set(err, SBX_E_REMOTE, 0, "the packed stream is damaged");
        d->z_ended = rc == Z_STREAM_END;
    } while (d->z.avail_in > 0 || (d->z.avail_out == 0 && !d->z_ended));
    return SBX_OK;
}

static enum sbx_status deliver(struct sbx_list_decoder *d, size_t n, struct sbx_error *err)
{
    if (n == 0)
        return SBX_OK;
    return d->frame.packed ? unpack(d, d->decoded, n, err) : emit(d, d->decoded, n, err);
}

static size_t count_blanks(const char *bytes, size_t n)
{
    size_t blanks = 0;

    for (size_t i = 0; i < n; i++)
        blanks += bytes[i] == ' ' || bytes[i] == '\t';
    return blanks;
}

/* One character, so that of several faults in a piece the first one counts. */
static enum sbx_status data_one(struct sbx_list_decoder *d, const char *c, struct sbx_error *err)
{
    bool blank = count_blanks(c, 1) == 1;
    enum sbx_status st = charge_raw(d, 1, err);
    size_t n = 0;

    if (st)
        return st;
    if (!blank && d->encoded_left == 0)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "more encoded bytes than a listing may have");
    d->encoded_left -= !blank;
    st = sbx_decode(&d->coding, c, 1, d->decoded, &n, err);
    return st ? st : deliver(d, n, err);
}

/* A piece of an encoded line: whole where it is without fault, else character by character. */
static enum sbx_status data(struct sbx_list_decoder *d, const char *bytes, size_t n,
                            struct sbx_error *err)
{
    struct sbx_decoder before = d->coding;
    size_t n_decoded = 0;
    enum sbx_status st = SBX_OK;

    if (n <= d->raw_left && n <= d->encoded_left &&
        sbx_decode(&d->coding, bytes, n, d->decoded, &n_decoded, err) == SBX_OK) {
        d->raw_left -= n;
        d->encoded_left -= n - count_blanks(bytes, n);
        return deliver(d, n_decoded, err);
    }
    d->coding = before;
    for (size_t i = 0; i < n && !st; i++)
        st = data_one(d, bytes + i, err);
    return st;
}

/* At most PIECE bytes of a line that is not ours. */
static enum sbx_status body(struct sbx_list_decoder *d, const char *bytes, size_t n,
                            struct sbx_error *err)
{
    switch (d->phase) {
    case PHASE_NOISE:
        return charge_noise(d, n, err);
    case PHASE_DATA:
        return data(d, bytes, n, err);
    default:
        return count_blanks(bytes, n) == n ? charge_raw(d, n, err) : over(err);
    }
}

/* The line has ended: what it began with is no nonce, or it is ours and whole. */
static enum sbx_status finish_line(struct sbx_list_decoder *d, struct sbx_error *err)
{
    enum place was = d->place;
    size_t matched = d->matched;

    d->place = PLACE_HEAD;
    d->matched = 0;
    if (was == PLACE_OURS)
        return our_line(d, err);
    return was == PLACE_HEAD && matched > 0 ? body(d, d->nonce, matched, err) : SBX_OK;
}

/* The head of a line, up to where it is known whose it is. */
static enum sbx_status head(struct sbx_list_decoder *d, const char *bytes, size_t n, size_t *ret_n,
                            struct sbx_error *err)
{
    size_t i = 0;

    while (i < n && d->matched < SBX_NONCE_CHARS && bytes[i] == d->nonce[d->matched]) {
        i++;
        d->matched++;
    }
    *ret_n = i;
    if (d->matched == SBX_NONCE_CHARS) {
        d->place = PLACE_OURS;
        sbx_buf_clear(&d->ours);
        return sbx_buf_reserve(&d->ours, 0, err);
    }
    if (i == n)
        return SBX_OK;
    d->place = PLACE_BODY;
    return d->matched > 0 ? body(d, d->nonce, d->matched, err) : SBX_OK;
}

static enum sbx_status ours(struct sbx_list_decoder *d, const char *bytes, size_t n,
                            struct sbx_error *err)
{
    if (n > SBX_MAX_LINE - d->ours.len)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "endless line of the script");
    return sbx_buf_add(&d->ours, bytes, n, err);
}

/* Takes up to the end of a line, or of the piece. */
static enum sbx_status line_part(struct sbx_list_decoder *d, const char *bytes, size_t n,
                                 size_t *ret_n, struct sbx_error *err)
{
    const char *lf = memchr(bytes, '\n', n);
    size_t to_lf = lf ? (size_t)(lf - bytes) : n;
    const char *cr = memchr(bytes, '\r', to_lf);
    size_t len = cr ? (size_t)(cr - bytes) : to_lf;
    enum sbx_status st;

    *ret_n = len;
    if (len == 0) { /* at the end of the line */
        bool counts = d->place != PLACE_OURS;

        *ret_n = 1;
        st = finish_line(d, err);
        if (st || !counts)
            return st;
        return d->phase == PHASE_NOISE ? charge_noise(d, 1, err) : charge_raw(d, 1, err);
    }
    switch (d->place) {
    case PLACE_HEAD:
        return head(d, bytes, len, ret_n, err);
    case PLACE_BODY:
        return body(d, bytes, len, err);
    default:
        return ours(d, bytes, len, err);
    }
}

/* Keeps a failure for all later calls, and tells it. */
static enum sbx_status settle(struct sbx_list_decoder *d, enum sbx_status st, struct sbx_error *err)
{
    d->status = st;
    if (st && err)
        *err = d->error;
    return st;
}

enum sbx_status sbx_list_decoder_new(const char *nonce, uint64_t max_bytes, struct sbx_sink out,
                                     struct sbx_list_decoder **ret, struct sbx_error *err)
{
    struct sbx_list_decoder *d;

    if (strlen(nonce) != SBX_NONCE_CHARS)
        return sbx_err_set(err, SBX_E_USAGE, 0, "a nonce has %d characters", SBX_NONCE_CHARS);
    d = calloc(1, sizeof(*d));
    if (!d)
        return sbx_err_nomem(err);
    memcpy(d->nonce, nonce, sizeof(d->nonce));
    d->out = out;
    d->decoded_left = max_bytes;
    d->ours = SBX_BUF_INIT(SBX_MAX_LINE);
    *ret = d;
    return SBX_OK;
}

void sbx_list_decoder_free(struct sbx_list_decoder *d)
{
    if (!d)
        return;
    if (d->z_open)
        (void)inflateEnd(&d->z);
    sbx_buf_done(&d->ours);
    free(d);
}

enum sbx_status sbx_list_decoder_push(struct sbx_list_decoder *d, const void *bytes, size_t n,
                                      struct sbx_error *err)
{
    const char *p = bytes;
    enum sbx_status st = d->status;

    while (n > 0 && !st) {
        size_t used = 0;

        st = line_part(d, p, n < PIECE ? n : PIECE, &used, &d->error);
        p += used;
        n -= used;
    }
    return settle(d, st, err);
}

enum sbx_status sbx_list_decoder_end(struct sbx_list_decoder *d, struct sbx_error *err)
{
    enum sbx_status st = d->status;

    if (!st) /* a terminal may have lost the last line end */
        st = finish_line(d, &d->error);
    if (!st && d->phase == PHASE_NOISE)
        st = sbx_err_set(&d->error, SBX_E_REMOTE, 0, "no begin line");
    if (!st && d->phase == PHASE_DATA)
        st = sbx_err_set(&d->error, SBX_E_REMOTE, 0, "the listing was cut: no end line");
    return settle(d, st, err);
}

const struct sbx_list_frame *sbx_list_decoder_frame(const struct sbx_list_decoder *d)
{
    return &d->frame;
}
