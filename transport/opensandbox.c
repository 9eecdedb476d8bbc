/* A sandbox that its lifecycle server knows: looked up, kept alive for the pass, and then reached
 * as any execd. In: the server's answers, which lifecycle.c has checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/quote.h"
#include "sbx/verdict.h"
#include "transport/execd.h"
#include "transport/lifecycle.h"
#include "transport/transport.h"

#define DEFAULT_SERVER "localhost:8080"
#define KEY_HEADER "OPEN-SANDBOX-API-KEY"
#define TOKEN_HEADER "X-EXECD-ACCESS-TOKEN"
#define ID_MAX 128u /* characters; the server's are UUIDs of 36 */

struct opensandbox {
    struct sbx_transport *transport; /* borrowed; whose warnings are set */
    struct sbx_lifecycle lifecycle;
    struct sbx_execd *execd; /* owned; NULL until the sandbox was looked up */
    struct sbx_secrets secrets;
    struct sbx_arena texts; /* id, dir, prefixes, headers, token, cacert */
    const char *dir, *token, *cacert;
    bool through_server;
};

/* Asks for more time if the sandbox would end before the pass. A failure is no reason to stop: what
 * can be saved until then is worth having. */
static void keep_alive(struct opensandbox *os, const struct sbx_call *call,
                       const struct sbx_lifecycle_facts *facts)
{
    uint64_t now = sbx_clock_now();
    uint64_t left = call->deadline_ns > now ? call->deadline_ns - now : 0;
    int64_t need = sbx_clock_epoch() + (int64_t)(left / SBX_NS_PER_S) + SBX_LEASE_ROOM_S;

    if (facts->expires && facts->end_s < need &&
        sbx_lifecycle_renew(&os->lifecycle, call, need, NULL))
        os->transport->warnings |= 1u << SBX_WARN_LEASE;
}

static enum sbx_status add_token(struct opensandbox *os, const char **headers,
                                 struct sbx_execd_server *server, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf header = SBX_BUF_INIT(SBX_HTTP_ERROR);
    enum sbx_status st;

    if (!os->token)
        return SBX_OK;
    st = sbx_execd_add_header(TOKEN_HEADER, os->token, &header, &os->secrets, err);
    if (!st)
        st =
            sbx_arena_copy(&os->texts, header.data, header.len, &headers[server->n_headers++], err);
    return st;
}

static enum sbx_status look_up(struct opensandbox *os, const struct sbx_call *call,
                               struct sbx_error *err)
{
    const char *headers[SBX_EXECD_HEADERS];
    struct sbx_execd_server server = {.tls = os->lifecycle.tls,
                                      .secrets = &os->secrets,
                                      .cacert = os->cacert,
                                      .root = os->dir,
                                      .headers = headers};
    struct sbx_lifecycle_facts facts;
    enum sbx_status st = sbx_lifecycle_look(&os->lifecycle, call, &facts, err);

    if (st)
        return st;
    keep_alive(os, call, &facts);
    st = add_token(os, headers, &server, err);
    if (!st)
        st = sbx_lifecycle_endpoint(&os->lifecycle, call, os->through_server, &os->texts,
                                    &os->secrets, headers, &server, err);
    if (!st)
        st = sbx_execd_new(&server, &os->execd, err);
    if (!st && !server.tls && !sbx_url_is_loopback(&server.authority))
        os->transport->warnings |= 1u << SBX_WARN_PLAIN_HTTP;
    return st;
}

/* What looks like a lost connection may be a sandbox that has ended: its server knows. */
static enum sbx_status why_lost(struct opensandbox *os, const struct sbx_call *call,
                                enum sbx_status st, struct sbx_error *err)
{
    struct sbx_lifecycle_facts facts;
    struct sbx_error why = {.status = SBX_OK};

    if (st != SBX_E_UNREACHABLE ||
        sbx_lifecycle_look(&os->lifecycle, call, &facts, &why) != SBX_E_GONE)
        return st;
    if (err)
        *err = why;
    return SBX_E_GONE;
}

static enum sbx_status os_run(void *self, const struct sbx_call *call, const char *script,
                              size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                              struct sbx_exit *ret_exit, struct sbx_error *err)
{
    struct opensandbox *os = self;
    enum sbx_status st = os->execd ? SBX_OK : look_up(os, call, err);

    if (st)
        return st;
    st = sbx_execd_run(os->execd, call, script, script_len, out, diag, ret_exit, err);
    return why_lost(os, call, st, err);
}

/* The listing came first, so the sandbox was looked up by then. */
static enum sbx_status os_fetch(void *self, const struct sbx_call *call,
                                const struct sbx_queue *queue, struct sbx_sink diag,
                                struct sbx_error *err)
{
    struct opensandbox *os = self;

    if (!os->execd)
        return sbx_err_set(err, SBX_E_USAGE, 0, "fetch before any run");
    return sbx_execd_fetch(os->execd, call, queue, diag, err);
}

static void os_destroy(void *self)
{
    struct opensandbox *os = self;

    sbx_execd_free(os->execd);
    sbx_http_free(os->lifecycle.http);
    sbx_secrets_done(&os->secrets);
    sbx_arena_done(&os->texts);
    free(os);
}

/* It becomes part of a path. */
static bool is_id(const char *id)
{
    static const char allowed[] = "0123456789-_."
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = id ? strlen(id) : 0;

    return n > 0 && n <= ID_MAX && strspn(id, allowed) == n && id[0] != '.';
}

static enum sbx_status keep(struct opensandbox *os, const char *text, const char **ret,
                            struct sbx_error *err)
{
    *ret = NULL;
    return text && *text ? sbx_arena_copy(&os->texts, text, strlen(text), ret, err) : SBX_OK;
}

/* "[http://|https://]host[:port][/prefix]" */
static enum sbx_status read_server(struct opensandbox *os, const char *text, struct sbx_error *err)
{
    static const char plain[] = "http://", secure[] = "https://";
    SBX_BUF_AUTO struct sbx_buf prefix = SBX_BUF_INIT(SBX_MAX_PATH);
    enum sbx_status st;
    size_t n;

    os->lifecycle.tls = strncmp(text, secure, sizeof(secure) - 1) == 0;
    if (os->lifecycle.tls)
        text += sizeof(secure) - 1;
    else if (strncmp(text, plain, sizeof(plain) - 1) == 0)
        text += sizeof(plain) - 1;
    st = sbx_url_server(text, strlen(text), &os->lifecycle.authority, &prefix, err);
    if (st)
        return sbx_err_wrap(err, st, "the lifecycle server's address");
    n = prefix.len; /* whoever names the versioned path means the same server */
    if (n >= 3 && memcmp(prefix.data + n - 3, "/v1", 3) == 0)
        n -= 3;
    return sbx_arena_copy(&os->texts, n ? prefix.data : "", n, &os->lifecycle.prefix, err);
}

static enum sbx_status connect(struct opensandbox *os, const char *api_key, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf header = SBX_BUF_INIT(SBX_HTTP_ERROR);
    struct sbx_http_options options = {.tls = os->lifecycle.tls,
                                       .authority = os->lifecycle.authority,
                                       .prefix = os->lifecycle.prefix,
                                       .secrets = &os->secrets,
                                       .cacert = os->cacert,
                                       .connections = 1};
    enum sbx_status st = SBX_OK;

    if (api_key && *api_key) {
        st = sbx_execd_add_header(KEY_HEADER, api_key, &header, &os->secrets, err);
        options.headers = (const char *const *)&header.data;
        options.n_headers = 1;
    }
    return st ? st : sbx_http_new(&options, &os->lifecycle.http, err);
}

static enum sbx_status read_options(struct opensandbox *os, const struct sbx_opensandbox_options *o,
                                    struct sbx_error *err)
{
    enum sbx_status st = sbx_execd_check_root(o->dir, err);

    if (!st && !is_id(o->id))
        st = sbx_err_set(err, SBX_E_USAGE, 0, "'%s' is no id of a sandbox",
                         SBX_QUOTE(o->id ? o->id : ""));
    if (!st)
        st = keep(os, o->id, &os->lifecycle.id, err);
    if (!st)
        st = keep(os, o->dir, &os->dir, err);
    if (!st)
        st = keep(os, o->token, &os->token, err);
    if (!st)
        st = keep(os, o->cacert, &os->cacert, err);
    if (!st)
        st = read_server(os, o->server && *o->server ? o->server : DEFAULT_SERVER, err);
    os->through_server = o->use_server_proxy;
    return st ? st : connect(os, o->api_key, err);
}

enum sbx_status sbx_transport_opensandbox_new(const struct sbx_opensandbox_options *options,
                                              struct sbx_transport **ret, struct sbx_error *err)
{
    static const struct sbx_transport_ops ops = {.version = SBX_TRANSPORT_OPS_VERSION,
                                                 .max_script = SBX_EXECD_MAX_SCRIPT,
                                                 .run = os_run,
                                                 .fetch = os_fetch,
                                                 .destroy = os_destroy};
    SBX_BUF_AUTO struct sbx_buf identity = SBX_BUF_INIT(SBX_MIB);
    struct sbx_transport *transport = NULL;
    struct opensandbox *os;
    enum sbx_status st;

    if (!options || options->version != SBX_OPENSANDBOX_OPTIONS_VERSION)
        return sbx_err_set(err, SBX_E_USAGE, 0, "opensandbox: options of another version");
    os = calloc(1, sizeof(*os));
    if (!os)
        return sbx_err_nomem(err);
    os->texts = SBX_ARENA_INIT(SBX_MIB);
    st = read_options(os, options, err);
    if (!st)
        st = sbx_buf_printf(&identity, err, "opensandbox://%s%s", os->lifecycle.id, os->dir);
    if (st) {
        os_destroy(os);
        return st;
    }
    st = sbx_transport_new(&ops, os, options->dir, identity.data, &transport, err);
    if (st)
        return st;
    os->transport = transport;
    if (!os->lifecycle.tls && !sbx_url_is_loopback(&os->lifecycle.authority))
        transport->warnings |= 1u << SBX_WARN_PLAIN_HTTP;
    *ret = transport;
    return SBX_OK;
}
