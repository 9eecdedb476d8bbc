/* What a command line and its environment say of a source. Both are the operator's and trusted;
 * what is read here goes into options, and secrets go nowhere else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/transport.h"
#include "transport/url.h"

/* A ':' before any '/' ends a scheme; such a directory is written with "./" before it. */
static size_t scheme_len(const char *source)
{
    size_t n = strcspn(source, ":/");

    return source[n] == ':' ? n + 1 : 0;
}

static bool is_scheme(const char *source, size_t n, const char *scheme)
{
    return n == strlen(scheme) && memcmp(source, scheme, n) == 0;
}

static void wipe(struct sbx_buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->cap);
    sbx_buf_done(buf);
}

static enum sbx_status read_file(const char *name, const char *path, struct sbx_buf *out,
                                 struct sbx_error *err)
{
    SBX_FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    enum sbx_status st = sbx_buf_reserve(out, SBX_TOKEN_FILE, err);
    ssize_t n;

    if (st)
        return st;
    n = fd < 0 ? -1 : read(fd, out->data, SBX_TOKEN_FILE);
    if (n < 0)
        return sbx_err_set(err, SBX_E_USAGE, errno, "%s: file '%s'", name, SBX_QUOTE(path));
    if (n == SBX_TOKEN_FILE)
        return sbx_err_set(err, SBX_E_USAGE, 0, "%s: file '%s' is no token: too long", name,
                           SBX_QUOTE(path));
    out->len = (size_t)n;
    while (out->len > 0 && strchr("\r\n \t", out->data[out->len - 1]))
        out->len--;
    out->data[out->len] = '\0';
    if (strlen(out->data) != out->len)
        return sbx_err_set(err, SBX_E_USAGE, 0, "%s: file '%s' is no token", name, SBX_QUOTE(path));
    return SBX_OK;
}

/* NAME, or what stands in the file that NAME_FILE names; NULL if there is neither. Never from an
 * argument, which others can see. */
static enum sbx_status read_secret(const char *name, struct sbx_buf *out, const char **ret,
                                   struct sbx_error *err)
{
    const char *value = getenv(name), *path;
    char file_name[64];
    enum sbx_status st;

    *ret = value;
    if (value)
        return SBX_OK;
    (void)snprintf(file_name, sizeof(file_name), "%s_FILE", name);
    path = getenv(file_name);
    if (!path)
        return SBX_OK;
    st = read_file(file_name, path, out, err);
    *ret = out->data;
    return st;
}

static bool is_on(const char *value)
{
    return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
}

static enum sbx_status open_execd(const char *source, size_t scheme, bool tls,
                                  const struct sbx_source_options *o, struct sbx_transport **ret,
                                  struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf dir = SBX_BUF_INIT(SBX_MAX_PATH);
    SBX_CLEANUP(wipe) struct sbx_buf token = SBX_BUF_INIT(SBX_TOKEN_FILE);
    struct sbx_execd_options options = SBX_EXECD_OPTIONS_INIT;
    struct sbx_url_authority authority;
    enum sbx_status st = sbx_url_source(source, source + scheme, &authority, &dir, err);

    if (!st)
        st = read_secret("EXECD_ACCESS_TOKEN", &token, &options.token, err);
    if (st)
        return st;
    options.tls = tls;
    options.host = authority.host;
    options.port = authority.port;
    options.dir = dir.data;
    options.cacert = o->cacert;
    return sbx_transport_execd_new(&options, ret, err);
}

static enum sbx_status open_opensandbox(const char *source, size_t scheme,
                                        const struct sbx_source_options *o,
                                        struct sbx_transport **ret, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf dir = SBX_BUF_INIT(SBX_MAX_PATH);
    SBX_CLEANUP(wipe) struct sbx_buf token = SBX_BUF_INIT(SBX_TOKEN_FILE);
    SBX_CLEANUP(wipe) struct sbx_buf key = SBX_BUF_INIT(SBX_TOKEN_FILE);
    struct sbx_opensandbox_options options = SBX_OPENSANDBOX_OPTIONS_INIT;
    char id[SBX_URL_HOST_MAX + 1];
    enum sbx_status st = sbx_url_place(source, source + scheme, id, sizeof(id), &dir, err);

    if (!st)
        st = read_secret("EXECD_ACCESS_TOKEN", &token, &options.token, err);
    if (!st)
        st = read_secret("OPEN_SANDBOX_API_KEY", &key, &options.api_key, err);
    if (st)
        return st;
    options.id = id;
    options.dir = dir.data;
    options.server = getenv("OPEN_SANDBOX_DOMAIN");
    options.use_server_proxy = is_on(getenv("OPEN_SANDBOX_USE_SERVER_PROXY"));
    options.cacert = o->cacert;
    return sbx_transport_opensandbox_new(&options, ret, err);
}

enum sbx_status sbx_transport_open(const char *source, const struct sbx_source_options *options,
                                   struct sbx_transport **ret, struct sbx_error *err)
{
    static const struct sbx_source_options none = SBX_SOURCE_OPTIONS_INIT;
    const struct sbx_source_options *o = options ? options : &none;
    size_t n = scheme_len(source);

    if (o->version != SBX_SOURCE_OPTIONS_VERSION)
        return sbx_err_set(err, SBX_E_USAGE, 0, "source options of another version");
    if (is_scheme(source, n, "exec:")) {
        if (!o->command)
            return sbx_err_set(err, SBX_E_USAGE, 0,
                               "exec: needs a COMMAND, such as: -- docker exec -i BOX sh");
        return sbx_transport_exec_new(source + n, o->command, ret, err);
    }
    if (o->command && n > 0 && !is_scheme(source, n, "local:"))
        return sbx_err_set(err, SBX_E_USAGE, 0, "a COMMAND goes with exec: only");
    if (is_scheme(source, n, "execd:") || is_scheme(source, n, "execds:"))
        return open_execd(source, n, is_scheme(source, n, "execds:"), o, ret, err);
    if (is_scheme(source, n, "opensandbox:"))
        return open_opensandbox(source, n, o, ret, err);
    if (n > 0 && !is_scheme(source, n, "local:"))
        return sbx_err_set(err, SBX_E_USAGE, 0,
                           "unknown source scheme '%s'; write './%s' for a directory of that name",
                           SBX_QUOTE_N(source, n), SBX_QUOTE(source));
    if (o->command)
        return sbx_err_set(err, SBX_E_USAGE, 0, "a COMMAND goes with exec: only");
    return sbx_transport_local_new(source + n, ret, err);
}
