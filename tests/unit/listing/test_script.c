/* The text of the scripts; what shells make of it is tested in test_shells*.c. */
#include "listing/script.h"

#include <string.h>

#include "base/limits.h"
#include "tests/support/rows.h"
#include "tests/unit/listing/stream.h"

struct fixture {
    struct sbx_buf out; /* owned */
    struct sbx_error err;
};

static struct fixture fx;

static int setup(void **state)
{
    (void)state;
    fx.out = SBX_BUF_INIT(SBX_MIB);
    fx.err = (struct sbx_error){.status = SBX_OK};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sbx_buf_done(&fx.out);
    return 0;
}

static const struct text_row {
    const char *why;
    const char *root;
    const char *prune[4];
    const char *want; /* part of the text */
} text_rows[] = {
    {"an absolute root stays", "/a b", {NULL}, "\nR='/a b'\n"},
    {"trailing slashes are dropped", "/a//", {NULL}, "\nR='/a'\n"},
    {"a relative root gets ./", "a/b/", {NULL}, "\nR='./a/b'\n"},
    {"a root that looks like an option gets ./", "-rf", {NULL}, "\nR='./-rf'\n"},
    {"a root with ./ gets another, which does no harm", "./a", {NULL}, "\nR='././a'\n"},
    {"the root of all is written with a dot", "/", {NULL}, "\nR='/.'\n"},
    {"and so are many slashes", "///", {NULL}, "\nR='/.'\n"},
    {"a quote in the root", "/a'b", {NULL}, "\nR='/a'\\''b'\n"},
    {"a newline in the root", "/a\nb", {NULL}, "\nR='/a\nb'\n"},
    {"the walk begins at a dot, which no pruned name is", "/a", {NULL}, "\nR=$R/.\n"},
    {"nothing is pruned",
     "/a",
     {NULL},
     "find -H \"$R\" ${sbx_own:+-name \"$sbx_own\" ! -type d -o} -type f \"$@\""},
    {"a pruned name",
     "/a",
     {"x"},
     "find -H \"$R\" ${sbx_own:+-name \"$sbx_own\" ! -type d -o} -name 'x' -prune -o -type f "
     "\"$@\""},
    {"two pruned names", "/a", {"x", "-y"}, "-name 'x' -prune -o -name '-y' -prune -o -type f"},
    {"a pruned name is no pattern",
     "/a",
     {"*?[a]\\"},
     "-name '\\*\\?\\[a\\]\\\\' -prune -o -type f"},
    {"a quote in a pruned name", "/a", {"a'b"}, "-name 'a'\\''b' -prune -o -type f"},
    {"what matches no component is left out", "/a", {"a/b", "", "c"}, "-o} -name 'c' -prune -o -t"},
    {"the script begins with a line end of its own", "/a", {NULL}, "\ntrap '' PIPE;"},
    {"one byte more than the limit may come", "/a", {NULL}, "head -c 1001;"},
};

static void check_text(void **state)
{
    const struct text_row *row = *state;
    struct sbx_list_script args = {
        .nonce = NONCE, .root = row->root, .max_bytes = 1000, .prune = row->prune};

    while (row->prune[args.n_prune])
        args.n_prune++;
    assert_int_equal(sbx_list_script(&args, &fx.out, &fx.err), SBX_OK);
    assert_non_null(strstr(fx.out.data, row->want));
    assert_int_equal(fx.out.data[0], '\n');
    assert_int_equal(fx.out.data[fx.out.len - 1], '\n');
    assert_non_null(strstr(fx.out.data, "\nn=" NONCE "\n"));
}

static const struct name_row {
    const char *why;
    const char *name;
    size_t n;
    const char *want; /* part of the text; NULL: refused */
} name_rows[] = {
    {"plain characters stay", BYTES("aZ09_./-x"), "printf 'aZ09_./-x\\000'\n"},
    {"others are octal escapes of three digits", BYTES("a b\n%\\'~"),
     "printf 'a\\040b\\012\\045\\134\\047\\176\\000'\n"},
    {"bytes outside ASCII", BYTES("\xc3\xa9\xff\x01"), "printf '\\303\\251\\377\\001\\000'\n"},
    {"what find takes for an option", BYTES("-x"), "odd() {\nprintf './-x\\000'\n}"},
    {"what find takes for an expression", BYTES("!"), "odd() {\nprintf './\\041\\000'\n}"},
    {"a parenthesis", BYTES("(a"), "odd() {\nprintf './\\050a\\000'\n}"},
    {"an odd name is not among the others", BYTES(",a"), "names() {\nprintf ''\n}"},
    {"an empty name is refused", BYTES(""), NULL},
    {"a NUL is refused", BYTES("a\0b"), NULL},
};

static void check_name(void **state)
{
    const struct name_row *row = *state;
    const struct sbx_list_script args = {.nonce = NONCE, .root = "/r", .max_bytes = 1000};
    const struct sbx_list_name name = {row->name, row->n};
    enum sbx_status st = sbx_list_confirm_script(&args, &name, 1, &fx.out, &fx.err);

    assert_int_equal(st, row->want ? SBX_OK : SBX_E_USAGE);
    if (row->want)
        assert_non_null(strstr(fx.out.data, row->want));
}

/* Linux takes no argument of more than 128 KiB, and printf may be a program. */
static void many_names(void **state)
{
    const struct sbx_list_script args = {.nonce = NONCE, .root = "/r", .max_bytes = 1000};
    static struct sbx_list_name names[500];
    char name[200];
    size_t commands = 0, seen = 0;

    (void)state;
    memset(name, 0xe9, sizeof(name));
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        names[i] = (struct sbx_list_name){name, sizeof(name)};
    assert_int_equal(sbx_list_confirm_script(&args, names, N_ELEMENTS(names), &fx.out, &fx.err),
                     SBX_OK);
    for (char *p = strstr(fx.out.data, "names() {"); (p = strstr(p, "\nprintf '\\351"));
         commands++) {
        size_t n = strcspn(p + 1, "\n");

        assert_in_range(n, 1, 33 * 1024);
        for (size_t i = 0; i + 3 < n; i++)
            seen += strncmp(p + 1 + i, "\\000", 4) == 0;
        p += n;
    }
    assert_int_equal(seen, N_ELEMENTS(names));
    assert_in_range(commands, 500 * 804 / (32 * 1024), 500 * 804 / (32 * 1024) + 2);
}

static const struct tools_row {
    const char *why;
    const char *tools;
    const char *rec, *enc; /* part of each; NULL: refused */
} tools_rows[] = {
    {"snippet: GNU", "printf,gzip,base64", "-printf", "enc() { base64 -w 16384; }"},
    {"snippet: BusyBox", "stat,gzip,base64", "stat -c", "enc() { base64 -w 16384; }"},
    {"snippet: toybox", "stat,plain,base64", "stat -c", "enc() { base64 -w 16384; }"},
    {"snippet: hex", "printf,plain,hex", "-printf", "enc() { od -An -v -tx1; }"},
    {"snippet: stat and hex", "stat,gzip,hex", "stat -c", "enc() { od -An -v -tx1; }"},
    {"snippet: tools that no script prints", "printf,gzip,base64;id", NULL, NULL},
    {"snippet: no tools", "", NULL, NULL},
    {"snippet: a tool too few", "printf,gzip", NULL, NULL},
};

static void check_snippet(void **state)
{
    const struct tools_row *row = *state;
    enum sbx_status st = sbx_list_snippet("a'b/", row->tools, &fx.out, &fx.err);

    assert_int_equal(st, row->rec ? SBX_OK : SBX_E_REMOTE);
    if (!row->rec) {
        assert_int_equal(fx.out.len, 0);
        return;
    }
    assert_non_null(strstr(fx.out.data, "R='./a'\\''b'\n"));
    assert_non_null(strstr(fx.out.data, row->rec));
    assert_non_null(strstr(fx.out.data, row->enc));
    assert_null(strstr(fx.out.data, "PATH"));
}

static const struct usage_row {
    const char *why;
    const char *nonce, *root;
} usage_rows[] = {
    {"a nonce of another length", "00", "/r"},
    {"a nonce that is shell text", "00112233445566778899aabbccdd$(id", "/r"},
    {"a nonce in capitals", "00112233445566778899AABBCCDDEEFF", "/r"},
    {"a root without a name", NONCE, ""},
};

static void check_usage(void **state)
{
    const struct usage_row *row = *state;
    const struct sbx_list_script args = {.nonce = row->nonce, .root = row->root, .max_bytes = 1};

    assert_int_equal(sbx_list_script(&args, &fx.out, &fx.err), SBX_E_USAGE);
    assert_int_equal(fx.err.status, SBX_E_USAGE);
}

static void no_overflow(void **state)
{
    const struct sbx_list_script args = {.nonce = NONCE, .root = "/r", .max_bytes = UINT64_MAX};

    (void)state;
    assert_int_equal(sbx_list_script(&args, &fx.out, &fx.err), SBX_OK);
    assert_non_null(strstr(fx.out.data, "head -c 18446744073709551615;"));
}

static void small_buffer(void **state)
{
    const struct sbx_list_script args = {.nonce = NONCE, .root = "/r", .max_bytes = 1};

    (void)state;
    fx.out.max = 1000;
    assert_int_equal(sbx_list_script(&args, &fx.out, &fx.err), SBX_E_LIMIT);
}

int main(void)
{
    struct CMUnitTest tests[128];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(text_rows), check_text);
    n = rows_add(tests, n, ROWS(name_rows), check_name);
    n = rows_add(tests, n, ROWS(tools_rows), check_snippet);
    n = rows_add(tests, n, ROWS(usage_rows), check_usage);
    tests[n++] = (struct CMUnitTest){.name = "names are spread over several printf",
                                     .test_func = many_names};
    tests[n++] =
        (struct CMUnitTest){.name = "the largest limit does not wrap", .test_func = no_overflow};
    tests[n++] = (struct CMUnitTest){.name = "a script that does not fit is refused",
                                     .test_func = small_buffer};
    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = setup;
        tests[i].teardown_func = teardown;
    }
    return rows_run("listing script", tests, n);
}
