/* Files through COMMAND, with real shells and three families of tools. */
#include "tests/unit/transport/exec_fixture.h"

static const char *const families[] = {"gnu", "busybox", "toybox"};
static const char *const shells[] = {"/usr/bin/dash", "/usr/bin/bash", "/usr/bin/mksh",
                                     "/usr/bin/busybox sh"};

struct combo {
    const char *name;
    const char *family, *shell, *tools;
    char text[96]; /* of the name */
};

/* Any content comes as it is, and so does its record. */
static void test_contents(void **state)
{
    static const char marker[] = "a\n00112233445566778899aabbccddeeff 0 5 1 2 x\0\n"
                                 "00112233445566778899aabbccddeeff done 0 0\n";
    struct fixture *f = *state;
    const struct combo *combo = f->row;
    /* toybox's od writes each byte on its own and takes 3 s for a MiB. */
    bool large = combo->shell == shells[0] && strcmp(combo->family, "toybox") != 0;
    size_t big_n = large ? BIG : MEDIUM;
    char *big = make_random(big_n), path[128];
    unsigned char all[256];
    struct sbx_call call;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (unsigned char)i;
    make_dir(f, "files");
    (void)put(f, "empty", "", 0);
    (void)put(f, "one", "x", 1);
    (void)put(f, "newlines", "\n\n\n", 3);
    (void)put(f, "all", all, sizeof(all));
    (void)put(f, "big", big, big_n);
    (void)put(f, "marker", marker, sizeof(marker));
    (void)put(f, "last", "last", 4);
    open_exec(f, tools_path(f, combo->family, path, sizeof(path)), combo->shell);
    call = fetch_call(f, combo->tools, 60);
    if (fetch(f, &call) != SBX_OK)
        fail_msg("%s", f->err.msg);
    assert_fetched(&f->files[0], "", 0);
    assert_fetched(&f->files[1], "x", 1);
    assert_fetched(&f->files[2], "\n\n\n", 3);
    assert_fetched(&f->files[3], all, sizeof(all));
    assert_fetched(&f->files[4], big, big_n);
    assert_fetched(&f->files[5], marker, sizeof(marker));
    assert_fetched(&f->files[6], "last", 4);
    free(big);
}

static const char *const hostile_names[] = {"-n",
                                            "--help",
                                            "-",
                                            "a'b",
                                            "$(touch pwn)",
                                            "`touch pwn`",
                                            "a;touch pwn",
                                            "a\nb",
                                            "ends in newlines\n\n",
                                            "\n",
                                            " ",
                                            "trailing blank ",
                                            "*",
                                            "a\\b\\101\\",
                                            "%s%n",
                                            "100% %d\n",
                                            "a\"b",
                                            "\x01\x1b[31m\x7f",
                                            "caf\xc3\xa9",
                                            "a\xff\xfe",
                                            "9digits\\0001",
                                            "!",
                                            "(",
                                            "=",
                                            "~",
                                            "#",
                                            "dir/$(touch pwn)",
                                            "-d/-f"};

/* No name is anything but a name: not for the shell, and not for a tool. */
static void test_names(void **state)
{
    struct fixture *f = *state;
    const struct combo *combo = f->row;
    char path[128], pwn[128], cwd[128];
    struct sbx_call call;

    make_dir(f, "files");
    make_dir(f, "files/dir");
    make_dir(f, "files/-d");
    for (size_t i = 0; i < N_ELEMENTS(hostile_names); i++)
        (void)put(f, hostile_names[i], hostile_names[i], strlen(hostile_names[i]));
    open_exec(f, tools_path(f, combo->family, path, sizeof(path)), combo->shell);
    call = fetch_call(f, combo->tools, 60);
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(chdir(cwd), 0);
    for (size_t i = 0; i < f->n; i++)
        assert_fetched(&f->files[i], hostile_names[i], strlen(hostile_names[i]));
    assert_int_equal(access(path_in(f, "pwn", pwn, sizeof(pwn)), F_OK), -1);
    assert_int_equal(access(path_in(f, "files/pwn", pwn, sizeof(pwn)), F_OK), -1);
}

/* What stands there is told before anything is opened. */
static void test_states(void **state)
{
    static const enum sbx_fetch_result expected[] = {
        SBX_FETCH_OK,          SBX_FETCH_VANISHED,    SBX_FETCH_VANISHED,
        SBX_FETCH_NOT_REGULAR, SBX_FETCH_NOT_REGULAR, SBX_FETCH_NOT_REGULAR,
        SBX_FETCH_NOT_REGULAR, SBX_FETCH_VANISHED,    SBX_FETCH_OK};
    struct fixture *f = *state;
    const struct combo *combo = f->row;
    char path[128];
    struct sbx_call call;

    make_dir(f, "files");
    make_dir(f, "files/dir");
    (void)put(f, "first", "1", 1);
    (void)want(f, "gone", 5);
    (void)want(f, "gone/deep/er", 5);
    assert_int_equal(symlink("first", path_in(f, "files/link", path, sizeof(path))), 0);
    (void)want(f, "link", 1);
    assert_int_equal(symlink("nowhere", path_in(f, "files/dangling", path, sizeof(path))), 0);
    (void)want(f, "dangling", 1);
    (void)want(f, "dir", 1);
    assert_int_equal(mkfifo(path_in(f, "files/fifo", path, sizeof(path)), 0644), 0);
    (void)want(f, "fifo", 1);
    (void)want(f, "first/below", 1);
    (void)put(f, "last", "2", 1);
    open_exec(f, tools_path(f, combo->family, path, sizeof(path)), combo->shell);
    call = fetch_call(f, combo->tools, 60);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < f->n; i++)
        assert_int_equal(f->files[i].result, expected[i]);
    assert_fetched(&f->files[0], "1", 1);
    assert_fetched(&f->files[8], "2", 1);
}

/* Who may not read it is told so; as another user, since root may read everything. */
static void test_denied(void **state)
{
    static const char *const as_root[] = {
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", NULL};
    static const char *const as_user[] = {"sh", NULL};
    static const char tools[] = "printf,plain,base64";
    struct fixture *f = *state;
    char path[128];
    struct sbx_call call;

    make_dir(f, "files");
    make_dir(f, "files/shut");
    make_dir(f, "files/shut/in");
    (void)put(f, "secret", "x", 1);
    (void)put(f, "shut/a", "x", 1);
    (void)put(f, "shut/in/b", "x", 1);
    (void)put(f, "open", "x", 1);
    assert_int_equal(chmod(path_in(f, "files/secret", path, sizeof(path)), 0), 0);
    assert_int_equal(chmod(path_in(f, "files/shut", path, sizeof(path)), 0), 0);
    assert_int_equal(sbx_transport_exec_new(path_in(f, "files", path, sizeof(path)),
                                            geteuid() == 0 ? as_root : as_user, &f->transport,
                                            &f->err),
                     SBX_OK);
    call = fetch_call(f, tools, 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(chmod(path_in(f, "files/shut", path, sizeof(path)), 0755), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(f->files[i].result, SBX_FETCH_DENIED);
    assert_fetched(&f->files[3], "x", 1);
}

static size_t add_combos(struct CMUnitTest *tests, size_t n)
{
    static const struct {
        const char *what;
        CMUnitTestFunction fn;
    } kinds[] = {{"contents", test_contents}, {"names", test_names}, {"states", test_states}};
    static struct combo rows[3 * 3 * 4 * 2], *row = rows;

    for (size_t i = 0; i < N_ELEMENTS(rows); i++, row++) {
        size_t kind = i / 24;
        bool hex = i & 1;

        row->family = families[i / 8 % 3];
        row->shell = shells[i / 2 % 4];
        row->tools = i / 8 % 3 == 0 ? (hex ? "printf,plain,hex" : "printf,gzip,base64")
                                    : (hex ? "stat,gzip,hex" : "stat,plain,base64");
        (void)snprintf(row->text, sizeof(row->text), "%s come through %s, %s tools, %s",
                       kinds[kind].what, row->shell + 9, row->family, hex ? "hex" : "base64");
        row->name = row->text;
        if (kind == 0 || !hex)
            n = add_rows(tests, n, row, 1, sizeof(*row), kinds[kind].fn);
    }
    return n;
}

int main(void)
{
    struct CMUnitTest tests[72];
    size_t n = add_combos(tests, 0);

    n = add_test(tests, n, "what may not be read is denied", test_denied);
    return run_all("transport/exec", tests, n);
}
