#include "state/lines.h"

#include <stdbool.h>
#include <string.h>

#include "fsutil/file.h"

void sbx_lines_start(struct sbx_lines *lines, int fd, uint64_t from, uint64_t end)
{
    lines->fd = fd;
    lines->offset = from;
    lines->end = end;
    lines->at = 0;
    sbx_buf_clear(&lines->buf);
}

/* Drops what was given out and reads on; *ret_more is false at the end. */
static enum sbx_status fill(struct sbx_lines *lines, bool *ret_more, struct sbx_error *err)
{
    uint64_t left = lines->end - lines->offset;
    size_t want = left < SBX_LINES_CHUNK ? (size_t)left : SBX_LINES_CHUNK, got = 0;
    enum sbx_status st;

    sbx_buf_shift(&lines->buf, lines->at);
    lines->at = 0;
    st = sbx_buf_reserve(&lines->buf, want, err);
    if (!st)
        st = sbx_fs_read_at(lines->fd, lines->offset, lines->buf.data + lines->buf.len, want, &got,
                            err);
    if (st)
        return st;
    lines->buf.len += got;
    lines->offset += got;
    *ret_more = got > 0;
    return SBX_OK;
}

enum sbx_status sbx_lines_next(struct sbx_lines *lines, const char **ret, size_t *ret_n,
                               struct sbx_error *err)
{
    size_t searched = 0, n;

    for (;;) {
        const char *from = lines->buf.data ? lines->buf.data + lines->at : "";
        const char *newline = NULL;
        enum sbx_status st;
        bool more = false;

        n = lines->buf.len - lines->at;
        if (n > searched)
            newline = memchr(from + searched, '\n', n - searched);
        if (newline)
            n = (size_t)(newline - from) + 1;
        if (n > SBX_MAX_MANIFEST_LINE)
            return sbx_err_set(err, SBX_E_REMOTE, 0, "a line of more than %llu bytes",
                               SBX_MAX_MANIFEST_LINE);
        if (newline)
            break;
        searched = n;
        st = fill(lines, &more, err);
        if (st)
            return st;
        if (!more)
            break;
    }
    *ret = n > 0 ? lines->buf.data + lines->at : NULL;
    *ret_n = n;
    lines->at += n;
    return SBX_OK;
}

void sbx_lines_done(struct sbx_lines *lines)
{
    sbx_buf_done(&lines->buf);
}
