/* Which files go which way, and the transport for an execd that is reached directly. In: wanted
 * files, whose names the sandbox has chosen; they leave percent-encoded in a request, or as octal
 * escapes in a script. */
#include "transport/execd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "sbx/verdict.h"
#include "transport/execd_command.h"
#include "transport/http.h"
#include "transport/http_fetch.h"
#include "transport/stream_fetch.h"
#include "transport/transport.h"

#define TOKEN_HEADER "X-EXECD-ACCESS-TOKEN"
#define COMMAND_CONNECTIONS 2u /* its stream, and the request that ends it */
#define MAX_TARGET (3 * (SBX_MAX_PATH + 1) * 2 + 64)

struct sbx_execd {
    struct sbx_http *run_http;      /* owned; NULL until the first use */
    struct sbx_http *fetch_http;    /* owned; of commands that bring files */
    struct sbx_execd_server server; /* its texts are in `texts` */
    const char *headers[SBX_EXECD_HEADERS];
    struct sbx_arena texts;
};

enum sbx_status sbx_execd_check_root(const char *root, struct sbx_error *err)
{
    if (!root || root[0] != '/')
        return sbx_err_set(err, SBX_E_USAGE, 0, "the remote directory is not absolute");
    if (!sbx_utf8_valid(root, strlen(root)))
        return sbx_err_set(err, SBX_E_USAGE, 0,
                           "the remote directory '%s' is not UTF-8, which execd needs",
                           SBX_QUOTE(root));
    return SBX_OK;
}

enum sbx_status sbx_execd_add_header(const char *name, const char *value, struct sbx_buf *header,
                                     struct sbx_secrets *secrets, struct sbx_error *err)
{
    enum sbx_status st;

    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return sbx_err_set(err, SBX_E_USAGE, 0, "the value of %s has control characters",
                               SBX_QUOTE(name));
    st = sbx_secrets_add(secrets, value, err);
    return st ? st : sbx_buf_printf(header, err, "%s: %s", name, value);
}

static enum sbx_status keep(struct sbx_execd *e, const char **text, struct sbx_error *err)
{
    return *text ? sbx_arena_copy(&e->texts, *text, strlen(*text), text, err) : SBX_OK;
}

enum sbx_status sbx_execd_new(const struct sbx_execd_server *server, struct sbx_execd **ret,
                              struct sbx_error *err)
{
    struct sbx_execd *e;
    enum sbx_status st;

    if (server->n_headers > N_ELEMENTS(e->headers))
        return sbx_err_set(err, SBX_E_LIMIT, 0, "too many headers for execd");
    e = calloc(1, sizeof(*e));
    if (!e)
        return sbx_err_nomem(err);
    e->texts = SBX_ARENA_INIT(SBX_MIB);
    e->server = *server;
    st = keep(e, &e->server.prefix, err);
    if (!st)
        st = keep(e, &e->server.cacert, err);
    if (!st)
        st = keep(e, &e->server.root, err);
    for (size_t i = 0; i < server->n_headers && !st; i++) {
        e->headers[i] = server->headers[i];
        st = keep(e, &e->headers[i], err);
    }
    e->server.headers = e->headers;
    if (st) {
        sbx_execd_free(e);
        return st;
    }
    *ret = e;
    return SBX_OK;
}

void sbx_execd_free(struct sbx_execd *execd)
{
    if (!execd)
        return;
    sbx_http_free(execd->run_http);
    sbx_http_free(execd->fetch_http);
    sbx_arena_done(&execd->texts);
    free(execd);
}

static enum sbx_status connect(const struct sbx_execd *e, unsigned connections,
                               struct sbx_http **ret, struct sbx_error *err)
{
    const struct sbx_http_options options = {.tls = e->server.tls,
                                             .authority = e->server.authority,
                                             .prefix = e->server.prefix,
                                             .headers = e->server.headers,
                                             .n_headers = e->server.n_headers,
                                             .secrets = e->server.secrets,
                                             .cacert = e->server.cacert,
                                             .connections = connections,
                                             .gentle = true};

    return *ret ? SBX_OK : sbx_http_new(&options, ret, err);
}

/* No limit on silence: a walk through many directories without a file says nothing for long, and
 * execd's pings show that it is alive. */
enum sbx_status sbx_execd_run(struct sbx_execd *execd, const struct sbx_call *call,
                              const char *script, size_t script_len, struct sbx_sink out,
                              struct sbx_sink diag, struct sbx_exit *ret_exit,
                              struct sbx_error *err)
{
    enum sbx_status st = connect(execd, COMMAND_CONNECTIONS, &execd->run_http, err);

    return st ? st
              : sbx_execd_command(execd->run_http, execd->server.secrets, call, script, script_len,
                                  0, out, diag, ret_exit, err);
}

/* A fetch under way: the caller's queue, less the files that execd's GET would mistake. */
struct fetch {
    struct sbx_execd *e;
    const struct sbx_call *call;
    const struct sbx_queue *queue;
    const struct sbx_wanted *aside[SBX_STREAM_FILES];
    size_t n_aside, names;
};

static enum sbx_status run_in_fetch(void *ctx, const struct sbx_call *call, const char *script,
                                    size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                                    struct sbx_exit *ret_exit, struct sbx_error *err)
{
    struct sbx_execd *e = ctx;
    enum sbx_status st = connect(e, COMMAND_CONNECTIONS, &e->fetch_http, err);

    return st ? st
              : sbx_execd_command(e->fetch_http, e->server.secrets, call, script, script_len,
                                  call->idle_ns, out, diag, ret_exit, err);
}

/* execd replaces $NAME in a path, and there is no way to write a '$' that stays one. */
static bool needs_command(const struct fetch *f, const struct sbx_wanted *file)
{
    return strchr(f->e->server.root, '$') || memchr(file->path, '$', file->path_len);
}

static enum sbx_next on_next(void *ctx, const struct sbx_wanted **ret)
{
    struct fetch *f = ctx;

    while (f->n_aside < SBX_STREAM_FILES && f->names < SBX_STREAM_NAMES) {
        const struct sbx_wanted *file;
        enum sbx_next next = f->queue->next(f->queue->ctx, &file);

        if (next != SBX_NEXT_FILE || !needs_command(f, file)) {
            *ret = next == SBX_NEXT_FILE ? file : *ret;
            return next;
        }
        f->aside[f->n_aside++] = file;
        f->names += sbx_quote_octal_len(file->path, file->path_len);
    }
    return SBX_NEXT_NONE;
}

static enum sbx_status on_begin(void *ctx, const struct sbx_wanted *file, struct sbx_error *err)
{
    const struct sbx_queue *queue = ((struct fetch *)ctx)->queue;

    return queue->begin(queue->ctx, file, err);
}

static enum sbx_status on_write(void *ctx, const struct sbx_wanted *file, const void *bytes,
                                size_t n, struct sbx_error *err)
{
    const struct sbx_queue *queue = ((struct fetch *)ctx)->queue;

    return queue->write(queue->ctx, file, bytes, n, err);
}

static void on_end(void *ctx, const struct sbx_wanted *file, enum sbx_fetch_result result,
                   const char *record, size_t record_len, const struct sbx_error *why)
{
    const struct sbx_queue *queue = ((struct fetch *)ctx)->queue;

    queue->end(queue->ctx, file, result, record, record_len, why);
}

static enum sbx_status add_target(void *ctx, const struct sbx_wanted *file, struct sbx_buf *out,
                                  struct sbx_error *err)
{
    const char *root = ((struct fetch *)ctx)->e->server.root;
    size_t n = strlen(root);
    enum sbx_status st = sbx_buf_str(out, "/files/download?path=", err);

    while (n > 0 && root[n - 1] == '/')
        n--;
    if (!st)
        st = sbx_url_encode(out, root, n, err);
    if (!st)
        st = sbx_buf_str(out, "/", err);
    return st ? st : sbx_url_encode(out, file->path, file->path_len, err);
}

static void end_aside(struct fetch *f, enum sbx_status st, const struct sbx_error *why)
{
    bool ours = st == SBX_E_CANCELLED || st == SBX_E_DEADLINE;

    while (f->n_aside > 0)
        f->queue->end(f->queue->ctx, f->aside[--f->n_aside],
                      ours ? SBX_FETCH_CANCELLED : SBX_FETCH_LOST, NULL, 0, why);
}

static enum sbx_status fetch_all(struct fetch *f, struct sbx_http *http, struct sbx_sink diag,
                                 struct sbx_error *err)
{
    const struct sbx_http_fetch get = {
        .http = http, .secrets = f->e->server.secrets, .ctx = f, .target = add_target};
    const struct sbx_queue queue = {.ctx = f,
                                    .ready_fd = f->queue->ready_fd,
                                    .next = on_next,
                                    .begin = on_begin,
                                    .write = on_write,
                                    .end = on_end};
    enum sbx_status st;
    bool more;

    do {
        struct sbx_error why = {.status = SBX_OK};

        f->n_aside = f->names = 0;
        st = sbx_http_fetch(&get, f->call, &queue, &why);
        more = f->n_aside > 0;
        if (st)
            end_aside(f, st, &why);
        else if (more)
            st = sbx_stream_fetch(run_in_fetch, f->e, f->call, f->queue, f->aside, f->n_aside, diag,
                                  &why);
        if (st && err)
            *err = why;
    } while (!st && more);
    return st;
}

enum sbx_status sbx_execd_fetch(struct sbx_execd *execd, const struct sbx_call *call,
                                const struct sbx_queue *queue, struct sbx_sink diag,
                                struct sbx_error *err)
{
    struct fetch f = {.e = execd, .call = call, .queue = queue};
    struct sbx_http *http = NULL;
    enum sbx_status st = connect(execd, call->jobs ? call->jobs : 1, &http, err);

    if (!st)
        st = fetch_all(&f, http, diag, err);
    sbx_http_free(http);
    return st;
}

struct direct {
    struct sbx_execd *execd;
    struct sbx_secrets secrets;
};

static enum sbx_status direct_run(void *self, const struct sbx_call *call, const char *script,
                                  size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                                  struct sbx_exit *ret_exit, struct sbx_error *err)
{
    const struct direct *d = self;

    return sbx_execd_run(d->execd, call, script, script_len, out, diag, ret_exit, err);
}

static enum sbx_status direct_fetch(void *self, const struct sbx_call *call,
                                    const struct sbx_queue *queue, struct sbx_sink diag,
                                    struct sbx_error *err)
{
    const struct direct *d = self;

    return sbx_execd_fetch(d->execd, call, queue, diag, err);
}

static void direct_destroy(void *self)
{
    struct direct *d = self;

    sbx_execd_free(d->execd);
    sbx_secrets_done(&d->secrets);
    free(d);
}

/* "execd://host:port" and the directory: the endpoint stands for the sandbox. */
static enum sbx_status make_identity(const struct sbx_url_authority *authority, const char *dir,
                                     struct sbx_buf *out, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_str(out, "execd://", err);

    if (!st)
        st = sbx_url_add_authority(out, authority, err);
    return st ? st : sbx_buf_str(out, dir, err);
}

static enum sbx_status direct_open(struct direct *d, const struct sbx_execd_options *o,
                                   const struct sbx_url_authority *authority, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf header = SBX_BUF_INIT(SBX_HTTP_HEAD);
    struct sbx_execd_server server = {.tls = o->tls,
                                      .authority = *authority,
                                      .prefix = "",
                                      .secrets = &d->secrets,
                                      .cacert = o->cacert,
                                      .root = o->dir};
    enum sbx_status st = SBX_OK;

    if (o->token && o->token[0]) {
        st = sbx_execd_add_header(TOKEN_HEADER, o->token, &header, &d->secrets, err);
        server.headers = (const char *const *)&header.data;
        server.n_headers = 1;
    }
    return st ? st : sbx_execd_new(&server, &d->execd, err);
}

static enum sbx_status read_options(const struct sbx_execd_options *o,
                                    struct sbx_url_authority *ret, struct sbx_error *err)
{
    if (!o || o->version != SBX_EXECD_OPTIONS_VERSION || !o->host || o->port > 65535)
        return sbx_err_set(err, SBX_E_USAGE, 0, "execd: wrong version, or no host or port");
    if (strchr(o->host, ':')) {
        char text[SBX_URL_HOST_MAX + 3];

        if (strlen(o->host) > SBX_URL_HOST_MAX)
            return sbx_err_set(err, SBX_E_USAGE, 0, "execd: the host's name is too long");
        (void)snprintf(text, sizeof(text), "[%s]", o->host);
        return sbx_url_authority(text, strlen(text), ret, err);
    }
    return sbx_url_authority(o->host, strlen(o->host), ret, err);
}

enum sbx_status sbx_transport_execd_new(const struct sbx_execd_options *options,
                                        struct sbx_transport **ret, struct sbx_error *err)
{
    static const struct sbx_transport_ops ops = {.version = SBX_TRANSPORT_OPS_VERSION,
                                                 .max_script = SBX_EXECD_MAX_SCRIPT,
                                                 .run = direct_run,
                                                 .fetch = direct_fetch,
                                                 .destroy = direct_destroy};
    SBX_BUF_AUTO struct sbx_buf identity = SBX_BUF_INIT(SBX_MIB);
    struct sbx_transport *transport = NULL;
    struct sbx_url_authority authority;
    struct direct *d;
    enum sbx_status st = read_options(options, &authority, err);

    if (!st)
        st = sbx_execd_check_root(options->dir, err);
    if (st)
        return st;
    authority.port = options->port ? options->port : SBX_EXECD_PORT;
    d = calloc(1, sizeof(*d));
    if (!d)
        return sbx_err_nomem(err);
    st = direct_open(d, options, &authority, err);
    if (!st)
        st = make_identity(&authority, options->dir, &identity, err);
    if (st) {
        direct_destroy(d);
        return st;
    }
    st = sbx_transport_new(&ops, d, options->dir, identity.data, &transport, err);
    if (st)
        return st;
    if (!options->tls && !sbx_url_is_loopback(&authority))
        transport->warnings |= 1u << SBX_WARN_PLAIN_HTTP;
    *ret = transport;
    return SBX_OK;
}
