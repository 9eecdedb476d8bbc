/* Addresses: what a SOURCE, a configured server and an endpoint of a lifecycle server have in
 * common (RFC 3986, sections 2.1 and 3.2). Pure. */
#ifndef TRANSPORT_URL_H
#define TRANSPORT_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

#define SBX_URL_HOST_MAX 253 /* characters of a host name: RFC 1035 */

/* host [":" port] */
struct sbx_url_authority {
    char host[SBX_URL_HOST_MAX + 1]; /* lower case; an IPv6 address without its brackets */
    bool ipv6;
    unsigned port; /* 0: none was given */
};

/* SBX_E_USAGE: not exactly a host (a name of letters, digits, '-', '.', '_'; an IPv4 address; an
 * IPv6 address in brackets, without a zone) and maybe a port of 1 to 65535. User info is refused
 * like anything else. */
SBX_MUST_CHECK enum sbx_status
sbx_url_authority(const char *text, size_t n, struct sbx_url_authority *ret, struct sbx_error *err);

/* Takes apart what follows the scheme of a SOURCE: "//" authority path. `source` is the whole, for
 * messages. The path is percent-decoded once, as bytes, and appended to ret_path; it is absolute.
 * SBX_E_USAGE: no path, "%00", a bad escape, a query or a fragment ('?' and '#' are written %3F and
 * %23), or an authority that is none. */
SBX_MUST_CHECK enum sbx_status sbx_url_source(const char *source, const char *rest,
                                              struct sbx_url_authority *ret_authority,
                                              struct sbx_buf *ret_path, struct sbx_error *err);

/* The same where an id stands in place of the authority; it is copied to id[0..cap). */
SBX_MUST_CHECK enum sbx_status sbx_url_place(const char *source, const char *rest, char *id,
                                             size_t cap, struct sbx_buf *ret_path,
                                             struct sbx_error *err);

/* Takes apart a server's address: authority ["/" path], where trailing slashes of the path are
 * dropped. The path stays encoded as it is and is appended to ret_path; it holds unreserved
 * characters, '/', and whole escapes only, and no "." or ".." segment. */
SBX_MUST_CHECK enum sbx_status sbx_url_server(const char *text, size_t n,
                                              struct sbx_url_authority *ret_authority,
                                              struct sbx_buf *ret_path, struct sbx_error *err);

/* Appends host[:port], with brackets where they belong. */
SBX_MUST_CHECK enum sbx_status sbx_url_add_authority(struct sbx_buf *out,
                                                     const struct sbx_url_authority *authority,
                                                     struct sbx_error *err);

/* Appends bytes percent-encoded: unreserved characters stand for themselves, '/' too, all else is
 * %XX. */
SBX_MUST_CHECK enum sbx_status sbx_url_encode(struct sbx_buf *out, const char *bytes, size_t n,
                                              struct sbx_error *err);

/* Whether the host is this machine: 127.0.0.0/8, ::1, "localhost" and names below it (RFC 6761). */
bool sbx_url_is_loopback(const struct sbx_url_authority *authority);

/* Whether no proxy belongs in between: loopback, and addresses that are private (RFC 1918, RFC
 * 4193) or link-local (RFC 3927, RFC 4291). A name is not looked up. */
bool sbx_url_is_private(const struct sbx_url_authority *authority);

#endif
