/* Tests of the scripts under real shells with real tools: whichever they are, the records are the
 * same. */
#ifndef TESTS_UNIT_LISTING_SHELLS_H
#define TESTS_UNIT_LISTING_SHELLS_H

#include <stdlib.h>

#include "base/limits.h"
#include "listing/list.h"
#include "listing/script.h"
#include "tests/support/rows.h"
#include "tests/unit/listing/box.h"
#include "tests/unit/listing/tree.h"

#define NONCE "00112233445566778899aabbccddeeff"
#define N_PAIRS (N_SHELLS * N_TOOLS)
#define MAX_TESTS 1024

/* One test: a row under one shell with one make of tools. */
struct test {
    enum shell shell;
    enum tools tools;
    const void *row;
    CMUnitTestFunction fn;
    char name[160];
};

struct fixture {
    struct box box;
    struct tree tree;
    struct test tests[MAX_TESTS];
    size_t n_tests;
    struct sbx_list *list;            /* owned */
    struct sbx_buf script, out, diag; /* owned */
    struct sbx_error err;
};

static struct fixture fx;

static inline int group_setup(void **state)
{
    (void)state;
    box_new(&fx.box);
    tree_make(&fx.tree, &fx.box);
    tree_roots(&fx.box);
    return 0;
}

static inline int group_teardown(void **state)
{
    (void)state;
    (void)chmod(at(&fx.box, "private"), 0700);
    box_free(&fx.box);
    return 0;
}

static inline int setup(void **state)
{
    (void)state;
    fx.script = fx.out = fx.diag = SBX_BUF_INIT(SBX_MIB);
    fx.err = (struct sbx_error){.status = SBX_OK};
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    sbx_list_free(fx.list);
    fx.list = NULL;
    sbx_buf_done(&fx.script);
    sbx_buf_done(&fx.out);
    sbx_buf_done(&fx.diag);
    return 0;
}

static inline void need(const struct test *t)
{
    if (!fx.box.have_shell[t->shell] || !fx.box.have_tools[t->tools])
        fail_msg("no %s, or not all %s tools", shell_names[t->shell], tools_names[t->tools]);
}

static inline struct run run_of(const struct test *t)
{
    static const char *const sets[] = {"tools0", "tools1", "tools2", "tools3"};

    return (struct run){.shell = t->shell, .set = sets[t->tools]};
}

/* Runs fx.script and reads what it prints. */
static inline enum sbx_status run_list(const struct run *run)
{
    const struct sbx_list_limits limits = {SBX_MIB, 1000};
    struct sbx_exit ended;

    assert_int_equal(sbx_list_new(NONCE, &limits, &fx.list, NULL), SBX_OK);
    ended = box_run(&fx.box, run, &fx.script, (struct sbx_sink){sbx_list_write, fx.list}, &fx.diag);
    return sbx_list_end(fx.list, ended, &fx.err);
}

static inline void assert_listed(const struct test *t, enum sbx_status st)
{
    if (st)
        print_error("%s\n%s\n", fx.err.msg, fx.diag.data ? fx.diag.data : "");
    assert_int_equal(st, SBX_OK);
    assert_string_equal(sbx_list_frame(fx.list)->tools, tools_found[t->tools]);
}

static inline void assert_record(const struct sbx_record *got, const struct sbx_record *want)
{
    assert_int_equal(got->path_len, want->path_len);
    assert_memory_equal(got->path, want->path, want->path_len);
    assert_int_equal(got->size, want->size);
    assert_int_equal(got->mtime.sec, want->mtime.sec);
    assert_int_equal(got->mtime.nsec, want->mtime.nsec);
    assert_int_equal(got->ctime.sec, want->ctime.sec);
    assert_int_equal(got->ctime.nsec, want->ctime.nsec);
    assert_int_equal(got->flags & ~SBX_RECORD_YOUNG, 0);
}

static inline void assert_tree(void)
{
    size_t n;
    const struct sbx_record *r = sbx_list_records(fx.list, &n);

    assert_int_equal(n, fx.tree.n);
    for (size_t i = 0; i < n; i++)
        assert_record(&r[i], &fx.tree.files[i]);
}

/* What shells and their users may have done before, or around it. */
static const struct around {
    const char *why;
    const char *prologue;
    const char *env[8];
    bool as_argument, ignore_sigpipe;
    bool noisy; /* something may be on standard error */
} arounds[] = {
    {"read from standard input", "", {NULL}, false, false, false},
    {"given as an argument, without standard input", "", {NULL}, true, false, false},
    {"no TMPDIR that can be written", "", {"TMPDIR=/nonexistent"}, false, false, false},
    {"SIGPIPE ignored", "", {NULL}, false, true, false},
    {"after set -euCfxv", "set -euCfxv\n", {NULL}, false, false, true},
    {"aliases for its tools",
     "shopt -s expand_aliases 2>/dev/null\n"
     "alias find=false xargs=false stat=false head=false gzip=false base64=false od=false\n"
     "alias date=false cat=false printf=false echo=false command=false\n",
     {NULL},
     false,
     false,
     true},
    {"an odd IFS", "IFS='01 a./\n-'; export IFS\n", {"IFS=01 a./"}, false, false, false},
    {"an environment that changes what tools print",
     "",
     {"GZIP=-v", "POSIXLY_CORRECT=1", "LC_ALL=C.UTF-8", "TZ=America/New_York", "CDPATH=/:/tmp",
      "SHELLOPTS=errexit:noglob", NULL},
     false,
     false,
     false},
    {"a profile that prints, and ends without a line end",
     "echo Welcome; printf '\\033[33mto your\\r\\nbox'",
     {NULL},
     false,
     false,
     false},
};

static inline enum sbx_status keep(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    return sbx_buf_add(ctx, bytes, n, err);
}

static inline void run_raw(const struct test *t)
{
    const struct run run = run_of(t);
    struct sbx_exit ended;

    sbx_buf_clear(&fx.out);
    ended = box_run(&fx.box, &run, &fx.script, (struct sbx_sink){keep, &fx.out}, &fx.diag);
    assert_int_equal(ended.kind, SBX_EXIT_EXITED);
}

/* Adds n rows under each shell with each make of tools; or, since a test takes 0.1 s and more, each
 * row in as many of these 16 pairs as `pairs` says, in turn, unless SBX_TEST_FULL is set, as
 * `.ci/run` does: all of them take four minutes. */
static inline void add_tests(const void *table, size_t n, size_t size, size_t pairs,
                             const char *what, CMUnitTestFunction fn)
{
    const char *row = table;

    if (getenv("SBX_TEST_FULL"))
        pairs = N_PAIRS;
    for (size_t i = 0; i < n * pairs; i++) {
        struct test *t = &fx.tests[fx.n_tests++];
        const void *r = row + i / pairs * size;
        const char *const *why = r;

        t->shell = (enum shell)(i % N_SHELLS);
        t->tools = (enum tools)((i + i / N_SHELLS % N_TOOLS + i / pairs) % N_TOOLS);
        t->row = r;
        (void)snprintf(t->name, sizeof(t->name), "%s, %s tools, %s %s", shell_names[t->shell],
                       tools_names[t->tools], what, *why);
        t->fn = fn;
    }
}

static inline int run_shell_tests(const char *group, CMFixtureFunction more_setup, int argc,
                                  char **argv)
{
    static struct CMUnitTest tests[MAX_TESTS];

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    for (size_t i = 0; i < fx.n_tests; i++)
        tests[i] = (struct CMUnitTest){.name = fx.tests[i].name,
                                       .test_func = fx.tests[i].fn,
                                       .setup_func = setup,
                                       .teardown_func = teardown,
                                       .initial_state = &fx.tests[i]};
    return _cmocka_run_group_tests(group, tests, fx.n_tests, more_setup, group_teardown);
}

#endif
