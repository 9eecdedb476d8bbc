/* In: answers of the lifecycle server, trusted to say which sandbox lives and where; what they name
 * as an address or a header is checked before anything is sent there. */
#include "transport/lifecycle.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/quote.h"

/* States in which there is nothing to reach any more (OpenSandbox's API, `status.state`). */
static const char *const ended[] = {"Stopping", "Terminated", "Failed"};
/* States from which somebody else may bring it back, or in which it is not up yet. */
static const char *const not_running[] = {"Pending", "Allocated", "Pausing", "Paused", "Resuming"};

static bool is_among(const char *const *names, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return true;
    return false;
}

static bool digits(const char *text, size_t n, int *ret)
{
    int value = 0;

    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = 10 * value + (text[i] - '0');
    }
    *ret = value;
    return true;
}

/* What may follow the seconds: a fraction, and the one zone that the server writes. */
static bool ends_in_utc(const char *text, size_t n)
{
    size_t at = n > 0 && text[0] == '.';

    while (at > 0 && at < n && text[at] >= '0' && text[at] <= '9')
        at++;
    return (at + 1 == n && text[at] == 'Z') || (at + 6 == n && memcmp(text + at, "+00:00", 6) == 0);
}

bool sbx_lifecycle_time(const char *text, size_t n, int64_t *ret_s)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    static const struct part {
        size_t at, digits;
        int low, high;
    } parts[] = {{0, 4, 1970, 9999}, {5, 2, 1, 12},  {8, 2, 1, 31},
                 {11, 2, 0, 23},     {14, 2, 0, 59}, {17, 2, 0, 60}};
    const size_t n_form = sizeof(form) - 1;
    int values[N_ELEMENTS(parts)];
    struct tm tm = {0};

    if (n < n_form || !ends_in_utc(text + n_form, n - n_form))
        return false;
    for (size_t i = 0; i < n_form; i++)
        if (form[i] != 'd' && text[i] != form[i])
            return false;
    for (size_t i = 0; i < N_ELEMENTS(parts); i++)
        if (!digits(text + parts[i].at, parts[i].digits, &values[i]) || values[i] < parts[i].low ||
            values[i] > parts[i].high)
            return false;
    tm.tm_year = values[0] - 1900;
    tm.tm_mon = values[1] - 1;
    tm.tm_mday = values[2];
    tm.tm_hour = values[3];
    tm.tm_min = values[4];
    tm.tm_sec = values[5];
    *ret_s = timegm(&tm);
    return true;
}

/* What a status other than success means for the sandbox. */
static enum sbx_status judge_status(const struct sbx_lifecycle *l, int status,
                                    struct sbx_error *err)
{
    if (status == 200)
        return SBX_OK;
    if (status == 401 || status == 403)
        return sbx_err_set(err, SBX_E_UNAUTHORISED, 0,
                           "the lifecycle server %s refused the API key (status %d)",
                           SBX_QUOTE(l->authority.host), status);
    if (status == 404 || status == 410)
        return sbx_err_set(err, SBX_E_GONE, 0, "the lifecycle server %s knows no sandbox '%s'",
                           SBX_QUOTE(l->authority.host), SBX_QUOTE(l->id));
    return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "the lifecycle server %s answered status %d",
                       SBX_QUOTE(l->authority.host), status);
}

static enum sbx_status malformed(const struct sbx_lifecycle *l, const char *what,
                                 struct sbx_error *err)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "the lifecycle server %s gave a malformed %s",
                       SBX_QUOTE(l->authority.host), what);
}

/* One question below /v1/sandboxes/ID. send: JSON of a POST, or NULL for a GET. */
static enum sbx_status ask(const struct sbx_lifecycle *l, const struct sbx_call *call,
                           const char *rest, const char *send, struct sbx_json **ret,
                           struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf target = SBX_BUF_INIT(SBX_LIFECYCLE_TARGET);
    SBX_BUF_AUTO struct sbx_buf body = SBX_BUF_INIT(SBX_HTTP_ANSWER);
    const uint64_t idle = call->idle_ns ? call->idle_ns : SBX_NEVER;
    struct sbx_http_request request = {.method = send ? "POST" : "GET",
                                       .send = send,
                                       .send_len = send ? strlen(send) : 0,
                                       .accept = "application/json",
                                       .max_body = SBX_HTTP_ANSWER,
                                       .first_ns = idle,
                                       .idle_ns = idle};
    struct sbx_http_answer answer;
    enum sbx_status st = sbx_buf_printf(&target, err, "/v1/sandboxes/%s%s", l->id, rest);

    if (st)
        return st;
    request.target = target.data;
    st = sbx_http_ask(l->http, call, &request, &body, &answer, err);
    if (!st && answer.end != SBX_HTTP_OK)
        st = sbx_err_set(err, SBX_E_UNREACHABLE, 0, "the lifecycle server's answer was cut");
    if (!st)
        st = judge_status(l, answer.head.status, err);
    if (!st && sbx_json_parse(body.len ? body.data : "", body.len, ret, NULL))
        st = malformed(l, "answer", err);
    return st;
}

enum sbx_status sbx_lifecycle_look(const struct sbx_lifecycle *l, const struct sbx_call *call,
                                   struct sbx_lifecycle_facts *ret, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *answer = NULL, *status = NULL;
    const char *state, *end;
    size_t n, n_end;
    enum sbx_status st = ask(l, call, "", NULL, &answer, err);

    if (st)
        return st;
    if (!sbx_json_get_object(answer, "status", &status) ||
        !sbx_json_get_str(status, "state", &state, &n) || strlen(state) != n)
        return malformed(l, "state", err);
    if (is_among(ended, N_ELEMENTS(ended), state))
        return sbx_err_set(err, SBX_E_GONE, 0, "sandbox '%s' has ended (%s)", SBX_QUOTE(l->id),
                           SBX_QUOTE(state));
    if (is_among(not_running, N_ELEMENTS(not_running), state))
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0,
                           "sandbox '%s' is not running (%s), and is not woken by this",
                           SBX_QUOTE(l->id), SBX_QUOTE(state));
    *ret = (struct sbx_lifecycle_facts){.expires = false};
    if (!sbx_json_get_str(answer, "expiresAt", &end, &n_end))
        return SBX_OK;
    if (!sbx_lifecycle_time(end, n_end, &ret->end_s))
        return malformed(l, "expiresAt", err);
    ret->expires = true;
    return SBX_OK;
}

enum sbx_status sbx_lifecycle_renew(const struct sbx_lifecycle *l, const struct sbx_call *call,
                                    int64_t until_s, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *answer = NULL;
    time_t at = (time_t)until_s;
    char send[64], when[32];
    struct tm tm;

    if (!gmtime_r(&at, &tm) || strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return sbx_err_set(err, SBX_E_USAGE, 0, "renewal: no such time");
    (void)snprintf(send, sizeof(send), "{\"expiresAt\":\"%s\"}", when);
    return ask(l, call, "/renew-expiration", send, &answer, err);
}

/* Whether a header may be added to our requests: a token of RFC 9110, section 5.6.2, and none that
 * frames a message, names its target, or asks for something else than we do. */
static bool may_send(const char *name)
{
    static const char *const ours[] = {
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "range",
        "if-range",
        "content-type",
        "accept",
        "accept-encoding",
        "open-sandbox-api-key",
        "cookie",
    };
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    if (!name[0] || name[strspn(name, token)])
        return false;
    for (size_t i = 0; i < N_ELEMENTS(ours); i++)
        if (strcasecmp(name, ours[i]) == 0)
            return false;
    return true;
}

static enum sbx_status read_headers(const struct sbx_lifecycle *l, const struct sbx_json *answer,
                                    struct sbx_arena *texts, struct sbx_secrets *secrets,
                                    const char *headers[], struct sbx_execd_server *ret,
                                    struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *object = NULL;
    SBX_BUF_AUTO struct sbx_buf header = SBX_BUF_INIT(SBX_HTTP_ERROR_KEPT);
    enum sbx_status st = SBX_OK;

    if (!sbx_json_has(answer, "headers"))
        return SBX_OK;
    if (!sbx_json_get_object(answer, "headers", &object) ||
        sbx_json_members(object) > SBX_EXECD_HEADERS - ret->n_headers)
        return malformed(l, "list of headers", err);
    for (size_t i = 0; i < sbx_json_members(object) && !st; i++) {
        const char *name, *value;
        size_t n;

        if (!sbx_json_get_member_str(object, i, &name, &value, &n) || strlen(value) != n ||
            !may_send(name))
            return malformed(l, "header", err);
        sbx_buf_clear(&header);
        if (sbx_execd_add_header(name, value, &header, secrets, NULL))
            return malformed(l, "header", err);
        st = sbx_arena_copy(texts, header.data, header.len, &headers[ret->n_headers], err);
        if (!st)
            ret->n_headers++;
    }
    return st;
}

/* What was asked for and what was given have to be the same server. */
static bool same_server(const struct sbx_url_authority *a, const struct sbx_url_authority *b,
                        unsigned port)
{
    return strcmp(a->host, b->host) == 0 &&
           (a->port ? a->port : port) == (b->port ? b->port : port);
}

enum sbx_status sbx_lifecycle_endpoint(const struct sbx_lifecycle *l, const struct sbx_call *call,
                                       bool through_server, struct sbx_arena *texts,
                                       struct sbx_secrets *secrets,
                                       const char *headers[SBX_EXECD_HEADERS],
                                       struct sbx_execd_server *ret, struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *answer = NULL;
    SBX_BUF_AUTO struct sbx_buf prefix = SBX_BUF_INIT(SBX_LIFECYCLE_TARGET);
    const char *endpoint;
    char rest[64];
    size_t n;
    enum sbx_status st;

    (void)snprintf(rest, sizeof(rest), "/endpoints/%u?use_server_proxy=%s", SBX_EXECD_PORT,
                   through_server ? "true" : "false");
    st = ask(l, call, rest, NULL, &answer, err);
    if (st)
        return st;
    if (!sbx_json_get_str(answer, "endpoint", &endpoint, &n) ||
        sbx_url_server(endpoint, n, &ret->authority, &prefix, NULL))
        return malformed(l, "endpoint", err);
    if (through_server && !same_server(&ret->authority, &l->authority, l->tls ? 443 : 80))
        return sbx_err_set(err, SBX_E_REMOTE, 0,
                           "asked for a way through the lifecycle server %s, got one to %s",
                           SBX_QUOTE(l->authority.host), SBX_QUOTE(ret->authority.host));
    st = sbx_arena_copy(texts, prefix.len ? prefix.data : "", prefix.len, &ret->prefix, err);
    return st ? st : read_headers(l, answer, texts, secrets, headers, ret, err);
}
