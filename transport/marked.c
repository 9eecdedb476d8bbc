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
    m->midline = true;
    return m->bytes(m->ctx, bytes, n, err);
}

static enum sbx_status flush(struct sbx_marked *m, struct sbx_error *err)
{
    size_t n = m->n;

    m->n = 0;
    return pass(m, m->held, n, err);
}

static void hold(struct sbx_marked *m, char c)
{
    m->held[m->n++] = c;
    if (m->n <= 2 && c == '\n')
        m->nonceat = m->n;
}

/* Whether c goes on with what is held: an optional CR, LF, the nonce, a blank, any text. */
static bool fits(const struct sbx_marked *m, char c)
{
    size_t at;

    if (m->n == 0)
        return c == '\r' || c == '\n' || (!m->midline && c == m->nonce[0]);
    if (m->n == 1 && m->held[0] == '\r')
        return c == '\n';
    at = m->n - m->nonceat;
    if (at < SBX_MARKED_NONCE)
        return c == m->nonce[at];
    if (at == SBX_MARKED_NONCE)
        return c == ' ';
    return c != '\0' && m->n < sizeof(m->held) - 1;
}

/* An LF has come: is what is held a whole marked line? */
static bool complete(const struct sbx_marked *m)
{
    return m->n > 0 && m->n - m->nonceat > SBX_MARKED_NONCE;
}

static enum sbx_status tell(struct sbx_marked *m, bool *ret_taken, struct sbx_error *err)
{
    size_t end = m->n;
    enum sbx_status st;
    char last = m->held[end - 1];

    if (last == '\r')
        end--;
    m->held[end] = '\0';
    st = m->line(m->ctx, m->held + m->nonceat + SBX_MARKED_NONCE + 1, ret_taken, err);
    m->held[end] = last == '\r' ? '\r' : '\0';
    if (!st && *ret_taken) {
        m->n = 0;
        m->midline = false;
    }
    return st;
}

/* Takes one byte while something is held, or may begin to be. */
static enum sbx_status step(struct sbx_marked *m, char c, struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;
    bool taken = false;

    if (c == '\n' && complete(m)) {
        st = tell(m, &taken, err);
        if (st || taken)
            return st;
    } else if (fits(m, c)) {
        if (m->n == 0)
            m->nonceat = 0;
        hold(m, c);
        return SBX_OK;
    }
    st = flush(m, err);
    if (st)
        return st;
    m->nonceat = 0;
    if (fits(m, c))
        hold(m, c);
    else
        st = pass(m, &c, 1, err);
    return st;
}

/* How many of bytes[0..n) cannot be part of a marked line; begins in the middle of a line. Looks at
 * the start of each line where it stands, so that lines of others cost one comparison. */
static size_t plain(const struct sbx_marked *m, const char *bytes, size_t n)
{
    size_t at = 0;

    while (at < n) {
        const char *lf = memchr(bytes + at, '\n', n - at);
        size_t i, left;

        if (!lf)
            return bytes[n - 1] == '\r' ? n - 1 : n;
        i = (size_t)(lf - bytes);
        left = n - i - 1;
        if (left > SBX_MARKED_NONCE)
            left = SBX_MARKED_NONCE;
        if (memcmp(lf + 1, m->nonce, left) == 0)
            return i > 0 && bytes[i - 1] == '\r' ? i - 1 : i;
        at = i + 1;
    }
    return n;
}

enum sbx_status sbx_marked_push(struct sbx_marked *m, const char *bytes, size_t n,
                                struct sbx_error *err)
{
    size_t at = 0;

    while (at < n) {
        enum sbx_status st;

        if (m->n == 0 && m->midline) {
            size_t skip = plain(m, bytes + at, n - at);

            st = pass(m, bytes + at, skip, err);
            at += skip;
            if (st)
                return st;
            if (at == n)
                break;
        }
        st = step(m, bytes[at++], err);
        if (st)
            return st;
    }
    return SBX_OK;
}

enum sbx_status sbx_marked_end(struct sbx_marked *m, struct sbx_error *err)
{
    return flush(m, err);
}
