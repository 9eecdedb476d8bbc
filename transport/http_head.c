/* In: lines of an answer's head, trusted with nothing. What could be read in two ways is refused,
 * so that nobody between us and the server can have read it in the other. Out: the few facts that
 * count. */
#include "transport/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/limits.h"

#define DIGITS_MOST 19 /* 2^63 - 1 has so many */

static enum sbx_status refuse(struct sbx_error *err, const char *what)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "the answer's head has %s", what);
}

/* Decimal digits only, all of value[0..n), at most 2^63 - 1. */
static bool number(const char *value, size_t n, uint64_t *ret)
{
    uint64_t sum = 0;

    if (n == 0 || n > DIGITS_MOST)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        sum = 10 * sum + (uint64_t)(value[i] - '0');
    }
    if (sum > INT64_MAX)
        return false;
    *ret = sum;
    return true;
}

static enum sbx_status on_length(struct sbx_http_head *head, const char *value, size_t n,
                                 struct sbx_error *err)
{
    uint64_t length;

    if (!number(value, n, &length))
        return refuse(err, "a Content-Length that is no number");
    if (head->has_length && head->length != length)
        return refuse(err, "two different Content-Lengths");
    head->has_length = true;
    head->length = length;
    return SBX_OK;
}

static enum sbx_status on_transfer(struct sbx_http_head *head, const char *value, size_t n,
                                   struct sbx_error *err)
{
    if (head->chunked || n != 7 || strncasecmp(value, "chunked", 7) != 0)
        return refuse(err, "a Transfer-Encoding other than chunked");
    head->chunked = true;
    return SBX_OK;
}

static enum sbx_status on_coding(struct sbx_http_head *head, const char *value, size_t n,
                                 struct sbx_error *err)
{
    (void)head;
    if (n != 8 || strncasecmp(value, "identity", 8) != 0)
        return refuse(err, "a Content-Encoding that was not asked for");
    return SBX_OK;
}

/* Invalid by RFC 9110, section 14.4: a range that ends before it begins, or beyond its total. */
static bool is_possible(const struct sbx_http_head *head)
{
    if (head->unsatisfied)
        return head->total_known;
    return head->first <= head->last && (!head->total_known || head->last < head->total);
}

/* "bytes 0-9/10", "bytes 0-9/" and an asterisk, or "bytes" with an asterisk before "/10" (RFC 9110,
 * section 14.4), which is the form of status 416. */
static enum sbx_status on_range(struct sbx_http_head *head, const char *value, size_t n,
                                struct sbx_error *err)
{
    const char *const end = value + n;
    const char *slash = memchr(value, '/', n), *dash;

    if (head->has_range || n < 6 || strncasecmp(value, "bytes ", 6) != 0 || !slash)
        return refuse(err, "a malformed Content-Range");
    value += 6;
    dash = slash > value ? memchr(value, '-', (size_t)(slash - value)) : NULL;
    head->unsatisfied = slash == value + 1 && *value == '*';
    if (!head->unsatisfied && (!dash || !number(value, (size_t)(dash - value), &head->first) ||
                               !number(dash + 1, (size_t)(slash - dash) - 1, &head->last)))
        return refuse(err, "a malformed Content-Range");
    head->total_known = !(slash + 2 == end && slash[1] == '*');
    if (head->total_known && !number(slash + 1, (size_t)(end - slash) - 1, &head->total))
        return refuse(err, "a malformed Content-Range");
    if (!is_possible(head))
        return refuse(err, "an impossible Content-Range");
    head->has_range = true;
    return SBX_OK;
}

static enum sbx_status on_retry(struct sbx_http_head *head, const char *value, size_t n,
                                struct sbx_error *err)
{
    uint64_t seconds;

    (void)err;
    if (number(value, n, &seconds))
        head->retry_after_s = seconds < UINT32_MAX ? (unsigned)seconds : UINT32_MAX;
    return SBX_OK;
}

static const struct field {
    const char *name;
    enum sbx_status (*read)(struct sbx_http_head *head, const char *value, size_t n,
                            struct sbx_error *err);
} fields[] = {
    {"content-length", on_length},   {"transfer-encoding", on_transfer},
    {"content-encoding", on_coding}, {"content-range", on_range},
    {"retry-after", on_retry},
};

/* A token (RFC 9110, section 5.6.2) and a colon right behind it. Returns its length; 0: none. */
static size_t name_len(const char *line, size_t n)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    size_t i;

    for (i = 0; i < n && line[i] != ':'; i++) {
        char c = line[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && (c == '\0' || !strchr(others, c)))
            return 0;
    }
    return i < n ? i : 0;
}

static bool is_name(const char *line, size_t len, const char *name)
{
    return strlen(name) == len && strncasecmp(line, name, len) == 0;
}

/* Comes after the body: what would have framed it says so too late. */
static enum sbx_status on_trailer(const char *line, size_t len, struct sbx_error *err)
{
    if (is_name(line, len, "content-length") || is_name(line, len, "transfer-encoding"))
        return refuse(err, "a trailer that frames");
    return SBX_OK;
}

static enum sbx_status on_field(struct sbx_http_head_reader *r, const char *line, size_t n,
                                struct sbx_error *err)
{
    size_t len = name_len(line, n), at = len + 1;

    if (len == 0)
        return refuse(err, "a line that is no field");
    if (r->done)
        return on_trailer(line, len, err);
    while (at < n && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (n > at && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    for (size_t i = 0; i < N_ELEMENTS(fields); i++)
        if (is_name(line, len, fields[i].name))
            return fields[i].read(&r->head, line + at, n - at, err);
    return SBX_OK;
}

/* "HTTP/1.1 200 ..." */
static enum sbx_status on_status(struct sbx_http_head_reader *r, const char *line, size_t n,
                                 struct sbx_error *err)
{
    uint64_t status;

    if (n < 12 || (memcmp(line, "HTTP/1.1 ", 9) != 0 && memcmp(line, "HTTP/1.0 ", 9) != 0) ||
        !number(line + 9, 3, &status) || status < 100 || (n > 12 && line[12] != ' '))
        return refuse(err, "no status line of HTTP/1");
    if (status == 101)
        return refuse(err, "a switch of protocols");
    r->head = (struct sbx_http_head){.status = (int)status};
    r->begun = true;
    return SBX_OK;
}

static enum sbx_status on_end(struct sbx_http_head_reader *r, struct sbx_error *err)
{
    if (r->done)
        return SBX_OK; /* of the trailers */
    if (r->head.chunked && r->head.has_length)
        return refuse(err, "both a length and chunks");
    r->begun = false;
    if (r->head.status >= 200) {
        r->done = true;
        return SBX_OK;
    }
    r->head.status = 0;
    if (++r->interim > SBX_HTTP_INTERIM)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "too many interim answers");
    return SBX_OK;
}

enum sbx_status sbx_http_head_line(struct sbx_http_head_reader *r, const char *line, size_t n,
                                   struct sbx_error *err)
{
    r->bytes += n;
    if (r->bytes > SBX_HTTP_HEAD || ++r->lines > SBX_HTTP_LINES)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "the answer's head is too long");
    if (n > 0 && line[n - 1] == '\n')
        n--;
    if (n > 0 && line[n - 1] == '\r')
        n--;
    if (memchr(line, '\r', n) || memchr(line, '\0', n) || memchr(line, '\n', n))
        return refuse(err, "a control character");
    if (n == 0)
        return on_end(r, err);
    if (line[0] == ' ' || line[0] == '\t')
        return refuse(err, "a continuation line");
    if (!r->begun && !r->done)
        return on_status(r, line, n, err);
    return on_field(r, line, n, err);
}
