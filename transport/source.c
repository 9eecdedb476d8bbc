/* What a command line and its environment say of a source. Both are the operator's and trusted;
 * what is read here goes into options, and secrets go nowhere else. */
#include <string.h>

#include "base/quote.h"
#include "transport/transport.h"

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
    if (n > 0 && !is_scheme(source, n, "local:"))
        return sbx_err_set(err, SBX_E_USAGE, 0,
                           "unknown source scheme '%s'; write './%s' for a directory of that name",
                           SBX_QUOTE_N(source, n), SBX_QUOTE(source));
    if (o->command)
        return sbx_err_set(err, SBX_E_USAGE, 0, "a COMMAND goes with exec: only");
    return sbx_transport_local_new(source + n, ret, err);
}
