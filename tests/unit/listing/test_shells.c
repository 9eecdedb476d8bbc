/* The listing script under real shells with real tools. */
#include "tests/unit/listing/shells.h"

/* PATHs that lack something for which there is no other way. */
static const struct lack_row {
    const char *why;
    const char *set, *multi, *without;
    const char *message;
} lack_rows[] = {
    {"find", "lack0", NULL, "find", "remote tool missing: find"},
    {"xargs", "lack1", "busybox", "xargs", "remote tool missing: xargs or stat"},
    {"stat", "lack2", "busybox", "stat", "remote tool missing: xargs or stat"},
    {"head", "lack3", NULL, "head", "remote tool missing: head"},
    {"gzip and cat", "lack4", NULL, "gzip cat", "remote tool missing: cat"},
    {"base64 and od", "lack5", NULL, "base64 od", "remote tool missing: od"},
    {"date", "lack6", NULL, "date", "remote tool missing: date"},
};

static int list_setup(void **state)
{
    int rc = group_setup(state);

    for (size_t i = 0; i < N_ELEMENTS(lack_rows); i++)
        (void)box_tools(&fx.box, lack_rows[i].set, lack_rows[i].multi, lack_rows[i].without);
    return rc;
}

static void check_around(void **state)
{
    const struct test *t = *state;
    const struct around *a = t->row;
    struct run run = run_of(t);
    struct sbx_list_script args = {.nonce = NONCE, .root = "./tree", .max_bytes = SBX_MIB};

    need(t);
    run.env = a->env;
    run.as_argument = a->as_argument;
    run.ignore_sigpipe = a->ignore_sigpipe;
    assert_int_equal(sbx_buf_str(&fx.script, a->prologue, NULL), SBX_OK);
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    assert_listed(t, run_list(&run));
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_COMPLETE);
    assert_tree();
    if (t->tools == GNU && sbx_list_frame(fx.list)->skipped > 0)
        assert_int_equal(sbx_list_frame(fx.list)->skipped, 4);
    if (!a->noisy)
        assert_string_equal(fx.diag.data ? fx.diag.data : "", "");
}

#define ABC "a\nb\nc\n"

static const struct root_row {
    const char *why;
    const char *root;
    bool absolute, nobody;
    const char *prune[8];
    enum sbx_listing_state want;
    const char *paths; /* a line each */
} root_rows[] = {
    {"a relative root", "small", false, false, {NULL}, SBX_LISTING_COMPLETE, ABC},
    {"trailing slashes", "small///", true, false, {NULL}, SBX_LISTING_COMPLETE, ABC},
    {"a root that ends in a dot", "small/.", true, false, {NULL}, SBX_LISTING_COMPLETE, ABC},
    {"a link to a directory", "link", true, false, {NULL}, SBX_LISTING_COMPLETE, ABC},
    {"a root that begins with a dash", "-d", false, false, {NULL}, SBX_LISTING_COMPLETE, ABC},
    {"a root with quotes and a newline",
     "a'b\"$(id)\n c",
     false,
     false,
     {NULL},
     SBX_LISTING_COMPLETE,
     ABC},
    {"an empty root", "empty", true, false, {NULL}, SBX_LISTING_COMPLETE, ""},
    {"a missing root", "none", true, false, {NULL}, SBX_LISTING_MISSING, ""},
    {"a root of which also the parents are missing",
     "no/ne/x",
     false,
     false,
     {NULL},
     SBX_LISTING_MISSING,
     ""},
    {"a dangling link", "dangling", true, false, {NULL}, SBX_LISTING_MISSING, ""},
    {"a root that is a file", "file", true, false, {NULL}, SBX_LISTING_NOTDIR, ""},
    {"a root below a file", "file/x", true, false, {NULL}, SBX_LISTING_MISSING, ""},
    {"a root that may not be entered", "private", true, true, {NULL}, SBX_LISTING_DENIED, ""},
    {"a root that may be entered but not read",
     "unlisted",
     true,
     true,
     {NULL},
     SBX_LISTING_DENIED,
     ""},
    {"a root below one that may not be entered",
     "private/in",
     true,
     true,
     {NULL},
     SBX_LISTING_DENIED,
     ""},
    {"a directory below that may not be read",
     "partly",
     true,
     true,
     {NULL},
     SBX_LISTING_WARNED,
     ABC},
    {"pruned names are no patterns",
     "prune",
     false,
     false,
     {"x.d", "[ab].d", "a*.d", "?", "", "a.d/f"},
     SBX_LISTING_COMPLETE,
     "a\na.d/f\nb\nback\\.d/f\nc\nq'q.d/f\n"},
    {"pruned names with quotes and backslashes",
     "prune",
     false,
     false,
     {"back\\.d", "q'q.d", "a"},
     SBX_LISTING_COMPLETE,
     "[ab].d/f\na*.d/f\na.d/f\nb\nc\nx.d/f\n"},
    {"a root whose own name is pruned elsewhere",
     "node_modules",
     true,
     false,
     {"node_modules"},
     SBX_LISTING_COMPLETE,
     ABC},
};

static void check_root(void **state)
{
    const struct test *t = *state;
    const struct root_row *row = t->row;
    struct run run = run_of(t);
    struct sbx_list_script args = {.nonce = NONCE, .max_bytes = SBX_MIB, .prune = row->prune};
    const struct sbx_record *r;
    size_t n;

    need(t);
    run.uid = row->nobody ? NOBODY : 0;
    args.root = row->absolute ? at(&fx.box, row->root) : row->root;
    while (row->prune[args.n_prune])
        args.n_prune++;
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    assert_listed(t, run_list(&run));
    assert_int_equal(sbx_list_state(fx.list), row->want);
    r = sbx_list_records(fx.list, &n);
    assert_int_equal(sbx_buf_str(&fx.out, "", NULL), SBX_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(sbx_buf_printf(&fx.out, NULL, "%s\n", r[i].path), SBX_OK);
    assert_string_equal(fx.out.data, row->paths);
}

#define KEPT_ALL                                                                                   \
    "-x "                                                                                          \
    "*\n0f1e.std\n0f1e.std.d/a\n0f1e.stderr\n0f1e.stdin\n0f1e.stdout\n0f1estdout\n0f1f.stdout\n"   \
    "a\nd/0f1e.stdout\nx0f1e.stdout\n"

/* What a transport may put before the script. */
static const struct own_row {
    const char *why;
    const char *prologue;
    const char *prune[2];
    const char *paths; /* a line each */
    unsigned skipped;  /* as GNU tools count them */
} own_rows[] = {
    {"what a transport keeps is not listed, wherever it is",
     "sbx_own='0f1e.std*'\n",
     {NULL},
     "-x *\n0f1e.std.d/a\n0f1estdout\n0f1f.stdout\na\nx0f1e.stdout\n",
     1},
    {"nor where a name is pruned",
     "sbx_own='0f1e.std*'\n",
     {"d"},
     "-x *\n0f1e.std.d/a\n0f1estdout\n0f1f.stdout\na\nx0f1e.stdout\n",
     1},
    {"a directory of such a name is pruned if it is to be",
     "sbx_own='0f1e.std*'\n",
     {"0f1e.std.d"},
     "-x *\n0f1estdout\n0f1f.stdout\na\nx0f1e.stdout\n",
     1},
    {"one name alone",
     "sbx_own=0f1e.stdout\n",
     {NULL},
     "-x *\n0f1e.std\n0f1e.std.d/a\n0f1e.stderr\n0f1e.stdin\n0f1estdout\n0f1f.stdout\na\n"
     "x0f1e.stdout\n",
     3},
    {"a pattern with a blank, of which the shell makes nothing",
     "cd small; sbx_own='-x [*]'; cd ..\n",
     {NULL},
     "0f1e.std\n0f1e.std.d/a\n0f1e.stderr\n0f1e.stdin\n0f1e.stdout\n0f1estdout\n0f1f.stdout\na\n"
     "d/0f1e.stdout\nx0f1e.stdout\n",
     3},
    {"a pattern that looks like an option or a command",
     "sbx_own='-o $(id) `id` \"'\n",
     {NULL},
     KEPT_ALL,
     3},
    {"an empty pattern is none", "sbx_own=\n", {NULL}, KEPT_ALL, 3},
    {"an unset one is none", "unset sbx_own\n", {NULL}, KEPT_ALL, 3},
    {"after set -euCfxv and with an odd IFS",
     "set -euCf; IFS='01 a./*'; sbx_own='0f1e.std*'\n",
     {NULL},
     "-x *\n0f1e.std.d/a\n0f1estdout\n0f1f.stdout\na\nx0f1e.stdout\n",
     1},
};

static void check_own(void **state)
{
    const struct test *t = *state;
    const struct own_row *row = t->row;
    struct run run = run_of(t);
    struct sbx_list_script args = {.nonce = NONCE, .root = "kept", .max_bytes = SBX_MIB};
    const struct sbx_record *r;
    size_t n;

    need(t);
    args.prune = row->prune;
    args.n_prune = row->prune[0] != NULL;
    assert_int_equal(sbx_buf_str(&fx.script, row->prologue, NULL), SBX_OK);
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    assert_listed(t, run_list(&run));
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_COMPLETE);
    r = sbx_list_records(fx.list, &n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(sbx_buf_printf(&fx.out, NULL, "%s\n", r[i].path), SBX_OK);
    assert_string_equal(fx.out.data, row->paths);
    if (t->tools == GNU)
        assert_int_equal(sbx_list_frame(fx.list)->skipped, row->skipped);
}

static void check_lack(void **state)
{
    const struct test *t = *state;
    const struct lack_row *row = t->row;
    const struct run run = {.shell = t->shell, .set = row->set};
    const struct sbx_list_script args = {.nonce = NONCE, .root = "small", .max_bytes = SBX_MIB};

    need(t);
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    assert_int_equal(run_list(&run), SBX_E_REMOTE);
    assert_string_equal(fx.err.msg, row->message);
}

static void check_limit(void **state)
{
    const struct test *t = *state;
    const struct run run = run_of(t);
    const struct sbx_list_script args = {.nonce = NONCE, .root = "tree", .max_bytes = 3000};
    const struct sbx_list_limits limits = {3000, 1000};
    struct sbx_exit ended;

    need(t);
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    assert_int_equal(sbx_list_new(NONCE, &limits, &fx.list, NULL), SBX_OK);
    ended =
        box_run(&fx.box, &run, &fx.script, (struct sbx_sink){sbx_list_write, fx.list}, &fx.diag);
    assert_int_equal(sbx_list_end(fx.list, ended, &fx.err), SBX_E_LIMIT);
    assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_TRUNCATED);
}

/* execd makes an event of each line: neither thousands of them nor endless ones. */
static void check_lines(void **state)
{
    const struct test *t = *state;
    const struct sbx_list_script args = {.nonce = NONCE, .root = "tree", .max_bytes = SBX_MIB};
    size_t longest = 0, n;

    need(t);
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    run_raw(t);
    for (size_t i = 0; i < fx.out.len; i += n + 1) {
        n = strcspn(fx.out.data + i, "\n");
        longest = n > longest ? n : longest;
    }
    assert_int_equal(fx.out.data[0], '\n');
    assert_int_equal(fx.out.data[fx.out.len - 1], '\n');
    assert_in_range(longest, 1, 16384);
    if (t->tools == TOYBOX) /* which packs nothing, so that there is more than a line */
        assert_int_equal(longest, 16384);
}

/* A script that was cut does nothing. */
static void check_cut(void **state)
{
    const struct test *t = *state;
    const struct sbx_list_script args = {.nonce = NONCE, .root = "small", .max_bytes = SBX_MIB};
    size_t whole;

    need(t);
    assert_int_equal(sbx_list_script(&args, &fx.script, NULL), SBX_OK);
    whole = fx.script.len;
    for (size_t i = 1; i <= 3; i++) {
        fx.script.len = i < 3 ? whole * i / 3 : whole - strlen(") 3>&1 </dev/null\n");
        fx.script.data[fx.script.len] = '\0';
        run_raw(t);
        assert_int_equal(fx.out.len, 0);
    }
}

int main(int argc, char **argv)
{
    static const char *const limit[] = {"stops at its limit"};
    static const char *const lines[] = {"lines of 16,384 characters"};
    static const char *const part[] = {"does nothing when it was cut"};

    add_tests(arounds, 1, sizeof(arounds[0]), N_PAIRS, "listing:", check_around);
    add_tests(arounds + 1, N_ELEMENTS(arounds) - 1, sizeof(arounds[0]), N_SHELLS,
              "listing:", check_around);
    add_tests(ROWS(root_rows), 2, "listing:", check_root);
    add_tests(own_rows, 1, sizeof(own_rows[0]), N_PAIRS, "listing:", check_own);
    add_tests(own_rows + 1, N_ELEMENTS(own_rows) - 1, sizeof(own_rows[0]), N_SHELLS,
              "listing:", check_own);
    add_tests(ROWS(lack_rows), 1, "listing: without", check_lack);
    add_tests(limit, 1, sizeof(limit[0]), N_SHELLS, "listing:", check_limit);
    add_tests(lines, 1, sizeof(lines[0]), N_SHELLS, "listing:", check_lines);
    add_tests(part, 1, sizeof(part[0]), N_SHELLS, "listing:", check_cut);
    return run_shell_tests("listing under real shells", list_setup, argc, argv);
}
