/* In: addresses of the operator, and of a lifecycle server, whose answer may be malformed. Out: a
 * host that is only letters, digits and a few marks, a port, and a path of bytes or of whole
 * escapes. */
#include "transport/url.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/attr.h"
#include "base/quote.h"

/* Whoever writes a password into an address does not want to read it in a log. */
static enum sbx_status bad(struct sbx_error *err, const char *text, size_t n, const char *what)
{
    const char *at = memrchr(text, '@', n);

    if (at) {
        n -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    return sbx_err_set(err, SBX_E_USAGE, 0, "'%s': %s", SBX_QUOTE_N(text, n), what);
}

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* RFC 3986, section 2.3 */
static bool is_unreserved(char c)
{
    return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that an escape at text[0..n) stands for; -1: no whole escape. */
static int escape(const char *text, size_t n)
{
    if (n < 3 || text[0] != '%' || hex(text[1]) < 0 || hex(text[2]) < 0)
        return -1;
    return 16 * hex(text[1]) + hex(text[2]);
}

static bool read_port(const char *text, size_t n, unsigned *ret)
{
    unsigned port = 0;

    if (n == 0 || n > 5)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = 10 * port + (unsigned)(text[i] - '0');
    }
    *ret = port;
    return port >= 1 && port <= 65535;
}

static bool read_host(const char *text, size_t n, struct sbx_url_authority *to)
{
    struct in6_addr address;

    if (n == 0 || n > SBX_URL_HOST_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        if (to->ipv6 ? hex(c) < 0 && c != ':' && c != '.'
                     : !is_letter_or_digit(c) && c != '-' && c != '.' && c != '_')
            return false;
        to->host[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    to->host[n] = '\0';
    return !to->ipv6 || inet_pton(AF_INET6, to->host, &address) == 1;
}

enum sbx_status sbx_url_authority(const char *text, size_t n, struct sbx_url_authority *ret,
                                  struct sbx_error *err)
{
    struct sbx_url_authority made = {.port = 0};
    const char *end = text + n, *host = text, *host_end, *colon;

    made.ipv6 = n > 0 && text[0] == '[';
    if (made.ipv6) {
        host_end = memchr(text, ']', n);
        host++;
        if (!host_end)
            return bad(err, text, n, "an IPv6 address needs its closing bracket");
        colon = host_end + 1;
    } else {
        colon = memchr(text, ':', n);
        host_end = colon = colon ? colon : end;
    }
    if (!read_host(host, (size_t)(host_end - host), &made))
        return bad(err, text, n, "no host that can be used");
    if (colon < end &&
        (*colon != ':' || !read_port(colon + 1, (size_t)(end - colon) - 1, &made.port)))
        return bad(err, text, n, "a port is a number from 1 to 65535");
    *ret = made;
    return SBX_OK;
}

static enum sbx_status decode(const char *source, const char *path, struct sbx_buf *out,
                              struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf bytes = SBX_BUF_INIT(out->max);
    size_t n = strlen(path), i = 0;
    enum sbx_status st = SBX_OK;

    while (i < n && !st) {
        int c = path[i] == '%' ? escape(path + i, n - i) : (unsigned char)path[i];
        char byte = (char)c;

        if (path[i] == '?' || path[i] == '#')
            return bad(err, source, strlen(source),
                       "a query or fragment has no meaning here; write %3F or %23 in a name");
        if (c <= 0)
            return bad(err, source, strlen(source), "a '%' needs two hex digits, and not %00");
        i += path[i] == '%' ? 3 : 1;
        st = sbx_buf_add(&bytes, &byte, 1, err);
    }
    return st ? st : sbx_buf_add(out, bytes.data, bytes.len, err);
}

/* "//" something "/" path: where that something is, and where the path. */
static enum sbx_status split(const char *source, const char *rest, const char **ret_place,
                             size_t *ret_n, const char **ret_path, struct sbx_error *err)
{
    const char *path;

    if (strncmp(rest, "//", 2) != 0)
        return bad(err, source, strlen(source), "'//' has to follow the scheme");
    path = strchr(rest + 2, '/');
    if (!path)
        return bad(err, source, strlen(source), "an absolute directory has to follow");
    *ret_place = rest + 2;
    *ret_n = (size_t)(path - rest) - 2;
    *ret_path = path;
    return SBX_OK;
}

enum sbx_status sbx_url_source(const char *source, const char *rest,
                               struct sbx_url_authority *ret_authority, struct sbx_buf *ret_path,
                               struct sbx_error *err)
{
    struct sbx_url_authority authority;
    const char *place = rest, *path = rest;
    size_t n = 0;
    enum sbx_status st = split(source, rest, &place, &n, &path, err);

    if (!st)
        st = sbx_url_authority(place, n, &authority, err);
    if (!st)
        st = decode(source, path, ret_path, err);
    if (!st)
        *ret_authority = authority;
    return st;
}

enum sbx_status sbx_url_place(const char *source, const char *rest, char *id, size_t cap,
                              struct sbx_buf *ret_path, struct sbx_error *err)
{
    const char *place = rest, *path = rest;
    size_t n = 0;
    enum sbx_status st = split(source, rest, &place, &n, &path, err);

    if (st)
        return st;
    if (n == 0 || n >= cap)
        return bad(err, source, strlen(source), "no id, or one that is too long");
    st = decode(source, path, ret_path, err);
    if (st)
        return st;
    memcpy(id, place, n);
    id[n] = '\0';
    return SBX_OK;
}

/* Whether text[0..n) is "." or "..", escapes looked through. */
static bool is_dots(const char *text, size_t n)
{
    size_t dots = 0;

    for (size_t i = 0; i < n; dots++) {
        if (text[i] == '.')
            i++;
        else if (escape(text + i, n - i) == '.')
            i += 3;
        else
            return false;
    }
    return dots == 1 || dots == 2;
}

static bool is_clean_path(const char *path, size_t n)
{
    size_t from = 0;

    for (size_t i = 0; i <= n; i++) {
        if (i == n || path[i] == '/') {
            if (is_dots(path + from, i - from))
                return false;
            from = i + 1;
        } else if (path[i] == '%' ? escape(path + i, n - i) <= 0x20 : !is_unreserved(path[i])) {
            return false;
        }
    }
    return true;
}

enum sbx_status sbx_url_server(const char *text, size_t n, struct sbx_url_authority *ret_authority,
                               struct sbx_buf *ret_path, struct sbx_error *err)
{
    struct sbx_url_authority authority;
    const char *path = memchr(text, '/', n);
    size_t n_host = path ? (size_t)(path - text) : n, n_path = n - n_host;
    enum sbx_status st = sbx_url_authority(text, n_host, &authority, err);

    if (st)
        return st;
    if (!is_clean_path(text + n_host, n_path))
        return bad(err, text, n, "the path of a server holds letters, digits, -._~, escapes and /");
    while (n_path > 0 && text[n_host + n_path - 1] == '/')
        n_path--;
    st = sbx_buf_add(ret_path, text + n_host, n_path, err);
    if (!st)
        *ret_authority = authority;
    return st;
}

enum sbx_status sbx_url_add_authority(struct sbx_buf *out,
                                      const struct sbx_url_authority *authority,
                                      struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_printf(out, err, authority->ipv6 ? "[%s]" : "%s", authority->host);

    return st || !authority->port ? st : sbx_buf_printf(out, err, ":%u", authority->port);
}

enum sbx_status sbx_url_encode(struct sbx_buf *out, const char *bytes, size_t n,
                               struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_reserve(out, n, err);

    for (size_t i = 0; i < n && !st; i++) {
        if (is_unreserved(bytes[i]) || bytes[i] == '/')
            st = sbx_buf_add(out, bytes + i, 1, err);
        else
            st = sbx_buf_printf(out, err, "%%%02X", (unsigned)(unsigned char)bytes[i]);
    }
    return st;
}

/* Address blocks in which no proxy belongs; those of this machine first. */
static const struct block {
    int family;
    const char *address;
    unsigned bits;
} blocks[] = {
    {AF_INET, "127.0.0.0", 8},   {AF_INET6, "::1", 128},       {AF_INET, "10.0.0.0", 8},
    {AF_INET, "172.16.0.0", 12}, {AF_INET, "192.168.0.0", 16}, {AF_INET, "169.254.0.0", 16},
    {AF_INET6, "fc00::", 7},     {AF_INET6, "fe80::", 10},
};
#define LOOPBACK_BLOCKS 2u

static bool in_block(const unsigned char *address, const struct block *block)
{
    unsigned char want[16];
    unsigned whole = block->bits / 8, rest = block->bits % 8;

    if (inet_pton(block->family, block->address, want) != 1 || memcmp(address, want, whole) != 0)
        return false;
    return rest == 0 || (address[whole] ^ want[whole]) >> (8 - rest) == 0;
}

static bool is_in(const struct sbx_url_authority *a, size_t n_blocks)
{
    static const char mapped[12] = {[10] = (char)0xff, [11] = (char)0xff};
    unsigned char bytes[16];
    const unsigned char *address = bytes;
    int family = a->ipv6 ? AF_INET6 : AF_INET;

    if (inet_pton(family, a->host, bytes) != 1)
        return false;
    if (a->ipv6 && memcmp(bytes, mapped, sizeof(mapped)) == 0) {
        family = AF_INET; /* ::ffff:127.0.0.1 */
        address = bytes + sizeof(mapped);
    }
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].family == family && in_block(address, &blocks[i]))
            return true;
    return false;
}

bool sbx_url_is_loopback(const struct sbx_url_authority *authority)
{
    static const char name[] = "localhost";
    size_t n = strlen(authority->host), len = sizeof(name) - 1;
    const char *end;

    if (!authority->ipv6 && n >= len) {
        end = authority->host + n - len;
        if (strcmp(end, name) == 0 && (n == len || end[-1] == '.'))
            return true;
    }
    return is_in(authority, LOOPBACK_BLOCKS);
}

bool sbx_url_is_private(const struct sbx_url_authority *authority)
{
    return sbx_url_is_loopback(authority) || is_in(authority, N_ELEMENTS(blocks));
}
