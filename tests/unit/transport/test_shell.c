/* Scripts given to real shells: how they end, what comes of what they print, and that nothing of
 * them is left. */
#include "tests/unit/transport/fixture.h"

#include <pthread.h>
#include <sys/ioctl.h>

#include "transport/shell.h"

#define SHELLS 4

static const char *const shells[SHELLS][3] = {
    {"dash", NULL}, {"bash", NULL}, {"mksh", NULL}, {"busybox", "sh", NULL}};

/* Runs one script in a shell of its own. */
static enum sbx_status run_once(struct fixture *f, const char *const *argv, const char *script,
                                double seconds, struct sbx_exit *ret_exit)
{
    struct sbx_call call = call_within(f, seconds);
    struct sbx_shell shell = SBX_SHELL_INIT;
    enum sbx_status st;

    sbx_buf_clear(&f->out);
    sbx_buf_clear(&f->diag);
    shell.argv = argv;
    shell.starts_left = 1;
    st = sbx_shell_run(&shell, &call, script, strlen(script), 0, to_buf(&f->out), to_buf(&f->diag),
                       ret_exit, &f->err);
    sbx_shell_end(&shell);
    sbx_shell_end(&shell);
    return st;
}

struct answer {
    const char *name;
    const char *script;
    const char *out;
    int code;
};

static const struct answer answers[] = {
    {"a script that succeeds has status 0", "echo hi", "hi\n\n", 0},
    {"a script's own status is told", "echo hi; (exit 3)", "hi\n\n", 3},
    {"status 255 is told", "(exit 255)", "\n", 255},
    {"output without a final newline gets ours", "printf abc", "abc\n", 0},
    {"a script without output has none", ":", "\n", 0},
    {"blank lines at the end stay", "printf 'a\\n\\n\\n'", "a\n\n\n\n", 0},
    {"an exit line with another nonce is output and nothing else",
     "echo 00112233445566778899aabbccddeeff exit 7; (exit 2)",
     "00112233445566778899aabbccddeeff exit 7\n\n", 2},
    {"a script may switch on -e and -u", "set -eu; echo hi", "hi\n\n", 0},
    {"a script may lose its IFS and its aliases", "IFS=0123456789; alias printf=false; echo hi",
     "hi\n\n", 0},
    {"a subshell killed by a signal is a status", "(kill -9 $(exec sh -c 'echo $PPID')); (exit 5)",
     "\n", 5},
    {"a script may print NUL and every other byte", "printf 'a\\000\\377\\rb'", NULL, 0},
};

static void test_answer(void **state)
{
    struct fixture *f = *state;
    const struct answer *row = f->row;

    for (size_t i = 0; i < SHELLS; i++) {
        struct sbx_exit ended = {0};
        enum sbx_status st = run_once(f, shells[i], row->script, 10, &ended);

        if (st)
            fail_msg("%s: %s", shells[i][0], f->err.msg);
        if (row->out)
            assert_text(&f->out, row->out);
        else
            assert_bytes(&f->out, "a\0\377\rb\n", 6);
        assert_int_equal(ended.kind, SBX_EXIT_EXITED);
        assert_int_equal(ended.code, row->code);
    }
}

struct loss {
    const char *name;
    const char *argv[4];
    const char *script;
    const char *out;
    const char *says;
};

static const struct loss losses[] = {
    {"a program that is not there is named", {"no-such-program"}, ":", "", "no-such-program"},
    {"a command that ends at once tells its status",
     {"sh", "-c", "exit 7"},
     ":",
     "",
     "COMMAND ended with status 7"},
    {"a command that is no shell tells its status",
     {"true"},
     "echo hi",
     "",
     "COMMAND ended with status 0"},
    {"a command that was killed tells the signal",
     {"sh"},
     "echo hi; kill -9 $$",
     "hi\n",
     "COMMAND was ended by signal 9"},
    {"a script that ends its shell is no success",
     {"sh"},
     "echo hi; exit 0",
     "hi\n",
     "COMMAND ended with status 0"},
    {"the last line of standard error is told",
     {"sh"},
     "echo one >&2; echo two >&2; exit 3",
     "",
     "status 3: two"},
    {"the last line of standard error is escaped",
     {"sh"},
     "printf 'a\\033[31m\\377\\302\\233b\\n\\n' >&2; exit 3",
     "",
     ": a\\x1b[31m\\xff\\xc2\\x9bb"},
    {"a child that holds the output open does not keep us",
     {"sh"},
     "sleep 30 & exit 5",
     "",
     "COMMAND ended with status 5"},
    {"a command that closes its output has ended",
     {"sh"},
     "echo hi; exec >&-; sleep 30",
     "hi\n",
     "COMMAND closed its output"},
};

static void test_loss(void **state)
{
    struct fixture *f = *state;
    const struct loss *row = f->row;
    struct sbx_exit ended = {SBX_EXIT_DEADLINE, 77};
    uint64_t began = sbx_clock_now();

    assert_int_equal(run_once(f, row->argv, row->script, 10, &ended), SBX_E_UNREACHABLE);
    assert_int_equal(f->err.status, SBX_E_UNREACHABLE);
    assert_has(f->err.msg, row->says);
    assert_text(&f->out, row->out);
    assert_int_equal(ended.code, 77);
    assert_true(seconds_since(began) < 4);
}

static void test_profile(void **state)
{
    static const char *const argv[] = {"sh", "-c", "printf '\\033[3mWelcome'; exec dash", NULL};
    struct fixture *f = *state;
    struct sbx_exit ended = {0};

    assert_int_equal(run_once(f, argv, "echo; echo hi; (exit 4)", 10, &ended), SBX_OK);
    assert_text(&f->out, "\033[3mWelcome\nhi\n\n");
    assert_int_equal(ended.code, 4);
}

static void test_crlf(void **state)
{
    static const char *const argv[] = {"sh", "-c", "dash | sed -u 's/$/\\r/'", NULL};
    struct fixture *f = *state;
    struct sbx_exit ended = {0};

    assert_int_equal(run_once(f, argv, "echo hi; (exit 4)", 10, &ended), SBX_OK);
    assert_text(&f->out, "\rhi\r\n\r\n"); /* the first is from the line of our own start line */
    assert_int_equal(ended.code, 4);
}

static void test_stderr(void **state)
{
    static const char *const argv[] = {"sh", NULL};
    struct fixture *f = *state;
    struct sbx_exit ended;

    assert_int_equal(run_once(f, argv,
                              "head -c 1048576 /dev/zero | tr '\\0' '\\033' >&2; echo hi; exit 1",
                              10, &ended),
                     SBX_E_UNREACHABLE);
    assert_int_equal(f->diag.len, 1048576);
    assert_text(&f->out, "hi\n");
    assert_has(f->err.msg, "\\x1b\\x1b");
    assert_null(strchr(f->err.msg, '\033'));
    assert_true(strlen(f->err.msg) < sizeof(f->err.msg) - 1);
}

/* 96 KiB of names is what a batch may need. */
static void test_huge(void **state)
{
    struct fixture *f = *state;
    struct sbx_buf script = SBX_BUF_INIT(SBX_MIB);

    assert_int_equal(sbx_buf_str(&script, "(x=0\n", NULL), SBX_OK);
    while (script.len < 96 * SBX_KIB)
        assert_int_equal(sbx_buf_str(&script, "x=$((x+1)) # some name of a file\n", NULL), SBX_OK);
    assert_int_equal(sbx_buf_str(&script, "echo $x; exit 9) </dev/null\n", NULL), SBX_OK);
    for (size_t i = 0; i < SHELLS; i++) {
        struct sbx_exit ended = {0};

        assert_int_equal(run_once(f, shells[i], script.data, 10, &ended), SBX_OK);
        assert_text(&f->out, "2979\n\n");
        assert_int_equal(ended.code, 9);
    }
    sbx_buf_done(&script);
}

/* COMMAND is gone while most of the script is still to be written: neither does SIGPIPE kill this
 * process, nor does one stay pending, nor does its disposition or the mask change. */
static void test_sigpipe(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct fixture *f = *state;
    char *script = calloc(1, SBX_MIB);
    struct sigaction before, after;
    sigset_t mask, pending;
    struct sbx_exit ended;

    assert_non_null(script);
    memset(script, '#', SBX_MIB - 1);
    assert_int_equal(sigaction(SIGPIPE, NULL, &before), 0);
    assert_ptr_equal(before.sa_handler, SIG_DFL);
    assert_int_equal(run_once(f, argv, script, 10, &ended), SBX_E_UNREACHABLE);
    free(script);
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_ptr_equal(after.sa_handler, SIG_DFL);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGPIPE), 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
}

/* No shell: those clear their mask themselves. */
static void test_signals(void **state)
{
    static const char *const argv[] = {"grep", "-E", "SigBlk|SigIgn", "/proc/self/status", NULL};
    struct fixture *f = *state;
    sigset_t some, before;
    struct sbx_exit ended;
    enum sbx_status st;

    (void)sigemptyset(&some);
    (void)sigaddset(&some, SIGTERM);
    (void)sigaddset(&some, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &some, &before);
    (void)signal(SIGHUP, SIG_IGN);
    st = run_once(f, argv, ":", 10, &ended);
    (void)signal(SIGHUP, SIG_DFL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(st, SBX_E_UNREACHABLE);
    /* glibc gives its two internal signals, 32 and 33, to every child ignored. */
    if (strcmp(f->out.data, "SigBlk:\t0000000000000000\nSigIgn:\t0000000180000000\n") != 0)
        assert_text(&f->out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

/* A shell for several scripts. */
static enum sbx_status give(struct fixture *f, struct sbx_shell *shell, const char *script,
                            struct sbx_exit *ret_exit)
{
    struct sbx_call call = call_within(f, 10);

    sbx_buf_clear(&f->out);
    return sbx_shell_run(shell, &call, script, strlen(script), 0, to_buf(&f->out), to_buf(&f->diag),
                         ret_exit, &f->err);
}

static void test_same_shell(void **state)
{
    static const char *const argv[] = {"sh", NULL};
    struct fixture *f = *state;
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    enum sbx_status st[4];
    bool same;

    shell.argv = argv;
    shell.starts_left = 2;
    st[0] = give(f, &shell, "x=5; echo $$; (sleep 0.05; echo late) &", &ended);
    (void)usleep(100000);
    st[1] = give(f, &shell, "echo $x", &ended);
    same = f->out.len == 3 && memcmp(f->out.data, "5\n\n", 3) == 0;
    (void)kill(shell.child.pid, SIGKILL);
    (void)usleep(50000);
    st[2] = give(f, &shell, "echo ${x:-new}; exit 3", &ended);
    st[3] = give(f, &shell, "echo hi", &ended);
    sbx_shell_end(&shell);
    assert_int_equal(st[0], SBX_OK);
    assert_int_equal(st[1], SBX_OK);
    assert_true(same);
    assert_int_equal(st[2], SBX_E_UNREACHABLE);
    assert_int_equal(st[3], SBX_E_UNREACHABLE);
    assert_has(f->err.msg, "once too often");
    assert_int_equal(f->out.len, 0);
}

struct ending {
    const char *name;
    const char *script; /* prints the numbers of processes, each on a line */
    enum sbx_status status;
    double deadline_s;
    unsigned lines; /* after so many lines it is cancelled, or refused; 0: neither */
    uint64_t idle_ns;
};

#define SLEEPERS "echo $$; sleep 60 & echo $!; sh -c 'echo $$; sleep 60; :'"

static const struct ending endings[] = {
    {"a deadline ends every process", SLEEPERS, SBX_E_DEADLINE, 2, 0, 0},
    {"a cancel from another thread ends every process", SLEEPERS, SBX_E_CANCELLED, 20, 3, 0},
    {"a process that ignores SIGTERM is ended too", "trap '' TERM; " SLEEPERS, SBX_E_CANCELLED, 20,
     3, 0},
    {"a cancel is heard while output floods", "echo $$; yes ''", SBX_E_CANCELLED, 20, 1, 0},
    {"a sink that refuses ends every process", SLEEPERS, SBX_E_REMOTE, 20, 3, 0},
    {"a time without output ends every process", SLEEPERS, SBX_E_LIMIT, 20, 0,
     1500 * (uint64_t)SBX_NS_PER_MS},
    {"noise on standard error is no output", "echo $$; while :; do echo x >&2; sleep 0.02; done",
     SBX_E_LIMIT, 20, 0, 1500 * (uint64_t)SBX_NS_PER_MS},
};

struct watcher {
    const struct ending *row;
    struct fixture *f;
    unsigned lines;
    int seen_fd; /* readable once the lines are there */
    uint64_t seen_ns;
};

/* Keeps the first 1,000 bytes, which hold the numbers, and tells when they are there. */
static enum sbx_status watch(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct watcher *w = ctx;
    const char *at = bytes, *end = at + n;
    unsigned before = w->lines;
    uint64_t one = 1;

    if (w->f->out.len + n < 1000)
        assert_int_equal(sbx_buf_add(&w->f->out, bytes, n, NULL), SBX_OK);
    for (; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        w->lines++;
    if (before >= w->row->lines || w->lines < w->row->lines)
        return SBX_OK;
    w->seen_ns = sbx_clock_now();
    if (w->row->status == SBX_E_REMOTE)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "not wanted");
    assert_int_equal(write(w->seen_fd, &one, sizeof(one)), sizeof(one));
    return SBX_OK;
}

static void *cancel_when_seen(void *arg)
{
    struct watcher *w = arg;
    uint64_t one = 0;

    assert_int_equal(read(w->seen_fd, &one, sizeof(one)), sizeof(one));
    assert_int_equal(write(w->f->cancel_fd, &one, sizeof(one)), sizeof(one));
    return NULL;
}

static void test_ending(void **state)
{
    static const char *const argv[] = {"sh", NULL};
    struct fixture *f = *state;
    const struct ending *row = f->row;
    struct sbx_call call = call_within(f, row->deadline_s);
    struct watcher w = {.row = row, .f = f, .seen_fd = eventfd(0, EFD_CLOEXEC)};
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    pthread_t thread;
    enum sbx_status st;
    double took;

    w.seen_ns = sbx_clock_now();
    if (row->status == SBX_E_CANCELLED)
        assert_int_equal(pthread_create(&thread, NULL, cancel_when_seen, &w), 0);
    shell.argv = argv;
    shell.starts_left = 1;
    st =
        sbx_shell_run(&shell, &call, row->script, strlen(row->script), row->idle_ns,
                      (struct sbx_sink){watch, &w}, (struct sbx_sink){NULL, NULL}, &ended, &f->err);
    took = seconds_since(w.seen_ns);
    if (row->status == SBX_E_CANCELLED)
        (void)pthread_join(thread, NULL);
    (void)close(w.seen_fd);
    sbx_shell_end(&shell);
    assert_int_equal(st, row->status);
    assert_int_equal(f->err.status, row->status);
    assert_true(took < 4);
    assert_all_end(f->out.data);
}

/* What a sink takes for itself is not the peer's silence. */
static enum sbx_status slow_write(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    const struct sbx_buf *buf = ctx;

    if (buf->len == 0)
        (void)usleep(1500000);
    return sbx_buf_add(ctx, bytes, n, err);
}

static void test_slow_sink(void **state)
{
    static const char *const argv[] = {"sh", NULL};
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 10);
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    enum sbx_status st;

    shell.argv = argv;
    shell.starts_left = 1;
    st = sbx_shell_run(&shell, &call, "echo one; sleep 1.9; echo two", 29,
                       1000 * (uint64_t)SBX_NS_PER_MS, (struct sbx_sink){slow_write, &f->out},
                       to_buf(&f->diag), &ended, &f->err);
    sbx_shell_end(&shell);
    assert_int_equal(st, SBX_OK);
    assert_text(&f->out, "one\ntwo\n\n");
}

static void test_idle_shell_ends(void **state)
{
    static const char *const argv[] = {"sh", "-c", "sh; echo ended >\"$0\"", NULL, NULL};
    const char *with_file[5];
    struct fixture *f = *state;
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    char path[128];
    enum sbx_status st;

    memcpy(with_file, argv, sizeof(argv));
    with_file[3] = path_in(f, "ended", path, sizeof(path));
    shell.argv = with_file;
    shell.starts_left = 1;
    st = give(f, &shell, "echo hi", &ended);
    sbx_shell_end(&shell);
    assert_int_equal(st, SBX_OK);
    assert_int_equal(access(path, F_OK), 0);
}

/* Whether a command that asks somebody at the terminal may take longer than a first byte. */
static bool waits_for_a_passphrase(struct fixture *f)
{
    static const char *const argv[] = {"sh", "-c", "sleep 0.8; exec sh", NULL};
    struct sbx_call call = call_within(f, 20);
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    enum sbx_status st;

    call.idle_ns = SBX_NS_PER_S / 5;
    shell.argv = argv;
    shell.starts_left = 1;
    st =
        sbx_shell_run(&shell, &call, ":", 1, 0, to_buf(&f->out), to_buf(&f->diag), &ended, &f->err);
    sbx_shell_end(&shell);
    return st == SBX_OK;
}

/* Runs in a process of its own that has a controlling terminal. Returns an exit status. */
static int with_terminal(struct fixture *f)
{
    static const char *const argv[] = {"sh", NULL};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
    struct sbx_exit ended;
    char expected[64];

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || setsid() < 0)
        return 2;
    slave = open(ptsname(master), O_RDWR | O_CLOEXEC); /* banned-ok: a terminal of the test's own */
    if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
        return 3;
    if (run_once(f, argv, "cut -d' ' -f5 /proc/$$/stat", 10, &ended))
        return 4;
    (void)snprintf(expected, sizeof(expected), "%d\n\n", (int)getpgrp());
    if (strcmp(f->out.data, expected) != 0)
        return 5;
    if (run_once(f, argv, "exec sleep 60", 0.2, &ended) != SBX_E_DEADLINE)
        return 6;
    if (!waits_for_a_passphrase(f))
        return 8;
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : 7;
}

static void test_terminal(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(with_terminal(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int without_terminal(struct fixture *f)
{
    static const char *const argv[] = {"sh", NULL};
    struct sbx_exit ended;

    (void)setsid();
    if (run_once(f, argv,
                 "set -- $(cut -d' ' -f1,5,6 /proc/$$/stat); echo $(($1 - $2)) $(($1 - $3))", 10,
                 &ended))
        return 4;
    return strcmp(f->out.data, "0 0\n\n") == 0 ? 0 : 5;
}

static void test_session(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(without_terminal(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A process that has closed its standard streams and prints all the same must not print to the
 * shell. */
static int closed_streams(struct fixture *f)
{
    static const char *const argv[] = {"sh", NULL};
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    enum sbx_status st;
    bool above;

    for (int i = 0; i < 3; i++)
        (void)close(i);
    shell.argv = argv;
    shell.starts_left = 1;
    st = give(f, &shell, "echo hi; echo ho >&2", &ended);
    above = shell.child.in > 2 && shell.child.out > 2 && shell.child.diag > 2;
    sbx_shell_end(&shell);
    if (st || !above)
        return 4;
    return strcmp(f->out.data, "hi\n\n") == 0 && strcmp(f->diag.data, "ho\n") == 0 ? 0 : 5;
}

static void test_closed_streams(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(closed_streams(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(answers) + N_ELEMENTS(losses) + N_ELEMENTS(endings) + 16];
    size_t n = add_rows(tests, 0, ROWS(answers), test_answer);

    n = add_rows(tests, n, ROWS(losses), test_loss);
    n = add_rows(tests, n, ROWS(endings), test_ending);
    n = add_test(tests, n, "what a profile prints goes to the reader", test_profile);
    n = add_test(tests, n, "an exit line with CR LF counts", test_crlf);
    n = add_test(tests, n, "a MiB of standard error is cut and escaped", test_stderr);
    n = add_test(tests, n, "a script of 96 KiB reaches every shell", test_huge);
    n = add_test(tests, n, "writing to a command that has gone raises no SIGPIPE", test_sigpipe);
    n = add_test(tests, n, "a child starts with default signals and an empty mask", test_signals);
    n = add_test(tests, n, "scripts share one shell, with one new start", test_same_shell);
    n = add_test(tests, n, "the time that a sink takes is no silence", test_slow_sink);
    n = add_test(tests, n, "a shell with nothing to do ends in order", test_idle_shell_ends);
    n = add_test(tests, n, "with a terminal COMMAND stays in our process group", test_terminal);
    n = add_test(tests, n, "without a terminal COMMAND leads its own session", test_session);
    n = add_test(tests, n, "closed standard streams are left alone", test_closed_streams);
    return run_all("transport/shell", tests, n);
}
