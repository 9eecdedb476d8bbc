/* Reads the head of an HTTP/1.1 answer, more strictly than a client that wants to please would. */
#ifndef TRANSPORT_HTTP_HEAD_H
#define TRANSPORT_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What counts of a final head: interim (1xx) ones are read and dropped. */
struct sbx_http_head {
    int status;       /* 200 to 999; 0 while none has begun */
    bool chunked;     /* Transfer-Encoding: chunked */
    bool has_length;  /* Content-Length */
    uint64_t length;  /* bytes; any value up to 2^63 - 1, to be compared and never trusted */
    bool has_range;   /* Content-Range: bytes first-last/total */
    bool unsatisfied; /* ... with an asterisk in place of first-last */
    bool total_known; /* false: the total was given as an asterisk */
    uint64_t first, last, total;
    unsigned retry_after_s; /* Retry-After in seconds; 0: none, or a date */
};

/* A head that is being read, line by line. Zero it before a request. */
struct sbx_http_head_reader {
    struct sbx_http_head head;
    bool begun;     /* a status line was seen, and not yet the end of its head */
    bool done;      /* the empty line of a final head was seen; what comes later are trailers */
    unsigned lines; /* of all heads of this answer and its trailers */
    unsigned interim;
    size_t bytes;
};

/* Takes one line as it was received, its LF included. SBX_E_LIMIT: more than SBX_HTTP_HEAD bytes,
 * SBX_HTTP_LINES lines or SBX_HTTP_INTERIM interim answers. SBX_E_REMOTE: no HTTP/1.0 or 1.1 status
 * line, a CR or NUL inside a line, a continuation line (RFC 9112, section 5.2), a name that is no
 * token, Content-Length that is not digits or differs from one before, Transfer-Encoding other than
 * `chunked` or beside a Content-Length (RFC 9112, section 6.1), Content-Encoding other than
 * `identity`, a Content-Range that is malformed, status 101. */
SBX_MUST_CHECK enum sbx_status sbx_http_head_line(struct sbx_http_head_reader *r, const char *line,
                                                  size_t n, struct sbx_error *err);

#endif
