/* What can go wrong on the way through COMMAND: files that move, tools that lack, shells that are
 * lost or stuck. */
#include "tests/unit/transport/exec_fixture.h"

struct moving {
    const char *name;
    const char *before, *after; /* cases of the wrapped head */
    enum sbx_fetch_result result;
    const char *content;
    uint64_t record_size; /* if result is OK */
};

static const struct moving movings[] = {
    {"a file that grows before it is read shows it in the record", "*) echo more >>\"$3\";;", "",
     SBX_FETCH_OK, "content", 12},
    {"a file that grows after it was read shows it in the record", "", "*) echo more >>\"$3\";;",
     SBX_FETCH_OK, "content", 12},
    {"a file that shrinks before it is read is shorter, as its record says",
     "*) printf abc >\"$3\";;", "", SBX_FETCH_OK, "abc", 3},
    {"a file that is gone before it is read has vanished", "*) rm \"$3\";;", "", SBX_FETCH_VANISHED,
     "", 0},
    {"a file that is gone after it was read has changed", "", "*) rm \"$3\";;", SBX_FETCH_CHANGED,
     "content", 0},
    {"a link in place of the file that was read is a change", "",
     "*) rm \"$3\"; ln -s /etc/passwd \"$3\";;", SBX_FETCH_CHANGED, "content", 0},
    {"a directory in place of the file that is to be read vanished", "*) rm \"$3\"; mkdir \"$3\";;",
     "", SBX_FETCH_VANISHED, "", 0},
    {"a read that fails is the server's failure", "*) s=1; printf con; exit 1;;", "",
     SBX_FETCH_SERVER, "con", 0},
};

static void test_moving(void **state)
{
    struct fixture *f = *state;
    const struct moving *row = f->row;
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "content", 7);
    open_with_head(f, row->before, row->after);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].result, row->result);
    assert_text(&f->files[0].content, row->content);
    if (row->result == SBX_FETCH_OK)
        assert_record(&f->files[0], row->record_size);
    else
        assert_false(f->files[0].has_record);
}

struct trouble {
    const char *name;
    const char *before;  /* cases of the wrapped head */
    const char *results; /* for 1 2 3 4: o, s (server), l (lost) */
    const char *begun;   /* how often each began */
    enum sbx_status status;
};

/* $PPID of the wrapped head is a subshell; its session is COMMAND's. */
#define CUT "kill -9 -$(ps -o sid= -p $$ | tr -d ' ')"

static const struct trouble troubles[] = {
    {"a file that is stuck fails alone", "*/-2) sleep 60;;", "osoo", "1111", SBX_OK},
    {"two stuck files use up the new start", "*/-2|*/-3) sleep 60;;", "ossl", "1110",
     SBX_E_UNREACHABLE},
    {"a stuck last file costs the others nothing", "*/-4) sleep 60;;", "ooos", "1111", SBX_OK},
    {"a channel that is lost in a file is opened again",
     "*/-2) [ -e $F/cut ] || { : >$F/cut; printf x; sleep 0.1; " CUT "; };;", "oooo", "1211",
     SBX_OK},
    {"a channel that is lost twice is lost", "*/-2) " CUT ";;", "olll", "1200", SBX_E_UNREACHABLE},
};

static void test_trouble(void **state)
{
    static const char letters[] = {
        [SBX_FETCH_OK] = 'o', [SBX_FETCH_SERVER] = 's', [SBX_FETCH_LOST] = 'l', ['~'] = 0};
    struct fixture *f = *state;
    const struct trouble *row = f->row;
    struct sbx_call call;

    make_dir(f, "files");
    for (char c = '1'; c <= '4'; c++)
        (void)put(f, (char[]){'-', c, 0}, &c, 1); /* such names go by themselves */
    open_with_head(f, row->before, "");
    call = fetch_call(f, "printf,plain,base64", 20);
    call.idle_ns = 1500 * (uint64_t)SBX_NS_PER_MS;
    assert_int_equal(fetch(f, &call), row->status);
    for (size_t i = 0; i < 4; i++) {
        char c = (char)('1' + i);

        if (letters[f->files[i].result] != row->results[i])
            fail_msg("file %c: result %d: %s", c, (int)f->files[i].result, f->files[i].why);
        assert_int_equal(f->files[i].begun, row->begun[i] - '0');
        if (row->results[i] == 'o')
            assert_fetched(&f->files[i], &c, 1);
        else
            assert_true(f->files[i].why[0] != '\0');
    }
}

/* Files that were not taken stay in the queue when there is no start left. */
static void test_untaken(void **state)
{
    static const char *const argv[] = {"false", NULL};
    struct fixture *f = *state;
    struct sbx_call call;

    assert_int_equal(sbx_transport_exec_new("/srv", argv, &f->transport, &f->err), SBX_OK);
    (void)want(f, "a", 1);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_E_UNREACHABLE);
    assert_int_equal(f->files[0].result, SBX_FETCH_LOST);
    (void)want(f, "b", 1);
    assert_int_equal(fetch(f, &call), SBX_E_UNREACHABLE);
    assert_int_equal(f->next, 1);
    assert_int_equal(f->files[1].ended, 0);
}

struct lacking {
    const char *name;
    const char *lacks, *says;
};

static const struct lacking lackings[] = {
    {"a missing head is named", "head", "remote tool missing: head"},
    {"a missing encoder is named", "base64", "remote tool missing: the encoder"},
};

static void test_lacking(void **state)
{
    struct fixture *f = *state;
    const struct lacking *row = f->row;
    char bin[128], tool[160];
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    (void)put(f, "b", "x", 1);
    (void)tools_path(f, "busybox", bin, sizeof(bin));
    (void)snprintf(tool, sizeof(tool), "%s/%s", bin, row->lacks);
    assert_int_equal(unlink(tool), 0);
    open_exec(f, bin, "/usr/bin/dash");
    call = fetch_call(f, "stat,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->files[i].result, SBX_FETCH_SERVER);
        assert_has(f->files[i].why, row->says);
    }
}

struct profile {
    const char *name;
    const char *script; /* COMMAND is sh -c of it */
    enum sbx_status status;
};

static const struct profile profiles[] = {
    {"a greeting is skipped", "printf '\\033[3mOnly these folders persist\\n'; exec sh", SBX_OK},
    {"a greeting without a newline is skipped", "printf V2VsY29tZQo=; exec sh", SBX_OK},
    {"a greeting of 60 KiB is skipped", "head -c 61440 /dev/zero; exec sh", SBX_OK},
    {"an endless greeting is a lost source", "yes | head -c 300000; exec sh", SBX_E_UNREACHABLE},
    {"a profile that turns words into options is undone",
     "exec sh -c 'IFS=0123456789; set -efu; alias echo=false; . /dev/stdin'", SBX_OK},
    {"a farewell is skipped", "trap 'echo bye' 0; sh", SBX_OK},
};

static void test_profile(void **state)
{
    struct fixture *f = *state;
    const struct profile *row = f->row;
    const char *const argv[] = {"sh", "-c", row->script, NULL};
    char dir[128];
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    assert_int_equal(
        sbx_transport_exec_new(path_in(f, "files", dir, sizeof(dir)), argv, &f->transport, &f->err),
        SBX_OK);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), row->status);
    if (row->status)
        assert_int_equal(f->files[0].result, SBX_FETCH_LOST);
    else
        assert_fetched(&f->files[0], "x", 1);
}

/* A stuck file: the call ends in time and says so of every file. */
static void check_bound(struct fixture *f, double seconds, enum sbx_status status)
{
    uint64_t began = sbx_clock_now();
    struct sbx_call call = fetch_call(f, "printf,plain,base64", seconds);

    assert_int_equal(fetch(f, &call), status);
    assert_true(seconds_since(began) < 4);
    assert_int_equal(f->files[0].result, SBX_FETCH_OK);
    assert_int_equal(f->files[2].result, SBX_FETCH_CANCELLED);
    assert_int_equal(f->files[3].result, SBX_FETCH_CANCELLED);
}

static void cancel_at_second(struct fixture *f, struct file *file)
{
    uint64_t one = 1;

    if (file == &f->files[1])
        assert_int_equal(write(f->cancel_fd, &one, sizeof(one)), sizeof(one));
}

static void test_bounds(void **state)
{
    struct fixture *f = *state;

    make_dir(f, "files");
    for (char c = '1'; c <= '4'; c++)
        (void)put(f, (char[]){'-', c, 0}, &c, 1); /* such names go by themselves */
    open_with_head(f, "*/-3) sleep 60;;", "");
    check_bound(f, 2, SBX_E_DEADLINE);
    want_again(f);
    f->on_write = cancel_at_second;
    check_bound(f, 20, SBX_E_CANCELLED);
}

/* A queue that says "wait" is asked again; batches follow each other in one shell. */
static void test_waiting(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call;

    make_dir(f, "files");
    for (char c = '1'; c <= '3'; c++)
        (void)put(f, (char[]){c, 0}, &c, 1);
    f->waits = 1;
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_fetched(&f->files[i], f->files[i].path, 1);
}

/* The listed sizes reach the limit of a batch at once: each file has a script of its own. */
static void test_batches(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call;

    make_dir(f, "files");
    for (char c = '1'; c <= '3'; c++) {
        (void)put(f, (char[]){c, 0}, &c, 1);
        f->files[f->n - 1].wanted.size = c == '2' ? UINT64_MAX / 2 : SBX_BATCH_BYTES;
    }
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_fetched(&f->files[i], f->files[i].path, 1);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    char *big = make_random(MEDIUM);
    struct sbx_call call;

    make_dir(f, "files");
    put(f, "a", big, MEDIUM)->refuse = true;
    put(f, "b", big, MEDIUM)->refuse = true;
    f->files[1].refuse_at = 100000;
    (void)put(f, "c", big, MEDIUM);
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].ended, 1);
    assert_int_equal(f->files[1].ended, 1);
    assert_fetched(&f->files[2], big, MEDIUM);
    free(big);
}

static enum sbx_status run(struct fixture *f, const char *script, struct sbx_exit *ret)
{
    struct sbx_call call = call_within(f, 10);

    sbx_buf_clear(&f->out);
    return f->transport->ops.run(f->transport->self, &call, script, strlen(script), to_buf(&f->out),
                                 to_buf(&f->diag), ret, &f->err);
}

/* Runs and fetches share one shell; a shell that was lost in between is started anew, once. */
static void test_runs(void **state)
{
    struct fixture *f = *state;
    struct sbx_exit ended;
    char first[32];
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    assert_int_equal(run(f, "echo $$; (exit 3)", &ended), SBX_OK);
    assert_int_equal(ended.code, 3);
    (void)snprintf(first, sizeof(first), "%s", f->out.data);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_fetched(&f->files[0], "x", 1);
    assert_int_equal(run(f, "echo $$", &ended), SBX_OK);
    assert_text(&f->out, first);
    assert_int_equal(run(f, "(sleep 0.1; kill -9 $$) >/dev/null 2>&1 & sleep 0.05", &ended),
                     SBX_OK);
    (void)usleep(200000);
    assert_int_equal(run(f, "echo again", &ended), SBX_OK);
    assert_text(&f->out, "again\n\n");
    assert_int_equal(run(f, "echo some; exit 5", &ended), SBX_E_UNREACHABLE);
    assert_has(f->err.msg, "status 5");
    assert_int_equal(run(f, "echo once more", &ended), SBX_OK);
    assert_text(&f->out, "once more\n\n");
}

/* COMMAND outlives the shell that it leads to: that one is gone shows only when the next script is
 * not answered. */
static void test_rerun(void **state)
{
    static const char *const argv[] = {"sh", "-c", "dash; exec sleep 1", NULL};
    struct fixture *f = *state;
    struct sbx_exit ended;

    assert_int_equal(sbx_transport_exec_new("/srv", argv, &f->transport, &f->err), SBX_OK);
    assert_int_equal(run(f, "(sleep 0.1; kill -9 $$) >/dev/null 2>&1 &", &ended), SBX_OK);
    (void)usleep(500000);
    assert_int_equal(run(f, "echo again", &ended), SBX_OK);
    assert_text(&f->out, "again\n\n");
}

int main(void)
{
    struct CMUnitTest tests[48];
    size_t n = add_rows(tests, 0, ROWS(movings), test_moving);

    n = add_rows(tests, n, ROWS(troubles), test_trouble);
    n = add_rows(tests, n, ROWS(lackings), test_lacking);
    n = add_rows(tests, n, ROWS(profiles), test_profile);
    n = add_test(tests, n, "files that were not taken stay in the queue", test_untaken);
    n = add_test(tests, n, "deadline and cancel end a stuck fetch", test_bounds);
    n = add_test(tests, n, "a queue that says wait is asked again", test_waiting);
    n = add_test(tests, n, "large sizes part batches", test_batches);
    n = add_test(tests, n, "a refused file does not keep the next", test_refused);
    n = add_test(tests, n, "runs and fetches share one shell", test_runs);
    n = add_test(tests, n, "a script that nobody answered is given to a new shell", test_rerun);
    return run_all("transport/exec_trouble", tests, n);
}
