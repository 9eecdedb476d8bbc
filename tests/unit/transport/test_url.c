/* Addresses: what is one, what is none, and what is read out of it. */
#include "tests/support/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "transport/url.h"

#define MAX_TESTS 256
#define LABEL_50 "abcdefghijklmnopqrstuvwxyz0123456789-_abcdefghijkl."
#define HOST_253                                                                                   \
    LABEL_50 LABEL_50 LABEL_50 LABEL_50 "abcdefghijklmnopqrstuvwxyz0123456789-_abcdefghijk"

static struct sbx_buf out; /* owned */

static void clean(void)
{
    sbx_buf_done(&out);
    out = SBX_BUF_INIT(4096);
}

static const struct authority_row {
    const char *name;
    const char *text;
    const char *host; /* NULL: refused */
    bool ipv6;
    unsigned port;
} authorities[] = {
    {"a name", "example.com", "example.com", false, 0},
    {"a name with every mark that may be in one", "a-b_c.d0", "a-b_c.d0", false, 0},
    {"capitals become small letters", "ExAmple.COM:80", "example.com", false, 80},
    {"an IPv4 address with a port", "127.0.0.1:44772", "127.0.0.1", false, 44772},
    {"the smallest port", "h:1", "h", false, 1},
    {"the largest port", "h:65535", "h", false, 65535},
    {"zeros before a port", "h:00080", "h", false, 80},
    {"an IPv6 address loses its brackets", "[::1]", "::1", true, 0},
    {"an IPv6 address with a port", "[2001:DB8::1]:8080", "2001:db8::1", true, 8080},
    {"an IPv6 address that ends as IPv4 does", "[::ffff:10.0.0.1]", "::ffff:10.0.0.1", true, 0},
    {"a host of 253 characters", HOST_253, HOST_253, false, 0},
    {"a host of 254 characters", HOST_253 "x", NULL, false, 0},
    {"nothing", "", NULL, false, 0},
    {"a port alone", ":80", NULL, false, 0},
    {"a user", "user@host", NULL, false, 0},
    {"a user and a password", "user:pw@host", NULL, false, 0},
    {"a user without a name", "@host", NULL, false, 0},
    {"port 0", "host:0", NULL, false, 0},
    {"port 65536", "host:65536", NULL, false, 0},
    {"a port of six digits", "host:000080", NULL, false, 0},
    {"a port that would wrap round", "host:4294967376", NULL, false, 0},
    {"a colon without a port", "host:", NULL, false, 0},
    {"a port with a sign", "host:+80", NULL, false, 0},
    {"a negative port", "host:-1", NULL, false, 0},
    {"a port after a blank", "host: 80", NULL, false, 0},
    {"a port before a blank", "host:80 ", NULL, false, 0},
    {"a hexadecimal port", "host:0x50", NULL, false, 0},
    {"two ports", "host:80:80", NULL, false, 0},
    {"an IPv6 address without brackets", "::1", NULL, false, 0},
    {"an IPv6 address without its last bracket", "[::1", NULL, false, 0},
    {"an IPv6 address without its first bracket", "::1]", NULL, false, 0},
    {"an IPv6 address with more behind it", "[::1]x", NULL, false, 0},
    {"an IPv6 address with a bare port behind it", "[::1]80", NULL, false, 0},
    {"an IPv6 address with something before its port", "[::1]x80", NULL, false, 0},
    {"an IPv6 address with an empty port", "[::1]:", NULL, false, 0},
    {"an IPv6 address with a zone", "[fe80::1%eth0]", NULL, false, 0},
    {"an IPv6 address with an encoded zone", "[fe80::1%25eth0]", NULL, false, 0},
    {"brackets around nothing", "[]", NULL, false, 0},
    {"brackets around a name", "[abc]", NULL, false, 0},
    {"brackets around IPv4", "[127.0.0.1]", NULL, false, 0},
    {"brackets around too many groups", "[1:2:3:4:5:6:7:8:9]", NULL, false, 0},
    {"brackets in brackets", "[[::1]]", NULL, false, 0},
    {"a blank in the host", "a b", NULL, false, 0},
    {"a blank before the host", " host", NULL, false, 0},
    {"a newline in the host", "a\nb", NULL, false, 0},
    {"a newline behind the host", "host\n", NULL, false, 0},
    {"a CR behind the port", "host:80\r", NULL, false, 0},
    {"a tab in the host", "a\tb", NULL, false, 0},
    {"an escape character in the host", "a\033b", NULL, false, 0},
    {"DEL in the host", "a\177b", NULL, false, 0},
    {"UTF-8 in the host", "h\303\251", NULL, false, 0},
    {"a byte that is no UTF-8 in the host", "h\377", NULL, false, 0},
    {"a percent sign in the host", "a%41", NULL, false, 0},
    {"a slash", "host/", NULL, false, 0},
    {"a backslash", "host\\x", NULL, false, 0},
    {"a query", "host?x", NULL, false, 0},
    {"a fragment", "host#x", NULL, false, 0},
    {"a comma", "a,b", NULL, false, 0},
    {"a star", "*", NULL, false, 0},
};

static void check_authority(void **state)
{
    const struct authority_row *row = *state;
    struct sbx_url_authority got = {.host = "before", .port = 7};
    struct sbx_error err = {.status = SBX_OK};
    enum sbx_status st = sbx_url_authority(row->text, strlen(row->text), &got, &err);

    assert_int_equal(st, row->host ? SBX_OK : SBX_E_USAGE);
    assert_string_equal(got.host, row->host ? row->host : "before");
    assert_int_equal(got.port, row->host ? row->port : 7);
    assert_int_equal(got.ipv6, row->ipv6);
    if (!row->host)
        assert_true(err.msg[0] && !strpbrk(err.msg, "\n\r\t\033\177\377"));
}

static void only_n_bytes_are_read(void **state)
{
    struct sbx_url_authority got;

    (void)state;
    assert_int_equal(sbx_url_authority("host:8080", 6, &got, NULL), SBX_OK);
    assert_int_equal(got.port, 8);
    assert_int_equal(sbx_url_authority("[::1]", 4, &got, NULL), SBX_E_USAGE);
    assert_int_equal(sbx_url_authority("a\0b", 3, &got, NULL), SBX_E_USAGE);
    clean();
    assert_int_equal(sbx_url_server("h/%41", 5, &got, &out, NULL), SBX_OK);
    assert_int_equal(sbx_url_server("h/%41", 4, &got, &out, NULL), SBX_E_USAGE);
    assert_string_equal(out.data, "/%41");
}

static const struct source_row {
    const char *name;
    const char *rest;
    const char *host; /* NULL: refused */
    const char *path;
} sources[] = {
    {"a directory", "//h:1/a/b", "h", "/a/b"},
    {"the root directory", "//h/", "h", "/"},
    {"more slashes stay", "//h//a///b/", "h", "//a///b/"},
    {"a colon and an @ in the path", "//h/a:b@c", "h", "/a:b@c"},
    {"escapes are decoded", "//h/%20%3f%3F%23%25%2e", "h", "/ ??#%."},
    {"escapes are decoded once", "//h/%2541", "h", "/%41"},
    {"a decoded slash is a slash", "//h/a%2Fb", "h", "/a/b"},
    {"bytes that are no UTF-8", "//h/%FF%fe", "h", "/\377\376"},
    {"bytes that stand for themselves", "//h/ \377\n+&=", "h", "/ \377\n+&="},
    {"IPv6", "//[::1]:5/x", "::1", "/x"},
    {"no path", "//host", NULL, NULL},
    {"no path, but a port", "//host:80", NULL, NULL},
    {"no authority", "///a", NULL, NULL},
    {"no slashes", "host/a", NULL, NULL},
    {"one slash", "/host/a", NULL, NULL},
    {"nothing", "", NULL, NULL},
    {"a user", "//user@h/a", NULL, NULL},
    {"NUL", "//h/a%00b", NULL, NULL},
    {"an escape of one digit", "//h/%2", NULL, NULL},
    {"an escape of no digits", "//h/%", NULL, NULL},
    {"an escape of other letters", "//h/%zz", NULL, NULL},
    {"an escape with a sign", "//h/%+1", NULL, NULL},
    {"an escape cut by a slash", "//h/%2/x", NULL, NULL},
    {"a query", "//h/a?b", NULL, NULL},
    {"an empty query", "//h/a?", NULL, NULL},
    {"a fragment", "//h/a#b", NULL, NULL},
    {"a query before the path", "//h?x/a", NULL, NULL},
    {"a backslash for a slash", "//h\\a/b", NULL, NULL},
};

static void check_source(void **state)
{
    const struct source_row *row = *state;
    struct sbx_url_authority got = {.host = "before"};
    enum sbx_status st;

    clean();
    assert_int_equal(sbx_buf_str(&out, "before", NULL), SBX_OK);
    st = sbx_url_source("execd:x", row->rest, &got, &out, NULL);
    assert_int_equal(st, row->host ? SBX_OK : SBX_E_USAGE);
    assert_string_equal(got.host, row->host ? row->host : "before");
    assert_memory_equal(out.data, "before", 6);
    assert_string_equal(out.data + 6, row->path ? row->path : "");
    assert_int_equal(out.len, strlen(out.data));
}

static void the_message_of_a_source_shows_it_whole_and_escaped(void **state)
{
    struct sbx_url_authority got;
    struct sbx_error err;

    (void)state;
    clean();
    assert_int_equal(sbx_url_source("execd://h/\033?", "//h/\033?", &got, &out, &err), SBX_E_USAGE);
    assert_non_null(strstr(err.msg, "execd://h/"));
    assert_null(strchr(err.msg, '\033'));
    assert_non_null(strstr(err.msg, "%3F"));
}

static void a_path_beyond_the_buffer_is_a_limit(void **state)
{
    struct sbx_url_authority got = {.host = "before"};

    (void)state;
    clean();
    out.max = 4;
    assert_int_equal(sbx_url_source("x", "//h/%41%41%41", &got, &out, NULL), SBX_OK);
    assert_string_equal(out.data, "/AAA");
    clean();
    out.max = 4;
    got = (struct sbx_url_authority){.host = "before"};
    assert_int_equal(sbx_url_source("x", "//h/%41%41%41%41", &got, &out, NULL), SBX_E_LIMIT);
    assert_int_equal(out.len, 0);
    assert_string_equal(got.host, "before");
}

static const struct place_row {
    const char *name;
    const char *rest;
    const char *id; /* NULL: refused */
    const char *path;
} places[] = {
    {"an id", "//0a-b_c/x", "0a-b_c", "/x"},
    {"an id that just fits", "//12345678/x", "12345678", "/x"},
    {"an id keeps its capitals", "//AbC/", "AbC", "/"},
    {"an id that is too long", "//123456789/x", NULL, NULL},
    {"no id", "///x", NULL, NULL},
    {"an id without a path", "//id", NULL, NULL},
    {"an id with a bad path", "//id/%00", NULL, NULL},
    {"an id with a query", "//id/x?y", NULL, NULL},
};

static void check_place(void **state)
{
    const struct place_row *row = *state;
    char id[9] = "before";
    enum sbx_status st;

    clean();
    assert_int_equal(sbx_buf_str(&out, "", NULL), SBX_OK);
    st = sbx_url_place("opensandbox:x", row->rest, id, sizeof(id), &out, NULL);
    assert_int_equal(st, row->id ? SBX_OK : SBX_E_USAGE);
    assert_string_equal(id, row->id ? row->id : "before");
    assert_string_equal(out.data, row->path ? row->path : "");
}

static const struct server_row {
    const char *name;
    const char *text;
    const char *host; /* NULL: refused */
    unsigned port;
    const char *path;
} servers[] = {
    {"a host alone", "h", "h", 0, ""},
    {"a host and a port", "h:8080", "h", 8080, ""},
    {"a trailing slash goes", "h:8080/", "h", 8080, ""},
    {"all trailing slashes go", "h/a/b///", "h", 0, "/a/b"},
    {"slashes in between stay", "h/a//b", "h", 0, "/a//b"},
    {"a path stays encoded", "h/a%2Fb%7e", "h", 0, "/a%2Fb%7e"},
    {"all that is unreserved", "h/aZ09-._~", "h", 0, "/aZ09-._~"},
    {"three dots", "h/.../x", "h", 0, "/.../x"},
    {"dots in a name", "h/a..b/.c", "h", 0, "/a..b/.c"},
    {"a dot segment", "h/a/./b", NULL, 0, NULL},
    {"a dot segment at the end", "h/a/.", NULL, 0, NULL},
    {"two dots", "h/a/../b", NULL, 0, NULL},
    {"two dots at the end", "h/..", NULL, 0, NULL},
    {"dots that are written as escapes", "h/%2e%2E/x", NULL, 0, NULL},
    {"a dot beside an escaped one", "h/.%2e", NULL, 0, NULL},
    {"an escaped newline", "h/a%0ab", NULL, 0, NULL},
    {"an escaped blank", "h/a%20b", NULL, 0, NULL},
    {"an escaped NUL", "h/a%00", NULL, 0, NULL},
    {"half an escape", "h/a%2", NULL, 0, NULL},
    {"no escape", "h/a%zz", NULL, 0, NULL},
    {"a query", "h/a?b", NULL, 0, NULL},
    {"a query without a path", "h?b", NULL, 0, NULL},
    {"a fragment", "h/a#b", NULL, 0, NULL},
    {"a newline", "h/a\nb", NULL, 0, NULL},
    {"a blank", "h/a b", NULL, 0, NULL},
    {"UTF-8", "h/\303\251", NULL, 0, NULL},
    {"braces", "h/{id}", NULL, 0, NULL},
    {"a scheme", "http://h", NULL, 0, NULL},
    {"a user", "u@h/a", NULL, 0, NULL},
    {"no host", "/a", NULL, 0, NULL},
    {"nothing", "", NULL, 0, NULL},
};

static void check_server(void **state)
{
    const struct server_row *row = *state;
    struct sbx_url_authority got = {.host = "before"};
    enum sbx_status st;

    clean();
    assert_int_equal(sbx_buf_str(&out, "<", NULL), SBX_OK);
    st = sbx_url_server(row->text, strlen(row->text), &got, &out, NULL);
    assert_int_equal(st, row->host ? SBX_OK : SBX_E_USAGE);
    assert_string_equal(got.host, row->host ? row->host : "before");
    assert_int_equal(got.port, row->port);
    assert_string_equal(out.data + 1, row->path ? row->path : "");
}

static const struct where_row {
    const char *name;
    const char *text; /* as sbx_url_add_authority() writes it again */
    bool loopback, private;
} wheres[] = {
    {"the first loopback address", "127.0.0.0", true, true},
    {"the last loopback address", "127.255.255.255:80", true, true},
    {"the address after them", "128.0.0.1", false, false},
    {"the address before them", "126.255.255.255", false, false},
    {"loopback of IPv6", "[::1]:65535", true, true},
    {"loopback of IPv6 in full", "[0:0:0:0:0:0:0:1]", true, true},
    {"loopback of IPv4 in IPv6", "[::ffff:127.0.0.1]", true, true},
    {"the unspecified address", "[::]", false, false},
    {"localhost", "localhost:8080", true, true},
    {"a name below localhost", "a.localhost", true, true},
    {"a name that ends like localhost", "notlocalhost", false, false},
    {"a name that begins like localhost", "localhost.example.com", false, false},
    {"a name that begins like loopback", "127.0.0.1.example.com", false, false},
    {"10.0.0.0/8, first", "10.0.0.0", false, true},
    {"10.0.0.0/8, last", "10.255.255.255", false, true},
    {"beyond 10.0.0.0/8", "11.0.0.0", false, false},
    {"before 172.16.0.0/12", "172.15.255.255", false, false},
    {"172.16.0.0/12, first", "172.16.0.0", false, true},
    {"172.16.0.0/12, last", "172.31.255.255", false, true},
    {"beyond 172.16.0.0/12", "172.32.0.0", false, false},
    {"192.168.0.0/16, last", "192.168.255.255", false, true},
    {"beyond 192.168.0.0/16", "192.169.0.0", false, false},
    {"link-local of IPv4", "169.254.1.2", false, true},
    {"before link-local of IPv4", "169.253.255.255", false, false},
    {"private IPv4 in IPv6", "[::ffff:10.1.2.3]", false, true},
    {"other IPv4 in IPv6", "[::ffff:8.8.8.8]", false, false},
    {"IPv6 that begins as private IPv4 does", "[a00::1]", false, false},
    {"IPv6 that begins as loopback of IPv4 does", "[7f00::1]", false, false},
    {"IPv4 that begins as private IPv6 does", "252.0.0.1", false, false},
    {"fc00::/7, first", "[fc00::]", false, true},
    {"fc00::/7, last", "[fdff:ffff::1]", false, true},
    {"beyond fc00::/7", "[fe00::1]", false, false},
    {"fe80::/10, first", "[fe80::1]", false, true},
    {"fe80::/10, last", "[febf::1]", false, true},
    {"beyond fe80::/10", "[fec0::1]", false, false},
    {"a public address", "93.184.216.34", false, false},
    {"a public address of IPv6", "[2001:db8::1]", false, false},
    {"a name is not looked up", "intranet", false, false},
};

static void check_where(void **state)
{
    const struct where_row *row = *state;
    struct sbx_url_authority got;

    clean();
    assert_int_equal(sbx_url_authority(row->text, strlen(row->text), &got, NULL), SBX_OK);
    assert_int_equal(sbx_url_is_loopback(&got), row->loopback);
    assert_int_equal(sbx_url_is_private(&got), row->private);
    assert_int_equal(sbx_url_add_authority(&out, &got, NULL), SBX_OK);
    assert_string_equal(out.data, row->text);
}

static void every_byte_is_encoded_so_that_it_is_decoded_again(void **state)
{
    static const char plain[] =
        "/-._~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    struct sbx_buf encoded = SBX_BUF_INIT(16);
    struct sbx_url_authority got;
    char want[8];

    (void)state;
    for (int c = 1; c < 256; c++) {
        char path[2] = {'/', (char)c};

        clean();
        assert_int_equal(sbx_buf_str(&out, "//h", NULL), SBX_OK);
        assert_int_equal(sbx_url_encode(&out, path, 2, NULL), SBX_OK);
        (void)snprintf(want, sizeof(want), strchr(plain, c) ? "%c" : "%%%02X", (unsigned)c);
        assert_string_equal(out.data + 4, want);
        assert_int_equal(sbx_url_source("x", out.data, &got, &encoded, NULL), SBX_OK);
        assert_memory_equal(encoded.data, path, 2);
        sbx_buf_done(&encoded);
    }
}

static void a_nul_is_encoded_too(void **state)
{
    (void)state;
    clean();
    assert_int_equal(sbx_url_encode(&out, "a\0b", 3, NULL), SBX_OK);
    assert_string_equal(out.data, "a%00b");
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS] = {
        cmocka_unit_test(only_n_bytes_are_read),
        cmocka_unit_test(the_message_of_a_source_shows_it_whole_and_escaped),
        cmocka_unit_test(a_path_beyond_the_buffer_is_a_limit),
        cmocka_unit_test(every_byte_is_encoded_so_that_it_is_decoded_again),
        cmocka_unit_test(a_nul_is_encoded_too),
    };
    size_t n = 5;
    int rc;

#define ADD(table, fn) n = rows_add(tests, n, ROWS(table), fn)
    ADD(authorities, check_authority);
    ADD(sources, check_source);
    ADD(places, check_place);
    ADD(servers, check_server);
    ADD(wheres, check_where);
    rc = rows_run("addresses", tests, n);
    sbx_buf_done(&out);
    return rc;
}
