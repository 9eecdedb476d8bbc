#include "base/coding.h"
#include "tests/unit/state/manifest_world.h"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* The file's parts with a right trailer, so that only the parts are wrong. */
static void plant(struct world *w, const char *head, const char *lines, size_t n_lines)
{
    unsigned char digest[SBX_DIGEST_LEN];
    char hex[2 * SBX_DIGEST_LEN + 1], text[4096];
    struct sbx_digest d;
    int n = snprintf(text, sizeof(text), "%s%s", head, lines);

    sbx_digest_init(&d);
    sbx_digest_add(&d, text, (size_t)n);
    sbx_digest_final(&d, digest);
    sbx_encode_hex(digest, sizeof(digest), hex);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "{\"lines\":%zu,\"blake2b-256\":\"%s\"}\n",
                  n_lines, hex);
    assert_in_range(n, 1, sizeof(text) - 1);
    world_write(w->rootfd, FILE_NAME, text, (size_t)n);
}

#define HEAD "{\"schema\":\"sbx-sync/manifest/1\",\"identity\":\"box\",\"names\":\"portable\"}\n"
#define FACTS "\"size\":1,\"mtime\":\"1.000000000\",\"ctime\":\"2.000000000\""
#define HOST                                                                                       \
    "\"ino\":\"18446744073709551615\",\"host_size\":1,\"host_mtime\":\"-3.500000000\","            \
    "\"host_ctime\":\"4.000000000\",\"digest\":\"blake2b-256:" ZEROS "\""
#define LINE(path) "{\"path\":\"" path "\"," FACTS "}\n"

/* What opening says. */
static const struct open_case {
    const char *why;
    const char *text; /* NULL: no file; without trailer unless planted */
    bool planted;
    size_t n_lines;
    enum sbx_manifest_state state;
    const char *says;
} open_cases[] = {
    {"no file", NULL, false, 0, SBX_MANIFEST_ABSENT, NULL},
    {"no lines", HEAD, true, 0, SBX_MANIFEST_OK, NULL},
    {"0 bytes", "", false, 0, SBX_MANIFEST_DAMAGED, "empty"},
    {"cut JSON", "{\"schema\":\"sbx-sy", false, 0, SBX_MANIFEST_DAMAGED, "manifest"},
    {"no trailer", HEAD LINE("a"), false, 0, SBX_MANIFEST_DAMAGED, "trailer"},
    {"a header alone", HEAD, false, 0, SBX_MANIFEST_DAMAGED, "trailer"},
    {"a trailer alone", "{\"lines\":0,\"blake2b-256\":\"" ZEROS "\"}\n", false, 0,
     SBX_MANIFEST_DAMAGED, "schema"},
    {"a wrong digest", HEAD LINE("a") "{\"lines\":1,\"blake2b-256\":\"" ZEROS "\"}\n", false, 0,
     SBX_MANIFEST_DAMAGED, "digest"},
    {"a wrong count", HEAD LINE("a"), true, 2, SBX_MANIFEST_DAMAGED, "count"},
    {"a count of all there are", HEAD, true, UINT64_MAX, SBX_MANIFEST_DAMAGED, "manifest"},
    {"an unknown schema",
     "{\"schema\":\"sbx-sync/else/1\",\"identity\":\"\",\"names\":\"posix\"}\n", true, 0,
     SBX_MANIFEST_DAMAGED, "unknown schema"},
    {"a newer schema", "{\"schema\":\"sbx-sync/manifest/27\",\"new\":[]}\n", true, 0,
     SBX_MANIFEST_DAMAGED, "newer version"},
    {"a newer schema with another trailer", "{\"schema\":\"sbx-sync/manifest/2\"}\nend\n", false, 0,
     SBX_MANIFEST_DAMAGED, "newer version"},
    {"double keys in the header",
     "{\"schema\":\"sbx-sync/manifest/1\",\"schema\":\"sbx-sync/manifest/1\",\"identity\":\"\","
     "\"names\":\"posix\"}\n",
     true, 0, SBX_MANIFEST_DAMAGED, "header"},
    {"an unknown name profile",
     "{\"schema\":\"sbx-sync/manifest/1\",\"identity\":\"\",\"names\":\"dos\"}\n", true, 0,
     SBX_MANIFEST_DAMAGED, "profile"},
    {"no identity", "{\"schema\":\"sbx-sync/manifest/1\",\"names\":\"posix\"}\n", true, 0,
     SBX_MANIFEST_DAMAGED, "identity"},
    {"a header that is an array", "[1]\n", true, 0, SBX_MANIFEST_DAMAGED, "schema"},
    {"unknown members are passed over",
     "{\"schema\":\"sbx-sync/manifest/1\",\"identity\":\"\",\"names\":\"posix\",\"more\":{}}\n",
     true, 0, SBX_MANIFEST_OK, NULL},
};

static void check_open(void **state)
{
    struct world *w = *state;
    const struct open_case *c = w->row;
    int statedir = open_state(w);
    struct sbx_manifest_reader *reader = NULL;
    enum sbx_manifest_state got;
    struct sbx_error err = {0}, why = {0};

    if (c->planted)
        plant(w, c->text, "", c->n_lines);
    else if (c->text)
        world_file(w, FILE_NAME, c->text);
    assert_int_equal(sbx_manifest_open(statedir, &reader, &got, &why, &err), SBX_OK);
    assert_int_equal(got, c->state);
    if (c->says)
        assert_non_null(strstr(why.msg, c->says));
    else
        assert_string_equal(why.msg, "");
    assert_string_equal(err.msg, ""); /* no failure */
    assert_int_equal(reader != NULL, c->state == SBX_MANIFEST_OK);
    sbx_manifest_close(reader);
    close(statedir);
}

/* What the lines say, once the whole is proven. */
static const struct line_case {
    const char *why;
    const char *lines;
    size_t n_lines;
    bool fine;
} line_cases[] = {
    {"a line without a copy", LINE("a"), 1, true},
    {"a line with a copy", "{\"path\":\"a\"," FACTS "," HOST "}\n", 1, true},
    {"unknown members are passed over", "{\"path\":\"a\"," FACTS ",\"new\":{\"x\":[1]}}\n", 1,
     true},
    {"marks and an outcome",
     "{\"path\":\"a\"," FACTS ",\"young\":true,\"unstable\":false,\"last\":\"deferred\"}\n", 1,
     true},
    {"two in order", LINE("a") LINE("b"), 2, true},
    {"a prefix first", LINE("a") LINE("a.b") LINE("a/b"), 3, true},
    {"out of order", LINE("b") LINE("a"), 2, false},
    {"twice", LINE("a") LINE("a"), 2, false},
    {"a path that climbs", LINE("../a"), 1, false},
    {"an absolute path", LINE("/etc/passwd"), 1, false},
    {"a name of ours", LINE(".sbx-sync/run"), 1, false},
    {"a name that the profile refuses", LINE("a:b"), 1, false},
    {"NUL in a path", LINE("a\\u0000b"), 1, false},
    {"an empty path", LINE(""), 1, false},
    {"no path", "{" FACTS "}\n", 1, false},
    {"a path that is a number", "{\"path\":1," FACTS "}\n", 1, false},
    {"no size", "{\"path\":\"a\",\"mtime\":\"1.000000000\",\"ctime\":\"2.000000000\"}\n", 1, false},
    {"a negative size",
     "{\"path\":\"a\",\"size\":-1,\"mtime\":\"1.000000000\",\"ctime\":\"2.000000000\"}\n", 1,
     false},
    {"a time without its nine digits",
     "{\"path\":\"a\",\"size\":1,\"mtime\":\"1.00000000\",\"ctime\":\"2.000000000\"}\n", 1, false},
    {"a time that is text",
     "{\"path\":\"a\",\"size\":1,\"mtime\":\"x.000000000\",\"ctime\":\"2.000000000\"}\n", 1, false},
    {"a time without seconds",
     "{\"path\":\"a\",\"size\":1,\"mtime\":\"-.000000000\",\"ctime\":\"2.000000000\"}\n", 1, false},
    {"a time beyond all",
     "{\"path\":\"a\",\"size\":1,\"mtime\":\"9223372036854775808.000000000\","
     "\"ctime\":\"2.000000000\"}\n",
     1, false},
    {"half a copy", "{\"path\":\"a\"," FACTS ",\"ino\":\"1\"}\n", 1, false},
    {"a digest in capitals",
     "{\"path\":\"a\"," FACTS ",\"ino\":\"1\",\"host_size\":1,\"host_mtime\":\"1.000000000\","
     "\"host_ctime\":\"1.000000000\",\"digest\":\"blake2b-256:"
     "A000000000000000000000000000000000000000000000000000000000000000\"}\n",
     1, false},
    {"an inode beyond all",
     "{\"path\":\"a\"," FACTS ",\"ino\":\"18446744073709551616\",\"host_size\":1,"
     "\"host_mtime\":\"1.000000000\",\"host_ctime\":\"1.000000000\",\"digest\":\"blake2b-256:" ZEROS
     "\"}\n",
     1, false},
    {"a mark that is no truth", "{\"path\":\"a\"," FACTS ",\"young\":1}\n", 1, false},
    {"an outcome of success", "{\"path\":\"a\"," FACTS ",\"last\":\"published\"}\n", 1, false},
    {"double keys", "{\"path\":\"a\",\"path\":\"b\"," FACTS "}\n", 1, false},
    {"no object", "[]\n", 1, false},
    {"no JSON", "x\n", 1, false},
    {"an empty line", "\n", 1, false},
};

static void check_line(void **state)
{
    struct world *w = *state;
    const struct line_case *c = w->row;
    int statedir = open_state(w);
    struct sbx_manifest_reader *reader;
    struct sbx_line line;
    struct sbx_error err = {0};
    enum sbx_status st = SBX_OK;
    const char *text;
    size_t n, seen = 0;
    bool more = true;

    plant(w, HEAD, c->lines, c->n_lines);
    reader = open_good(statedir);
    while (!st && more) {
        st = sbx_manifest_next(reader, &line, &text, &n, &more, &err);
        seen += !st && more;
    }
    sbx_manifest_close(reader);
    close(statedir);
    assert_int_equal(st, c->fine ? SBX_OK : SBX_E_REMOTE);
    assert_int_equal(seen == c->n_lines, c->fine);
    if (!c->fine)
        assert_non_null(strstr(err.msg, "manifest"));
}

static void assert_damaged(struct world *w, int statedir, const char *says)
{
    struct sbx_manifest_reader *reader = NULL;
    enum sbx_manifest_state got;
    struct sbx_error why = {0};
    uint64_t begin_ns = sbx_clock_now();

    (void)w;
    assert_int_equal(sbx_manifest_open(statedir, &reader, &got, &why, NULL), SBX_OK);
    assert_int_equal(got, SBX_MANIFEST_DAMAGED);
    assert_non_null(strstr(why.msg, says));
    assert_true(sbx_clock_now() - begin_ns < 2ull * SBX_NS_PER_S);
}

static void absurd_files_cost_nothing(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w), fd;
    char *nested = calloc(1, 200002);

    assert_non_null(nested);
    fd = openat(w->rootfd, FILE_NAME, O_RDWR | O_CREAT, 0644);
    assert_int_equal(ftruncate(fd, 1024 * 1024 * 1024), 0);
    assert_damaged(w, statedir, "over its limit");
    assert_int_equal(ftruncate(fd, 256 * 1024 * 1024), 0);
    assert_damaged(w, statedir, "line of more than");
    close(fd);
    memset(nested, '[', 100000);
    memset(nested + 100000, ']', 100000);
    nested[200000] = '\n';
    world_write(w->rootfd, FILE_NAME, nested, 200001);
    assert_damaged(w, statedir, "line of more than");
    memset(nested, '[', 10000);
    nested[10000] = '\n';
    world_write(w->rootfd, FILE_NAME, nested, 10001);
    assert_damaged(w, statedir, "header");
    free(nested);
    close(statedir);
}

static void what_is_not_ours_is_an_error(void **state)
{
    struct world *w = *state;
    int statedir = open_state(w);
    struct sbx_manifest_reader *const none = (struct sbx_manifest_reader *)w, *reader = none;
    enum sbx_manifest_state got = SBX_MANIFEST_OK;
    struct sbx_error err = {0}, why = {0};

    world_build(w, "l:" FILE_NAME "=../../outside/victim");
    assert_int_equal(sbx_manifest_open(statedir, &reader, &got, &why, &err), SBX_E_HOST);
    assert_string_not_equal(err.step, "");
    assert_true(reader == none && got == SBX_MANIFEST_OK); /* untouched */
    assert_string_equal(why.msg, "");
    assert_int_equal(unlinkat(w->rootfd, FILE_NAME, 0), 0);
    world_build(w, "p:" FILE_NAME);
    assert_int_equal(sbx_manifest_open(statedir, &reader, &got, &why, &err), SBX_E_HOST);
    assert_int_equal(sbx_manifest_open(-1, &reader, &got, &why, &err), SBX_OK);
    assert_int_equal(got, SBX_MANIFEST_ABSENT);
    assert_null(reader);
    close(statedir);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("absurd files cost nothing", absurd_files_cost_nothing),
        WORLD_TEST("what is not ours is an error", what_is_not_ours_is_an_error),
    };
    struct CMUnitTest tests[N_ELEMENTS(open_cases) + N_ELEMENTS(line_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(open_cases), check_open);

    n = world_rows(tests, n, ROWS(line_cases), check_line);
    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("manifests of other origin", tests, NULL, NULL);
}
