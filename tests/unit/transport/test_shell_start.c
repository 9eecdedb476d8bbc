/* Commands that lead to no shell, or to one behind a terminal: told apart by their first line. */
#include "tests/unit/transport/fixture.h"

#include "transport/shell.h"

struct silence {
    const char *name;
    const char *argv[4];
    double deadline_s;
    uint64_t idle_ns;
    enum sbx_status status;
    const char *says;
};

static const struct silence silences[] = {
    {"a command that reads and never answers is ended at the first-byte limit",
     {"sh", "-c", "cat >/dev/null"},
     20,
     SBX_NS_PER_S / 5,
     SBX_E_UNREACHABLE,
     "COMMAND answered nothing for 0 s (does it end in 'sh'?)"},
    {"a command that does not even read is ended at the first-byte limit",
     {"sleep", "60"},
     20,
     SBX_NS_PER_S / 5,
     SBX_E_UNREACHABLE,
     "COMMAND answered nothing"},
    {"a greeting is no answer",
     {"sh", "-c", "while echo welcome; do sleep 0.05; done"},
     20,
     SBX_NS_PER_S / 5,
     SBX_E_UNREACHABLE,
     "COMMAND answered with something else than a shell's output"},
    {"a deadline that comes first tells that nothing came",
     {"sleep", "60"},
     0.2,
     20 * (uint64_t)SBX_NS_PER_S,
     SBX_E_DEADLINE,
     "deadline passed: COMMAND answered nothing"},
    {"a command that gives back what it is sent is told from a shell",
     {"cat"},
     20,
     20 * (uint64_t)SBX_NS_PER_S,
     SBX_E_UNREACHABLE,
     "is there a -t in it?"},
    {"a terminal between us and the shell is seen by its echo",
     {"script", "-qc", "dash", "/dev/null"},
     20,
     20 * (uint64_t)SBX_NS_PER_S,
     SBX_E_UNREACHABLE,
     "is there a -t in it?"},
    {"an echo is seen however it is cut",
     {"sh", "-c", "dd bs=1 2>/dev/null"},
     20,
     20 * (uint64_t)SBX_NS_PER_S,
     SBX_E_UNREACHABLE,
     "is there a -t in it?"},
};

static void test_silence(void **state)
{
    struct fixture *f = *state;
    const struct silence *row = f->row;
    struct sbx_call call = call_within(f, row->deadline_s);
    struct sbx_shell shell = SBX_SHELL_INIT;
    const char *argv[5] = {NULL};
    struct sbx_exit ended;
    enum sbx_status st;

    memcpy(argv, row->argv, sizeof(row->argv));
    call.idle_ns = row->idle_ns;
    shell.argv = argv;
    shell.starts_left = 1;
    shell.hint = "does it end in 'sh'?";
    st = sbx_shell_run(&shell, &call, "echo hi", 7, 0, to_buf(&f->out), to_buf(&f->diag), &ended,
                       &f->err);
    sbx_shell_end(&shell);
    if (st != row->status)
        fail_msg("status %d: %s", (int)st, f->err.msg);
    assert_has(f->err.msg, row->says);
}

static void test_silent_script(void **state)
{
    static const char *const argv[] = {"sh", NULL};
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    struct sbx_shell shell = SBX_SHELL_INIT;
    struct sbx_exit ended;
    enum sbx_status st;

    call.idle_ns = SBX_NS_PER_S / 2;
    shell.argv = argv;
    shell.starts_left = 1;
    st = sbx_shell_run(&shell, &call, "sleep 1.2; echo hi", 18, 0, to_buf(&f->out),
                       to_buf(&f->diag), &ended, &f->err);
    sbx_shell_end(&shell);
    if (st)
        fail_msg("%s", f->err.msg);
    assert_text(&f->out, "hi\n\n");
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(silences) + 1];
    size_t n = 0;

    n = add_rows(tests, n, ROWS(silences), test_silence);
    n = add_test(tests, n, "a script may be silent for longer than a first byte takes",
                 test_silent_script);
    return run_all("transport/shell_start", tests, n);
}
