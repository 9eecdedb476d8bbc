/* What execd was recorded to answer to commands (fixtures/http/execd), and what it and others may
 * answer besides, delivered in all splits. */
#include "tests/unit/transport/events.h"

#include <signal.h>
#include <stdlib.h>

#define MAX_TESTS 128

#define DONE                                                                                       \
    {                                                                                              \
        SBX_EXIT_EXITED, 0                                                                         \
    }

static const struct recorded_row {
    const char *name;
    const char *file;
    struct wanted want;
} recorded[] = {
    {"recorded: output",
     "hello",
     {.out = "hello\n", .ended = true, .exit = DONE, .id = "5ee1a7d4450e4b92a5fc1889cfb5b49e"}},
    {"recorded: a body without chunks",
     "hello_http10",
     {.out = "hello\n", .ended = true, .exit = DONE, .id = "516324af73874e34a84f05beab660af5"}},
    {"recorded: an interim answer first",
     "hello_expect",
     {.out = "hello\n", .ended = true, .exit = DONE}},
    {"recorded: no output", "no_output", {.out = "", .ended = true, .exit = DONE}},
    {"recorded: a background command", "background", {.out = "", .ended = true, .exit = DONE}},
    {"recorded: exit status 3",
     "exit3",
     {.out = "before\n", .ended = true, .exit = {SBX_EXIT_EXITED, 3}}},
    {"recorded: a child that was killed",
     "child_killed",
     {.out = "",
      .diag = "bash: line 1: 15312 Killed                  sh -c \"kill -9 \\$\\$\"\n",
      .ended = true,
      .exit = {SBX_EXIT_EXITED, 137}}},
    {"recorded: killed",
     "sigkill",
     {.out = "before\n", .ended = true, .exit = {SBX_EXIT_SIGNALLED, SIGKILL}}},
    {"recorded: killed at the time limit, which looks the same",
     "timeout",
     {.out = "before\n", .ended = true, .exit = {SBX_EXIT_SIGNALLED, SIGKILL}}},
    {"recorded: interrupted",
     "deleted",
     {.out = "before\n", .ended = true, .exit = {SBX_EXIT_SIGNALLED, SIGTERM}}},
    {"recorded: SIGPIPE of its own",
     "sigpipe",
     {.out = "before\n", .ended = true, .exit = {SBX_EXIT_SIGNALLED, SIGPIPE}}},
    {"recorded: SIGPIPE because of another client",
     "sigpipe_bystander",
     {.out = "before\n", .ended = true, .exit = {SBX_EXIT_SIGNALLED, SIGPIPE}}},
    {"recorded: SIGPIPE ignored",
     "sigpipe_ignored",
     {.out = "before\nafter\n", .ended = true, .exit = DONE}},
    {"recorded: no shell",
     "no_shell",
     {.out = "",
      .ended = true,
      .why = "exec: \"sh\": executable file not found in $PATH",
      .id = "058d56ce621e4e199522edd6e0380953"}},
    {"recorded: a last line without its end, and a late ping",
     "no_newline",
     {.out = "first\nno newline at end\n", .ended = true, .exit = DONE}},
    {"recorded: CR, LF, and empty lines",
     "crlf",
     {.out = "a\nb\nc\n\n\n\nlast\n", .ended = true, .exit = DONE}},
    {"recorded: a ping between lines",
     "slow",
     {.out = "1\n2\n3\n4\n", .ended = true, .exit = DONE}},
    {"recorded: standard error among standard output",
     "stderr_mixed",
     {.out = "out1\nout2\nout3\n", .diag = "err1\nerr2\nerr3\n", .ended = true, .exit = DONE}},
    {"recorded: bytes that are no UTF-8",
     "invalid_utf8",
     {.out = "ok \303\251 bad \357\277\275\357\277\275 cut \357\277\275\n"
             "\357\277\275\357\277\275\357\277\275 surrogate\n",
      .ended = true,
      .exit = DONE}},
    {"recorded: NUL, control characters and markup",
     "nul_control",
     {.out = "a\0b\1\b\f\33\177\t<&>\342\200\250\302\205 end\n",
      .out_len = 22,
      .ended = true,
      .exit = DONE}},
    {"recorded: an empty line first",
     "list_missing",
     {.out = "\n7f3c1e0a9b5d4826ac11f0e2d3c4b5a6 begin root=missing\n",
      .ended = true,
      .exit = DONE}},
};

/* Appends the chunks' data. */
static void unchunk(const char *from, struct sbx_buf *to)
{
    char *data;
    size_t n;

    while ((n = strtoul(from, &data, 16)) > 0) { /* banned-ok: a recording of our own */
        assert_memory_equal(data, "\r\n", 2);
        assert_int_equal(sbx_buf_add(to, data + 2, n, NULL), SBX_OK);
        from = data + 2 + n + 2;
    }
}

/* Reads the body of a recorded answer into fx.body. */
static void read_body(const char *name)
{
    static char text[64 * 1024];
    const char *head = text, *body;
    char path[512];
    FILE *file;
    size_t n;

    (void)snprintf(path, sizeof(path), "%s/http/execd/%s.http", FIXTURES, name);
    file = fopen(path, "rbe");
    assert_non_null(file);
    n = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    if (strncmp(head, "HTTP/1.1 100", 12) == 0)
        head = strstr(head, "\r\n\r\n") + 4;
    body = strstr(head, "\r\n\r\n") + 4;
    sbx_buf_clear(&fx.body);
    if (memmem(head, (size_t)(body - head), "chunked", 7))
        unchunk(body, &fx.body);
    else
        assert_int_equal(sbx_buf_add(&fx.body, body, n - (size_t)(body - text), NULL), SBX_OK);
    assert_true(fx.body.len > 100);
}

static void check_recorded(void **state)
{
    const struct recorded_row *row = *state;

    read_body(row->file);
    check_stream(fx.body.data, fx.body.len, &row->want);
    assert_int_equal(strlen(fx.events.id), SBX_EXECD_ID);
}

/* Without its last event nobody knows how a command ended. */
static void check_recorded_in_part(void **state)
{
    const struct recorded_row *row = *state;
    size_t last = 0;

    read_body(row->file);
    for (size_t i = 0; i + 10 < fx.body.len; i++)
        if (memcmp(fx.body.data + i, "\"error\":{", 9) == 0 ||
            memcmp(fx.body.data + i, "execution_", 10) == 0)
            last = i;
    assert_true(last > 0);
    for (size_t n = 0; n <= last; n++) {
        begin();
        assert_int_equal(feed(fx.body.data, n), SBX_OK);
        assert_false(fx.events.ended);
        assert_int_equal(fx.events.exit.kind, SBX_EXIT_UNKNOWN);
    }
}

/* Streams that end well. */
static const struct form_row {
    const char *name;
    const char *stream;
    const char *out, *diag;
} forms[] = {
    {"a bare object a line", INIT OUT("a") END, "a\n", ""},
    {"lines that begin with data:",
     "data:{\"type\":\"stdout\",\"text\":\"a\"}\n\ndata:{\"type\":\"execution_complete\"}\n\n",
     "a\n", ""},
    {"data: and a blank", "data: " OUT("a") "data: " END, "a\n", ""},
    {"lines of both forms", OUT("a") "data: " OUT("b") END, "a\nb\n", ""},
    {"one line end between events",
     "{\"type\":\"stdout\",\"text\":\"a\"}\n{\"type\":\"execution_complete\"}\n", "a\n", ""},
    {"CRLF",
     "data: {\"type\":\"stdout\",\"text\":\"a\"}\r\n\r\n{\"type\":\"execution_complete\"}\r\n\r\n",
     "a\n", ""},
    {"comments and other fields",
     ":\n: keep-alive\nevent: stdout\nid: 7\nretry: 100\ndata: " OUT(
         "a") "event:x\nid:\nretry:\n" END,
     "a\n", ""},
    {"data: without anything", "data:\ndata: \n\n" END, "", ""},
    {"keys in another order, and more of them",
     "{\"timestamp\":-1.5e3,\"text\":\"a\",\"results\":{\"x\":[null]},\"type\":\"stdout\"}\n" END,
     "a\n", ""},
    {"blanks in and around an object", " { \"type\" : \"stdout\" , \"text\" : \"a\" } \t\n" END,
     "a\n", ""},
    {"types that are not known",
     "{\"type\":\"status\",\"text\":\"x\"}\n{\"type\":\"\",\"text\":\"x\"}\n{\"type\":\"STDOUT\","
     "\"text\":\"x\"}\n"
     "{\"type\":\"stdout\\u0000\",\"text\":\"x\"}\n" END,
     "", ""},
    {"no text at all is an empty line", "{\"type\":\"stdout\"}\n{\"type\":\"stderr\"}\n" END, "\n",
     "\n"},
    {"an empty line is a text of LF", OUT("\\n") OUT("a") OUT("\\n") DIAG("\\n") DIAG("b") END,
     "\na\n\n", "\nb\n"},
    {"a text that ends in LF gets no second one", OUT("a\\n") OUT("b\\nc") DIAG("d\\n") END,
     "a\nb\nc\n", "d\n"},
    {"a text that ends in CR gets its LF", OUT("a\\r") END, "a\r\n", ""},
    {"escapes", OUT("\\u003c\\/\\u0041\\ud83d\\ude00\\\"\\\\") END, "</A\360\237\230\200\"\\\n",
     ""},
    {"other bytes stay", OUT("\303\251\177\302\205") END, "\303\251\177\302\205\n", ""},
    {"a text of another type is none", "{\"type\":\"stdout\",\"text\":7}\n" END, "\n", ""},
    {"what comes after the end does not count", OUT("a") END OUT("b") DIAG("c") INIT "x\n", "a\n",
     ""},
    {"output before init", OUT("a") INIT END, "a\n", ""},
    {"a secret on standard error",
     DIAG("a s3cret-t0ken b") DIAG("s3cret-\\u00740ken") DIAG("s3cret-") END, "",
     "a *** b\n***\ns3cret-\n"},
    {"standard output is data", OUT("s3cret-t0ken") END, "s3cret-t0ken\n", ""},
    {"an object nested 32 deep",
     "{\"type\":\"x\",\"results\":"
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
     "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "}\n" END,
     "", ""},
};

static void check_form(void **state)
{
    const struct form_row *row = *state;
    const struct wanted want = {.out = row->out, .diag = row->diag, .ended = true, .exit = DONE};

    check_stream(row->stream, strlen(row->stream), &want);
}

static const struct id_row {
    const char *name;
    const char *stream;
    const char *id;
} ids[] = {
    {"pings mean nothing",
     "{\"type\":\"ping\",\"text\":\"pong\"}\n\n" INIT "{\"type\":\"ping\"}\n" END, ID},
    {"an id", INIT END, ID},
    {"a second init does not count",
     INIT "{\"type\":\"init\",\"text\":\"ffffffffffffffffffffffffffffffff\"}\n" END, ID},
    {"nor does it after a first one without such an id",
     "{\"type\":\"init\",\"text\":\"x\"}\n" INIT END, ""},
    {"an id that is too long", "{\"type\":\"init\",\"text\":\"" ID "0\"}\n" END, ""},
    {"an id that is too short",
     "{\"type\":\"init\",\"text\":\"123456789abcdef0123456789abcdef\"}\n" END, ""},
    {"an id in capitals", "{\"type\":\"init\",\"text\":\"0123456789ABCDEF0123456789ABCDEF\"}\n" END,
     ""},
    {"an id with a slash",
     "{\"type\":\"init\",\"text\":\"0123456789abcde/0123456789abcdef\"}\n" END, ""},
    {"an id with NUL",
     "{\"type\":\"init\",\"text\":\"0123456789abcde\\u00000123456789abcdef\"}\n" END, ""},
};

static void check_id(void **state)
{
    const struct id_row *row = *state;
    const struct wanted want = {.out = "", .ended = true, .exit = DONE, .id = row->id};

    check_stream(row->stream, strlen(row->stream), &want);
}

static const struct bad_row {
    const char *name;
    const char *stream;
    const char *out; /* of what stands before it */
    const char *message;
} bads[] = {
    {"an error of execd in place of an event",
     OUT("a") "{\"code\":\"RUNTIME_ERROR\",\"message\":\"no \\u001b[1m luck\"}\n" END, "a\n",
     "execd: no \\x1b[1m luck"},
    {"an error of execd that holds a secret", "{\"code\":\"X\",\"message\":\"bad s3cret-t0ken\"}\n",
     "", "execd: bad ***"},
    {"an error of execd after data:", "data: {\"code\":\"X\",\"message\":\"m\"}\n", "", "execd: m"},
    {"an error of execd with a code alone", "{\"code\":\"UNKNOWN\"}\n", "", "execd: UNKNOWN"},
    {"refused: an object that is no event", OUT("a") "{\"text\":\"x\"}\n" END, "a\n",
     "the command's events: "},
    {"refused: an event whose type is no text", OUT("a") "{\"type\":1}\n" END, "a\n",
     "the command's events: "},
    {"refused: an array", OUT("a") "[]\n" END, "a\n", "the command's events: "},
    {"refused: a text", OUT("a") "\"x\"\n" END, "a\n", "the command's events: "},
    {"refused: null", OUT("a") "null\n" END, "a\n", "the command's events: "},
    {"refused: a number", OUT("a") "1\n" END, "a\n", "the command's events: "},
    {"refused: no JSON", OUT("a") "hello\n" END, "a\n", "the command's events: "},
    {"refused: HTML", OUT("a") "<html>\n" END, "a\n", "the command's events: "},
    {"refused: half an object", OUT("a") "{\"type\":\"stdout\"\n" END, "a\n",
     "the command's events: "},
    {"refused: two objects on a line", OUT("a") "{\"type\":\"stdout\"}{\"type\":\"stdout\"}\n" END,
     "a\n", "the command's events: "},
    {"refused: one key twice",
     OUT("a") "{\"type\":\"stdout\",\"text\":\"a\",\"type\":\"stderr\"}\n" END, "a\n",
     "the command's events: "},
    {"refused: bytes that are no UTF-8", OUT("a") "{\"type\":\"stdout\",\"text\":\"\377\"}\n" END,
     "a\n", "the command's events: "},
    {"refused: half a surrogate pair", OUT("a") "{\"type\":\"stdout\",\"text\":\"\\ud800\"}\n" END,
     "a\n", "the command's events: "},
    {"refused: a raw control character", OUT("a") "{\"type\":\"stdout\",\"text\":\"\1\"}\n" END,
     "a\n", "the command's events: "},
    {"refused: a second CR at the end of a line", OUT("a") "data: \r\r\n" END, "a\n",
     "the command's events: "},
    {"refused: a field of no such name", OUT("a") "dat: {\"type\":\"stdout\"}\n" END, "a\n",
     "the command's events: "},
    {"refused: an object nested 33 deep",
     "{\"type\":\"stdout\",\"results\":"
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
     "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "}\n",
     "", "the command's events: "},
};

static void check_bad(void **state)
{
    const struct bad_row *row = *state;
    const struct wanted want = {.status = SBX_E_REMOTE, .out = row->out, .message = row->message};

    check_stream(row->stream, strlen(row->stream), &want);
    assert_null(strpbrk(fx.err.msg, "\n\r\033\1\377"));
}

static const struct open_row {
    const char *name;
    const char *stream;
    const char *out;
} opens[] = {
    {"nothing", "", ""},
    {"no end", INIT OUT("a"), "a\n"},
    {"an end without its line end", OUT("a") "{\"type\":\"execution_complete\"}", "a\n"},
};

static void check_open(void **state)
{
    const struct open_row *row = *state;
    const struct wanted want = {.out = row->out};

    check_stream(row->stream, strlen(row->stream), &want);
}

static void nothing_counts_after_the_end(void **state)
{
    const struct wanted want = {.out = "a\n", .ended = true, .exit = DONE, .id = ""};
    enum sbx_status st;

    (void)state;
    begin();
    assert_int_equal(feed(OUT("a") END, strlen(OUT("a") END)), SBX_OK);
    for (int i = 0; i < 1000; i++) {
        st = feed(OUT("b") DIAG("c") INIT "x\n", strlen(OUT("b") DIAG("c") INIT "x\n"));
        assert_wanted(&want, st);
    }
    assert_int_equal(fx.events.raw, strlen(OUT("a") END) - 1); /* the empty line is not read */
}

static void a_refusal_of_out_is_returned_and_one_of_diag_is_not(void **state)
{
    static const char stream[] = DIAG("x") OUT("") OUT("b") END;
    enum sbx_status st;

    (void)state;
    begin();
    fx.refuse = SBX_E_CANCELLED;
    st = feed(stream, strlen(stream));
    fx.refuse = SBX_OK;
    assert_int_equal(st, SBX_E_CANCELLED);
    assert_string_equal(fx.err.msg, "enough");
    assert_string_equal(fx.out.data, "\n");
    assert_false(fx.events.ended);
}

static void sinks_and_secrets_may_be_missing(void **state)
{
    static const char stream[] = OUT("a") DIAG("b") "{\"type\":\"error\",\"error\":"
                                                    "{\"evalue\":\"no " TOKEN "\"}}\n";
    struct sbx_sink none = {NULL, NULL};

    (void)state;
    begin();
    sbx_execd_events_init(&fx.events, none, none, NULL);
    assert_int_equal(feed(stream, strlen(stream)), SBX_OK);
    assert_true(fx.events.ended);
    assert_string_equal(fx.events.why, "no " TOKEN);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS] = {
        cmocka_unit_test(nothing_counts_after_the_end),
        cmocka_unit_test(a_refusal_of_out_is_returned_and_one_of_diag_is_not),
        cmocka_unit_test(sinks_and_secrets_may_be_missing),
    };
    size_t n = 3;

#define ADD(table, fn) n = rows_add(tests, n, ROWS(table), fn)
    ADD(recorded, check_recorded);
    ADD(recorded, check_recorded_in_part);
    ADD(forms, check_form);
    ADD(ids, check_id);
    ADD(bads, check_bad);
    ADD(opens, check_open);
    return _cmocka_run_group_tests("events of execd", tests, n, group_setup, group_teardown);
}
