/* In: what libcurl hands on of an answer. The head is read by http_head, the body is counted and
 * goes to the request's callback. Out: requests to one origin with its headers. */
#include "transport/http_easy.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/quote.h"
#include "sbx/version.h"

#define BUFFER (256L * 1024) /* bytes that libcurl reads at once: fewer calls for large files */

static size_t end_by_us(struct sbx_http_exchange *x, enum sbx_http_end end)
{
    x->ours = true;
    x->end = end;
    return CURL_WRITEFUNC_ERROR;
}

static enum sbx_http_end end_of_head(enum sbx_status st)
{
    return st == SBX_E_LIMIT ? SBX_HTTP_LIMIT : SBX_HTTP_PROTOCOL;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct sbx_http_exchange *x = ctx;
    size_t n = size * count; /* libcurl documents size == 1, so this cannot wrap */
    bool done = x->reader.done;
    enum sbx_status st;

    st = sbx_http_head_line(&x->reader, line, n, &x->why);
    if (st)
        return end_by_us(x, end_of_head(st));
    /* One clock for the whole head: a line now and then would hold it up for ever. */
    if (x->reader.done)
        x->heard_ns = sbx_clock_now();
    if (!done && x->reader.done && x->request.on_head &&
        x->request.on_head(x->request.ctx, &x->reader.head) == SBX_HTTP_STOP)
        return end_by_us(x, SBX_HTTP_STOPPED);
    return n;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct sbx_http_exchange *x = ctx;
    size_t n = size * count;

    x->heard_ns = sbx_clock_now();
    x->body += n;
    if (x->body > x->request.max_body) {
        (void)sbx_err_set(&x->why, SBX_E_LIMIT, 0, "more came than was asked for");
        /* What was asked for counts all the same. */
        n -= (size_t)(x->body - x->request.max_body);
        if (n > 0)
            (void)x->request.on_body(x->request.ctx, bytes, n);
        return end_by_us(x, SBX_HTTP_LIMIT);
    }
    if (x->request.on_body(x->request.ctx, bytes, n) == SBX_HTTP_STOP)
        return end_by_us(x, SBX_HTTP_STOPPED);
    /* Disks may be slow; that time is not the peer's. */
    x->heard_ns = sbx_clock_now();
    return n;
}

/* The connection is there, and the request is about to be sent: now the answer is waited for. */
static int on_connected(void *ctx, char *to, char *from, int to_port, int from_port)
{
    struct sbx_http_exchange *x = ctx;

    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    x->asked = true;
    x->heard_ns = sbx_clock_now();
    return CURL_PREREQFUNC_OK;
}

/* Options that are numbers and do not change. */
static const struct number_option {
    CURLoption option;
    long value;
} numbers[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_NOPROGRESS, 1},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_HTTP_CONTENT_DECODING, 0},
    {CURLOPT_HTTP_TRANSFER_DECODING, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_MAXREDIRS, 0},
    {CURLOPT_UNRESTRICTED_AUTH, 0},
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
    {CURLOPT_PATH_AS_IS, 1},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    {CURLOPT_TCP_NODELAY, 1},
    {CURLOPT_BUFFERSIZE, BUFFER},
    /* A name server that is silent would hold the end of the handle for ten seconds. */
    {CURLOPT_QUICK_EXIT, 1},
};

/* CURLOPT_CAINFO alone adds to what libcurl was built to trust: Debian's also looks into a
 * directory, /etc/ssl/certs. */
static bool set_trust(CURL *easy, const char *cacert)
{
    return !cacert || (!curl_easy_setopt(easy, CURLOPT_CAINFO, cacert) &&
                       !curl_easy_setopt(easy, CURLOPT_CAPATH, NULL));
}

static bool set_fixed(CURL *easy, const struct sbx_http_origin *origin)
{
    CURLcode rc = CURLE_OK;

    for (size_t i = 0; i < N_ELEMENTS(numbers) && !rc; i++)
        rc = curl_easy_setopt(easy, numbers[i].option, numbers[i].value);
    return !rc && !curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") &&
           !curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https") &&
           !curl_easy_setopt(easy, CURLOPT_USERAGENT, "sbx-sync/" SBX_VERSION) &&
           !curl_easy_setopt(easy, CURLOPT_NOPROXY, origin->direct ? "*" : NULL) &&
           set_trust(easy, origin->cacert) &&
           !curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) &&
           !curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) &&
           !curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
}

CURL *sbx_http_easy_new(const struct sbx_http_origin *origin)
{
    CURL *easy = curl_easy_init();

    if (easy && !set_fixed(easy, origin)) {
        curl_easy_cleanup(easy);
        return NULL;
    }
    return easy;
}

static bool add_field(struct curl_slist **list, const char *field)
{
    struct curl_slist *longer = curl_slist_append(*list, field);

    if (longer)
        *list = longer;
    return longer != NULL;
}

/* A list of its own only where a request has more to say than all have. */
static bool make_fields(const struct sbx_http_origin *origin, struct sbx_http_exchange *x)
{
    char accept[128];

    if (!x->request.accept && !x->request.send)
        return true;
    for (const struct curl_slist *f = origin->fields; f; f = f->next)
        if (!add_field(&x->fields, f->data))
            return false;
    if (x->request.accept) {
        (void)snprintf(accept, sizeof(accept), "Accept: %s", x->request.accept);
        if (!add_field(&x->fields, accept))
            return false;
    }
    return !x->request.send || add_field(&x->fields, "Content-Type: application/json");
}

static bool is_post(const struct sbx_http_request *r)
{
    return strcmp(r->method, "POST") == 0;
}

static CURLcode set_method(CURL *easy, const struct sbx_http_request *r)
{
    CURLcode rc;

    if (r->send || is_post(r)) {
        rc = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->send ? r->send : "");
        if (!rc)
            rc = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                  (curl_off_t)(r->send ? r->send_len : 0));
        if (!rc)
            rc = curl_easy_setopt(easy, CURLOPT_POST, 1L);
    } else {
        rc = curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    return rc ? rc
              : curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                                 strcmp(r->method, "DELETE") == 0 ? r->method : NULL);
}

/* libcurl reads 0 as "no limit" (300 s, for connecting). */
static long milliseconds(uint64_t ns)
{
    uint64_t ms = ns / SBX_NS_PER_MS + 1;

    return ms > INT32_MAX ? INT32_MAX : (long)ms;
}

static CURLcode set_clocks(const struct sbx_http_exchange *x, uint64_t now)
{
    /* A second later than the caller's own look at the clock, which tells deadline and cancellation
     * apart: this one is only for waits within libcurl. */
    uint64_t left = (x->deadline_ns > now ? x->deadline_ns - now : 0) + SBX_NS_PER_S;
    CURLcode rc =
        curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(x->request.first_ns));

    return rc ? rc : curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, milliseconds(left));
}

/* What the callbacks are given. */
static CURLcode set_context(struct sbx_http_exchange *x)
{
    static const CURLoption options[] = {CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_PREREQDATA,
                                         CURLOPT_PRIVATE};
    CURLcode rc = curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->error);

    for (size_t i = 0; i < N_ELEMENTS(options) && !rc; i++)
        rc = curl_easy_setopt(x->easy, options[i], x);
    return rc;
}

/* libcurl sends a request again, whatever its method, if a connection that served another one ends
 * without an answer. The server may have done all the same what a POST asked for. */
static long wants_fresh(const struct sbx_http_request *r)
{
    return r->fresh || is_post(r) ? 1L : 0L;
}

enum sbx_status sbx_http_easy_aim(const struct sbx_http_origin *origin, struct sbx_http_exchange *x,
                                  struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf url = SBX_BUF_INIT(SBX_HTTP_HEAD);
    const struct sbx_http_request *r = &x->request;
    uint64_t now = sbx_clock_now();
    char range[48];
    enum sbx_status st = sbx_buf_printf(&url, err, "%s%s", origin->url.data, r->target);

    if (st)
        return st;
    (void)snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)r->first,
                   (unsigned long long)r->last);
    x->heard_ns = now;
    if (!make_fields(origin, x) || set_method(x->easy, r) || set_clocks(x, now) || set_context(x) ||
        curl_easy_setopt(x->easy, CURLOPT_URL, url.data) ||
        curl_easy_setopt(x->easy, CURLOPT_RANGE, r->has_range ? range : NULL) ||
        curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->fields ? x->fields : origin->fields) ||
        curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, wants_fresh(r)))
        return sbx_err_nomem(err);
    return SBX_OK;
}

static enum sbx_http_end end_of_code(const struct sbx_http_exchange *x, CURLcode rc)
{
    const struct sbx_http_head *head = &x->reader.head;

    /* To libcurl a head that ends in the middle is a whole one. */
    if (!x->reader.done && (rc == CURLE_OK || rc == CURLE_PARTIAL_FILE))
        return SBX_HTTP_NO_HEAD;
    switch (rc) {
    case CURLE_OK:
        return head->chunked || head->has_length || head->status == 204 || head->status == 304
                   ? SBX_HTTP_OK
                   : SBX_HTTP_UNFRAMED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
        return SBX_HTTP_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return SBX_HTTP_TLS;
    case CURLE_PARTIAL_FILE:
        return SBX_HTTP_CUT;
    case CURLE_GOT_NOTHING:
        return SBX_HTTP_NO_HEAD;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        /* The same code for a lost connection and for chunks that are none; only the text says. */
        if (strstr(x->error, "hunk"))
            return SBX_HTTP_PROTOCOL;
        return x->reader.done ? SBX_HTTP_RESET : SBX_HTTP_NO_HEAD;
    case CURLE_OPERATION_TIMEDOUT:
        return sbx_clock_now() >= x->deadline_ns ? SBX_HTTP_CANCELLED : SBX_HTTP_STUCK;
    case CURLE_OUT_OF_MEMORY:
        /* libcurl's word also for a line of more than 100 kB. */
        return x->reader.done ? SBX_HTTP_FAILED : SBX_HTTP_LIMIT;
    default:
        return SBX_HTTP_PROTOCOL;
    }
}

void sbx_http_easy_fail(const struct sbx_http_origin *origin, struct sbx_http_exchange *x,
                        enum sbx_http_end end, const char *what)
{
    SBX_BUF_AUTO struct sbx_buf text = SBX_BUF_INIT(4 * CURL_ERROR_SIZE);

    x->end = end;
    (void)!sbx_secrets_redact(origin->secrets, what, strlen(what), &text, NULL);
    (void)sbx_err_set(&x->why, sbx_http_status(end), 0, "%s: %s", origin->name,
                      SBX_QUOTE(text.len ? text.data : "failed"));
}

void sbx_http_easy_judge(const struct sbx_http_origin *origin, struct sbx_http_exchange *x,
                         CURLcode rc)
{
    struct sbx_error seen = x->why;

    if (x->ours && x->end == SBX_HTTP_STOPPED) {
        x->why = (struct sbx_error){.status = SBX_OK};
    } else if (x->ours) {
        sbx_http_easy_fail(origin, x, x->end, seen.msg);
    } else {
        enum sbx_http_end end = end_of_code(x, rc);

        if (end != SBX_HTTP_OK)
            sbx_http_easy_fail(origin, x, end,
                               end == SBX_HTTP_UNFRAMED ? "the answer says nothing of its length"
                               : x->error[0]            ? x->error
                               : rc == CURLE_OK         ? "the answer ended within its head"
                                                        : curl_easy_strerror(rc));
        x->end = end;
    }
}

bool sbx_http_easy_stuck(const struct sbx_http_exchange *x, uint64_t now, uint64_t *ret_ns)
{
    uint64_t limit = x->reader.done ? x->request.idle_ns : x->request.first_ns;

    if (__builtin_add_overflow(x->heard_ns, limit, ret_ns))
        *ret_ns = SBX_NEVER;
    return now >= *ret_ns;
}
