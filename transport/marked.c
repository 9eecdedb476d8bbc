/* In: any bytes of a peer. They are trusted with nothing: a line is ours only if it repeats the
 * nonce that this run drew, and even then only means what its reader makes of it. Out: the same
 * bytes, cut into lines of ours and everything else. */
#include "transport/marked.h"

#include <string.h>

static enum sbx_status pass(struct sbx_marked *m, const char *bytes, size_t n,
                            struct sbx_error *err)
{
    if (n == 0)
        return SBX_OK;
    m->midline = bytes[n - 1] != '\n';
    return m->bytes(m->ctx, bytes, n, err);
}

static enum sbx_status flush(struct sbx_marked *m, struct sbx_error *err)
{
    size_t n = m->n;

    m->n = 0;
    return pass(m, m->held, n, err);
}

/* Whether c goes on with what is held: the nonce, a blank, any text. */
static bool fits(const struct sbx_marked *m, char c)
{
    if (m->n == 0 && m->midline)
        return false;
    if (m->n < SBX_MARKED_NONCE)
        return c == m->nonce[m->n];
    if (m->n == SBX_MARKED_NONCE)
        return c == ' ';
    return c != '\0' && m->n < sizeof(m->held) - 1;
}

/* An LF has come after nonce and blank. */
static enum sbx_status tell(struct sbx_marked *m, bool *ret_taken, struct sbx_error *err)
{
    size_t end = m->n;
    bool cr = m->held[end - 1] == '\r';
    enum sbx_status st;

    m->held[cr ? end - 1 : end] = '\0';
    st = m->line(m->ctx, m->held + SBX_MARKED_NONCE + 1, ret_taken, err);
    if (cr)
        m->held[end - 1] = '\r';
    if (!st && *ret_taken)
        m->n = 0;
    return st;
}

/* Takes one byte at the start of a line, or while something is held. */
static enum sbx_status step(struct sbx_marked *m, char c, struct sbx_error *err)
{
    enum sbx_status st;
    bool taken = false;

    if (c == '\n' && m->n > SBX_MARKED_NONCE) {
        st = tell(m, &taken, err);
        if (st || taken)
            return st;
    } else if (fits(m, c)) {
        m->held[m->n++] = c;
        return SBX_OK;
    }
    st = flush(m, err);
    return st ? st : pass(m, &c, 1, err);
}

/* How many of bytes[0..n) cannot be part of a marked line; begins in the middle of a line. Looks at
 * the start of each line where it stands, so that lines of others cost one comparison. */
static size_t plain(const struct sbx_marked *m, const char *bytes, size_t n)
{
    size_t at = 0;

    while (at < n) {
        const char *lf = memchr(bytes + at, '\n', n - at);
        size_t left;

        if (!lf)
            return n;
        at = (size_t)(lf - bytes) + 1;
        left = n - at < SBX_MARKED_NONCE ? n - at : SBX_MARKED_NONCE;
        if (memcmp(bytes + at, m->nonce, left) == 0)
            return at;
    }
    return n;
}

enum sbx_status sbx_marked_push(struct sbx_marked *m, const char *bytes, size_t n,
                                struct sbx_error *err)
{
    size_t at = 0;
    enum sbx_status st = SBX_OK;

    while (at < n && !st) {
        if (m->n == 0 && m->midline) {
            size_t skip = plain(m, bytes + at, n - at);

            st = pass(m, bytes + at, skip, err);
            at += skip;
        } else {
            st = step(m, bytes[at++], err);
        }
    }
    return st;
}

enum sbx_status sbx_marked_end(struct sbx_marked *m, struct sbx_error *err)
{
    return flush(m, err);
}
