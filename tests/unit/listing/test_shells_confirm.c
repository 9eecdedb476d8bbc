/* The confirm script and the snippet under real shells with real tools. */
#include "base/coding.h"
#include "base/quote.h"
#include "tests/unit/listing/shells.h"

/* As many names that are not there as fill more than one printf. */
static size_t confirm_names(struct sbx_list_name *names)
{
    static char fill[48][200];
    static const char *const others[] = {"gone", "-gone",   "dir/gone", "dir",  "-d",
                                         "link", "dirlink", "dangling", "fifo", "gone/x"};
    size_t n = 0;

    for (size_t i = 0; i < fx.tree.n; i++)
        names[n++] = (struct sbx_list_name){fx.tree.files[i].path, fx.tree.files[i].path_len};
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        names[n++] = (struct sbx_list_name){others[i], strlen(others[i])};
    for (size_t i = 0; i < N_ELEMENTS(fill); i++) {
        memset(fill[i], 0xe9, sizeof(fill[i]));
        fill[i][0] = (char)('0' + i / 10);
        names[n++] = (struct sbx_list_name){fill[i], sizeof(fill[i])};
    }
    return n;
}

static void check_confirm(void **state)
{
    const struct test *t = *state;
    const struct around *a = t->row;
    struct run run = run_of(t);
    const struct sbx_list_script args = {.nonce = NONCE, .root = "tree/", .max_bytes = SBX_MIB};
    struct sbx_list_name names[MAX_FILES + 200];
    size_t n = confirm_names(names);

    need(t);
    run.env = a->env;
    run.as_argument = a->as_argument;
    assert_int_equal(sbx_buf_str(&fx.script, a->prologue, NULL), SBX_OK);
    assert_int_equal(sbx_list_confirm_script(&args, names, n, &fx.script, NULL), SBX_OK);
    assert_listed(t, run_list(&run));
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_COMPLETE);
    assert_tree();
}

static const struct confirm_row {
    const char *why;
    const char *root;
    const char *name;
    enum sbx_listing_state want;
    size_t n;
} confirm_rows[] = {
    {"of a root with quotes and a newline", "a'b\"$(id)\n c", "a", SBX_LISTING_COMPLETE, 1},
    {"of a root that is a link", "link", "b", SBX_LISTING_COMPLETE, 1},
    {"when the only file is gone", "small", "gone", SBX_LISTING_COMPLETE, 0},
    {"when the only file, of an odd name, is gone", "small", "-gone", SBX_LISTING_COMPLETE, 0},
    {"when a directory stands there", "tree", "dir", SBX_LISTING_COMPLETE, 0},
    {"when a link to a file stands there", "tree", "link", SBX_LISTING_COMPLETE, 0},
    {"when the root is gone", "none", "a", SBX_LISTING_MISSING, 0},
};

static void check_confirm_one(void **state)
{
    const struct test *t = *state;
    const struct confirm_row *row = t->row;
    const struct run run = run_of(t);
    const struct sbx_list_script args = {.nonce = NONCE, .root = row->root, .max_bytes = SBX_MIB};
    const struct sbx_list_name name = {row->name, strlen(row->name)};
    size_t n;

    need(t);
    assert_int_equal(sbx_list_confirm_script(&args, &name, 1, &fx.script, NULL), SBX_OK);
    assert_listed(t, run_list(&run));
    assert_int_equal(sbx_list_state(fx.list), row->want);
    (void)sbx_list_records(fx.list, &n);
    assert_int_equal(n, row->n);
}

static void add(const char *text)
{
    assert_int_equal(sbx_buf_str(&fx.script, text, NULL), SBX_OK);
}

static void add_rec(const char *path)
{
    add("rec \"$R\"/");
    assert_int_equal(sbx_quote_sh(&fx.script, path, strlen(path), NULL), SBX_OK);
    add("\n");
}

/* The files whose records the snippet is asked for: a process each. */
static bool is_asked(size_t i, bool encoded)
{
    const char *path = fx.tree.files[i].path;

    if (encoded)
        return i == fx.tree.n / 2;
    return i % 64 == 0 || strchr("\n-\\", path[0]) || path[0] == '\xff';
}

/* Appends a script that prints the records, with those of no file among them, and how they end. */
static void snippet_script(const struct test *t, bool encoded)
{
    static const char *const none[] = {"gone",    "-gone",    "dir", "link",
                                       "dirlink", "dangling", "fifo"};

    sbx_buf_clear(&fx.script);
    assert_int_equal(sbx_list_snippet("tree", tools_found[t->tools], &fx.script, NULL), SBX_OK);
    add(encoded ? "{\n" : "");
    for (size_t i = 0; i < N_ELEMENTS(none) && !encoded; i++)
        add_rec(none[i]);
    for (size_t i = 0; i < fx.tree.n; i++)
        if (is_asked(i, encoded))
            add_rec(fx.tree.files[i].path);
    add(encoded ? "} | enc\n" : "");
}

static void assert_recs(bool encoded, const char *p, size_t left)
{
    for (size_t i = 0; i < fx.tree.n; i++) {
        struct sbx_record got;
        size_t len;

        if (!is_asked(i, encoded))
            continue;
        assert_true(left > 0);
        len = strnlen(p, left);
        assert_true(len < left);
        assert_int_equal(sbx_list_record_parse(p, len, &got, NULL), SBX_OK);
        assert_record(&got, &fx.tree.files[i]);
        p += len + 1;
        left -= len + 1;
    }
    assert_int_equal(left, 0);
}

static void check_snippet(void **state)
{
    const struct test *t = *state;
    static char decoded[SBX_DECODE_ROOM(65536)];
    struct sbx_decoder d = {.coding = t->tools == BARE ? SBX_CODING_HEX : SBX_CODING_BASE64};
    size_t n;

    need(t);
    snippet_script(t, false);
    run_raw(t);
    assert_recs(false, fx.out.data, fx.out.len);
    snippet_script(t, true);
    run_raw(t);
    assert_in_range(fx.out.len, 1, 65536);
    assert_int_equal(sbx_decode(&d, fx.out.data, fx.out.len, decoded, &n, NULL), SBX_OK);
    assert_int_equal(sbx_decode_end(&d, NULL), SBX_OK);
    assert_recs(true, decoded, n);
}

int main(int argc, char **argv)
{
    static const char *const snippet[] = {"records and encoding"};

    add_tests(arounds, 1, sizeof(arounds[0]), N_PAIRS, "confirm:", check_confirm);
    add_tests(arounds + 1, N_ELEMENTS(arounds) - 1, sizeof(arounds[0]), 1,
              "confirm:", check_confirm);
    add_tests(ROWS(confirm_rows), 2, "confirm:", check_confirm_one);
    add_tests(snippet, 1, sizeof(snippet[0]), N_PAIRS, "snippet:", check_snippet);
    return run_shell_tests("confirm and snippet under real shells", group_setup, argc, argv);
}
