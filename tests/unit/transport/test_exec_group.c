/* Several small files through one pipeline: nothing is made of them unless all of it agrees. */
#include "tests/unit/transport/exec_fixture.h"

struct grouped {
    const char *name;
    const char *cat;  /* shell text of a `cat` before the others; $F is the fixture, $@ the files */
    const char *head; /* cases of the wrapped head, for files that go by themselves */
    const char *results; /* for a b c d: o, v (vanished), s (server), n (not regular) */
    const char *contents[4];
};

static const struct grouped groupeds[] = {
    {"files of a group come out in one piece each", "", "", "oooo", {"A", "", "CCC", "DDDD"}},
    {"a file that grows while a group is read sends each by itself",
     "echo more >>c",
     "",
     "oooo",
     {"A", "", "CCC", "DDDD"}},
    {"two files that change places in length do not shift what is between them",
     "printf AA >a; printf CC >c",
     "",
     "oooo",
     {"A", "", "CC", "DDDD"}},
    {"files that changed places in length before they were asked for do not shift the others",
     "",
     "",
     "oooo",
     {"A", "", "CC", "DDDD"}},
    {"a file that is gone sends the others by themselves",
     "rm c",
     "",
     "oovo",
     {"A", "", "", "DDDD"}},
    {"a FIFO in place of a file sends the others by themselves",
     "rm c; mkfifo c",
     "",
     "oono",
     {"A", "", "", "DDDD"}},
    {"a group that is stuck goes one by one with a start of its own",
     "sleep 60",
     "",
     "oooo",
     {"A", "", "CCC", "DDDD"}},
    {"a stuck file of a stuck group fails alone",
     "sleep 60",
     "*/c) sleep 60;;",
     "ooso",
     {"A", "", "", "DDDD"}},
    {"a cat that fails sends each by itself", "exit 1", "", "oooo", {"A", "", "CCC", "DDDD"}},
};

static void test_grouped(void **state)
{
    static const char letters[] = {[SBX_FETCH_OK] = 'o',
                                   [SBX_FETCH_VANISHED] = 'v',
                                   [SBX_FETCH_SERVER] = 's',
                                   [SBX_FETCH_NOT_REGULAR] = 'n',
                                   ['~'] = 0};
    static const char *const contents[] = {"A", "", "CCC", "DDDD"};
    struct fixture *f = *state;
    const struct grouped *row = f->row;
    char text[512];
    struct sbx_call call;

    make_dir(f, "files");
    for (size_t i = 0; i < 4; i++)
        (void)put(f, (char[]){(char)('a' + i), 0}, contents[i], strlen(contents[i]));
    open_with_head(f, row->head, "");
    (void)snprintf(text, sizeof(text),
                   "#!/bin/sh\nF=%s\n[ $# != 5 ] || { %s\n}\nexec /bin/cat \"$@\"\n", f->dir,
                   row->cat[0] ? row->cat : ":");
    make_script(f, "wrap/cat", text);
    if (strstr(row->name, "before they were asked for")) {
        make_file(f, "files/a", "AA", 2);
        make_file(f, "files/c", "CC", 2);
    }
    call = fetch_call(f, "printf,plain,base64", 20);
    call.idle_ns = 1500 * (uint64_t)SBX_NS_PER_MS;
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 4; i++) {
        if (letters[f->files[i].result] != row->results[i])
            fail_msg("file %zu: result %d: %s", i, (int)f->files[i].result, f->files[i].why);
        if (row->results[i] == 'o')
            assert_text(&f->files[i].content, row->contents[i]);
        assert_int_equal(f->files[i].ended, 1);
        assert_true(f->files[i].begun <= 1); /* nothing is opened for a group that fails */
    }
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(groupeds)];
    size_t n = add_rows(tests, 0, ROWS(groupeds), test_grouped);

    return run_all("transport/exec_group", tests, n);
}
