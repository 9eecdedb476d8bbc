/* What execd's last event says about how a command ended. */
#include "tests/unit/transport/events.h"

#define MAX_TESTS 128
#define NO_REASON "no reason was given"
#define LONG_NUMBER                                                                                \
    "99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999"

static const struct row {
    const char *name;
    const char *evalue, *traceback; /* as in JSON */
    enum sbx_exit_kind kind;
    int code;
    const char *why;
} rows[] = {
    {"exit status 0", "0", "[\"exit status 0\"]", SBX_EXIT_EXITED, 0, NULL},
    {"exit status 255", "255", "[\"exit status 255\"]", SBX_EXIT_EXITED, 255, NULL},
    {"exit status 256 is none", "256", "null", SBX_EXIT_UNKNOWN, 0, "256"},
    {"a status that overflows", LONG_NUMBER, "null", SBX_EXIT_UNKNOWN, 0, LONG_NUMBER},
    {"a status that would wrap round", "4294967299", "null", SBX_EXIT_UNKNOWN, 0, "4294967299"},
    {"exit status 124 is a status", "124", "[\"exit status 124\"]", SBX_EXIT_EXITED, 124, NULL},
    {"a status with a sign", "+3", "null", SBX_EXIT_UNKNOWN, 0, "+3"},
    {"a status after a blank", " 3", "null", SBX_EXIT_UNKNOWN, 0, " 3"},
    {"a status before a newline", "3\\n", "null", SBX_EXIT_UNKNOWN, 0, "3\\x0a"},
    {"a status before NUL", "3\\u0000", "null", SBX_EXIT_UNKNOWN, 0, "3\\x00"},
    {"a fraction", "3.0", "null", SBX_EXIT_UNKNOWN, 0, "3.0"},
    {"minus zero", "-0", "null", SBX_EXIT_UNKNOWN, 0, "-0"},
    {"minus two", "-2", "[\"signal: killed\"]", SBX_EXIT_UNKNOWN, 0, "-2"},
    {"minus one and more", "-1x", "[\"signal: killed\"]", SBX_EXIT_UNKNOWN, 0, "-1x"},
    {"minus ten", "-10", "[\"signal: killed\"]", SBX_EXIT_UNKNOWN, 0, "-10"},
    {"a minus alone", "-", "null", SBX_EXIT_UNKNOWN, 0, "-"},
    {"no evalue to speak of", "", "null", SBX_EXIT_UNKNOWN, 0, NO_REASON},
    {"signal: hangup", "-1", "[\"signal: hangup\"]", SBX_EXIT_SIGNALLED, 1, NULL},
    {"signal: interrupt", "-1", "[\"signal: interrupt\"]", SBX_EXIT_SIGNALLED, 2, NULL},
    {"signal: quit", "-1", "[\"signal: quit\"]", SBX_EXIT_SIGNALLED, 3, NULL},
    {"signal: an illegal instruction", "-1", "[\"signal: illegal instruction\"]",
     SBX_EXIT_SIGNALLED, 4, NULL},
    {"signal: a trap", "-1", "[\"signal: trace/breakpoint trap\"]", SBX_EXIT_SIGNALLED, 5, NULL},
    {"signal: abort", "-1", "[\"signal: aborted\"]", SBX_EXIT_SIGNALLED, 6, NULL},
    {"signal: a bus error", "-1", "[\"signal: bus error\"]", SBX_EXIT_SIGNALLED, 7, NULL},
    {"signal: a floating point exception", "-1", "[\"signal: floating point exception\"]",
     SBX_EXIT_SIGNALLED, 8, NULL},
    {"signal: kill", "-1", "[\"signal: killed\"]", SBX_EXIT_SIGNALLED, 9, NULL},
    {"signal: user signal 1", "-1", "[\"signal: user defined signal 1\"]", SBX_EXIT_SIGNALLED, 10,
     NULL},
    {"signal: a segmentation fault", "-1", "[\"signal: segmentation fault\"]", SBX_EXIT_SIGNALLED,
     11, NULL},
    {"signal: user signal 2", "-1", "[\"signal: user defined signal 2\"]", SBX_EXIT_SIGNALLED, 12,
     NULL},
    {"signal: a broken pipe", "-1", "[\"signal: broken pipe\"]", SBX_EXIT_SIGNALLED, 13, NULL},
    {"signal: an alarm", "-1", "[\"signal: alarm clock\"]", SBX_EXIT_SIGNALLED, 14, NULL},
    {"signal: termination", "-1", "[\"signal: terminated\"]", SBX_EXIT_SIGNALLED, 15, NULL},
    {"signal: a signal without a name", "-1", "[\"signal: signal 24\"]", SBX_EXIT_SIGNALLED, 24,
     NULL},
    {"signal: the last signal", "-1", "[\"signal: signal 64\"]", SBX_EXIT_SIGNALLED, 64, NULL},
    {"a signal and a core", "-1", "[\"signal: segmentation fault (core dumped)\"]",
     SBX_EXIT_SIGNALLED, 11, NULL},
    {"a signal without a name and a core", "-1", "[\"signal: signal 31 (core dumped)\"]",
     SBX_EXIT_SIGNALLED, 31, NULL},
    {"a signal beyond the last", "-1", "[\"signal: signal 65\"]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"a signal that is not known", "-1", "[\"signal: dropped\"]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"the beginning of a signal's text", "-1", "[\"signal: kill\"]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"a signal's text and more", "-1", "[\"signal: killed it\"]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"a signal's text alone", "-1", "[\"killed\"]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"a signal's text after another word", "-1", "[\"notice: killed\"]", SBX_EXIT_SIGNALLED, 0,
     NULL},
    {"-1 with a traceback of null", "-1", "null", SBX_EXIT_SIGNALLED, 0, NULL},
    {"-1 with an empty traceback", "-1", "[]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"-1 with a traceback of numbers", "-1", "[9]", SBX_EXIT_SIGNALLED, 0, NULL},
    {"-1 with a traceback that is a text", "-1", "\"signal: killed\"", SBX_EXIT_SIGNALLED, 0, NULL},
    {"-1 is no proof of a deadline", "-1", "[\"context deadline exceeded\"]", SBX_EXIT_SIGNALLED, 0,
     NULL},
    {"a deadline", "context deadline exceeded", "[\"context deadline exceeded\"]",
     SBX_EXIT_DEADLINE, 124, NULL},
    {"a deadline in a longer text", "wait: context deadline exceeded (x)", "null",
     SBX_EXIT_DEADLINE, 124, NULL},
    {"a status beside a deadline", "7", "[\"context deadline exceeded\"]", SBX_EXIT_EXITED, 7,
     NULL},
    {"a cancelled context is no deadline", "context canceled", "null", SBX_EXIT_UNKNOWN, 0,
     "context canceled"},
    {"a deadline of another kind", "i/o timeout: deadline exceeded", "null", SBX_EXIT_UNKNOWN, 0,
     "i/o timeout: deadline exceeded"},
    {"what could not be started", "fork/exec /usr/bin/bash: argument list too long",
     "[\"fork/exec /usr/bin/bash: argument list too long\"]", SBX_EXIT_UNKNOWN, 0,
     "fork/exec /usr/bin/bash: argument list too long"},
    {"what could not be started, and a traceback of null",
     "fork/exec /usr/bin/bash: resource temporarily unavailable", "null", SBX_EXIT_UNKNOWN, 0,
     "fork/exec /usr/bin/bash: resource temporarily unavailable"},
    {"what could not be waited for", "waitid: no child processes",
     "[\"waitid: no child processes\"]", SBX_EXIT_UNKNOWN, 0, "waitid: no child processes"},
    {"a reason that a terminal would obey", "\\u001b[2J\\r", "null", SBX_EXIT_UNKNOWN, 0,
     "\\x1b[2J\\x0d"},
    {"a reason that holds a secret", "bad s3cret-t0ken!", "null", SBX_EXIT_UNKNOWN, 0, "bad ***!"},
};

static void check(void **state)
{
    const struct row *row = *state;
    const struct wanted want = {
        .out = "a\n", .ended = true, .exit = {row->kind, row->code}, .why = row->why, .id = ID};

    sbx_buf_clear(&fx.body);
    assert_int_equal(
        sbx_buf_printf(&fx.body, NULL,
                       INIT OUT("a") "{\"type\":\"error\",\"timestamp\":1,\"error\":"
                                     "{\"ename\":\"CommandExecError\",\"evalue\":\"%s\","
                                     "\"traceback\":%s}}\n\n" END,
                       row->evalue, row->traceback),
        SBX_OK);
    check_stream(fx.body.data, fx.body.len, &want);
}

/* Errors that are not as execd makes them. */
static const struct odd_row {
    const char *name;
    const char *stream;
    enum sbx_exit_kind kind;
    int code;
    const char *why;
} odds[] = {
    {"an error without an error", "{\"type\":\"error\"}\n", SBX_EXIT_UNKNOWN, 0, NO_REASON},
    {"an error that is null", "{\"type\":\"error\",\"error\":null}\n", SBX_EXIT_UNKNOWN, 0,
     NO_REASON},
    {"an error that is a text", "{\"type\":\"error\",\"error\":\"3\"}\n", SBX_EXIT_UNKNOWN, 0,
     NO_REASON},
    {"an error that is a list", "{\"type\":\"error\",\"error\":[\"3\"]}\n", SBX_EXIT_UNKNOWN, 0,
     NO_REASON},
    {"an error without an evalue", "{\"type\":\"error\",\"error\":{}}\n", SBX_EXIT_UNKNOWN, 0,
     NO_REASON},
    {"an evalue that is a number", "{\"type\":\"error\",\"error\":{\"evalue\":3}}\n",
     SBX_EXIT_UNKNOWN, 0, NO_REASON},
    {"an evalue alone", "{\"type\":\"error\",\"error\":{\"evalue\":\"3\"}}\n", SBX_EXIT_EXITED, 3,
     NULL},
    {"-1 alone", "{\"type\":\"error\",\"error\":{\"evalue\":\"-1\"}}\n", SBX_EXIT_SIGNALLED, 0,
     NULL},
};

static void check_odd(void **state)
{
    const struct odd_row *row = *state;
    const struct wanted want = {
        .out = "", .ended = true, .exit = {row->kind, row->code}, .why = row->why};

    check_stream(row->stream, strlen(row->stream), &want);
}

static void the_first_end_counts(void **state)
{
    static const char error[] = "{\"type\":\"error\",\"error\":{\"evalue\":\"\"}}\n";
    static const char complete[] = END;
    char stream[512];
    const struct wanted done = {.out = "", .ended = true, .exit = {SBX_EXIT_EXITED, 0}};
    const struct wanted failed = {.out = "", .ended = true, .why = NO_REASON};

    (void)state;
    (void)snprintf(stream, sizeof(stream), "%s%s", complete, error);
    check_stream(stream, strlen(stream), &done);
    (void)snprintf(stream, sizeof(stream), "%s%s", error, complete);
    check_stream(stream, strlen(stream), &failed);
}

static void a_long_reason_is_cut(void **state)
{
    (void)state;
    begin();
    sbx_buf_clear(&fx.body);
    assert_int_equal(
        sbx_buf_printf(&fx.body, NULL,
                       "{\"type\":\"error\",\"error\":{\"evalue\":\"why %0100000d\"}}\n", 0),
        SBX_OK);
    assert_int_equal(feed(fx.body.data, fx.body.len), SBX_OK);
    assert_int_equal(fx.events.exit.kind, SBX_EXIT_UNKNOWN);
    assert_memory_equal(fx.events.why, "why 0000", 8);
    assert_in_range(strlen(fx.events.why), 200, sizeof(fx.events.why) - 1);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS] = {
        cmocka_unit_test(the_first_end_counts),
        cmocka_unit_test(a_long_reason_is_cut),
    };
    size_t n = 2;

    n = rows_add(tests, n, ROWS(rows), check);
    n = rows_add(tests, n, ROWS(odds), check_odd);
    return _cmocka_run_group_tests("ends of execd's commands", tests, n, group_setup,
                                   group_teardown);
}
