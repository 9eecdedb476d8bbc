#include "base/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "tests/support/rows.h"

struct row {
    const char *name;
    const char *bytes;
    size_t n;
    const char *text;  /* of sbx_quote() */
    const char *ascii; /* of sbx_quote_ascii(); NULL: the same */
};

#define BYTES(s) s, sizeof(s) - 1
static const struct row rows[] = {
    {"nothing stays nothing", BYTES(""), "", NULL},
    {"printable ASCII stays", BYTES(" !\"'%$`~az"), " !\"'%$`~az", NULL},
    {"a backslash is doubled", BYTES("a\\x41"), "a\\\\x41", NULL},
    {"a line end is escaped", BYTES("a\nb\r"), "a\\x0ab\\x0d", NULL},
    {"NUL is escaped", BYTES("a\0b"), "a\\x00b", NULL},
    {"an escape sequence is escaped", BYTES("\033[31m"), "\\x1b[31m", NULL},
    {"the last control of C0", BYTES("\x1f "), "\\x1f ", NULL},
    {"DEL is escaped", BYTES("~\x7f"), "~\\x7f", NULL},
    {"C1 is escaped byte by byte", BYTES("\xc2\x80\xc2\x9b\xc2\x9f"),
     "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f", NULL},
    {"U+00A0 is no control", BYTES("\xc2\xa0"), "\xc2\xa0", "\\xc2\\xa0"},
    {"letters outside ASCII", BYTES("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"),
     "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", "\\xc3\\xa9\\xe4\\xb8\\xad\\xf0\\x9f\\x98\\x80"},
    {"U+061C, the Arabic letter mark", BYTES("\xd8\x9c"), "\\xd8\\x9c", NULL},
    {"U+061B and U+061D beside it stay", BYTES("\xd8\x9b\xd8\x9d"), "\xd8\x9b\xd8\x9d",
     "\\xd8\\x9b\\xd8\\x9d"},
    {"U+200B to U+200F", BYTES("\xe2\x80\x8b\xe2\x80\x8f"), "\\xe2\\x80\\x8b\\xe2\\x80\\x8f", NULL},
    {"U+200A and U+2010 beside them stay", BYTES("\xe2\x80\x8a\xe2\x80\x90"),
     "\xe2\x80\x8a\xe2\x80\x90", "\\xe2\\x80\\x8a\\xe2\\x80\\x90"},
    {"U+2028 to U+202E, which reorder", BYTES("\xe2\x80\xa8\xe2\x80\xae"),
     "\\xe2\\x80\\xa8\\xe2\\x80\\xae", NULL},
    {"U+2027 and U+202F beside them stay", BYTES("\xe2\x80\xa7\xe2\x80\xaf"),
     "\xe2\x80\xa7\xe2\x80\xaf", "\\xe2\\x80\\xa7\\xe2\\x80\\xaf"},
    {"U+2060 to U+206F", BYTES("\xe2\x81\xa0\xe2\x81\xaf"), "\\xe2\\x81\\xa0\\xe2\\x81\\xaf", NULL},
    {"U+205F and U+2070 beside them stay", BYTES("\xe2\x81\x9f\xe2\x81\xb0"),
     "\xe2\x81\x9f\xe2\x81\xb0", "\\xe2\\x81\\x9f\\xe2\\x81\\xb0"},
    {"U+FEFF", BYTES("\xef\xbb\xbf"), "\\xef\\xbb\\xbf", NULL},
    {"a byte that is not UTF-8", BYTES("a\xff"), "a\\xff", NULL},
    {"a cut character", BYTES("\xe2\x82"), "\\xe2\\x82", NULL},
    {"an overlong slash", BYTES("\xc0\xaf"), "\\xc0\\xaf", NULL},
    {"a surrogate", BYTES("\xed\xa0\x80"), "\\xed\\xa0\\x80", NULL},
    {"what follows bad bytes is read again", BYTES("\xe2\x82\xc3\xa9"), "\\xe2\\x82\xc3\xa9",
     "\\xe2\\x82\\xc3\\xa9"},
};

static void quotes(void **state)
{
    const struct row *row = *state;
    char out[256];

    assert_ptr_equal(sbx_quote(out, sizeof(out), row->bytes, row->n), out);
    assert_string_equal(out, row->text);
    assert_ptr_equal(sbx_quote_ascii(out, sizeof(out), row->bytes, row->n), out);
    assert_string_equal(out, row->ascii ? row->ascii : row->text);
}

struct cut {
    const char *name;
    size_t cap;
    const char *bytes;
    const char *text;
};

static const struct cut cuts[] = {
    {"what fits exactly is not cut", 7, "abcdef", "abcdef"},
    {"one character too many is cut", 7, "abcdefg", "abc..."},
    {"an escape that fits exactly is kept", 6, "a\n", "a\\x0a"},
    {"an escape is not cut in the middle", 8, "ab\ncd", "ab..."},
    {"an escape before the dots stays whole", 9, "a\nbcdef", "a\\x0a..."},
    {"a doubled backslash is not cut in the middle", 7, "ab\\cdef", "ab..."},
    {"a character is not cut in the middle", 7, "ab\xc3\xa9xyz", "ab..."},
    {"dots alone remain", 4, "abcdef", "..."},
    {"without room for dots, what fits", 3, "abcdef", "ab"},
    {"room for the end alone", 1, "abc", ""},
};

static void is_cut(void **state)
{
    const struct cut *row = *state;
    char out[16];

    memset(out, '#', sizeof(out));
    (void)sbx_quote(out, row->cap, row->bytes, strlen(row->bytes));
    assert_string_equal(out, row->text);
    assert_int_equal(out[row->cap], '#');
}

/* Every text in every room is terminated, never longer than the room, and a whole prefix. */
static void cutting_never_breaks_anything(void **state SBX_UNUSED)
{
    static const char bytes[] = "a\n\\\xc3\xa9\xff\xe2\x80\xae z\t\\\\x\xf0\x9f\x98\x80";
    char full[128], out[128];

    (void)sbx_quote_ascii(full, sizeof(full), bytes, sizeof(bytes) - 1);
    for (size_t cap = 1; cap <= strlen(full) + 1; cap++) {
        size_t n;

        (void)sbx_quote_ascii(out, cap, bytes, sizeof(bytes) - 1);
        n = strlen(out);
        assert_true(n < cap);
        if (cap == strlen(full) + 1)
            assert_string_equal(out, full);
        else if (cap >= 4)
            assert_string_equal(out + n - 3, "...");
        n -= cap >= 4 && n < strlen(full) ? 3 : 0;
        assert_memory_equal(out, full, n);
    }
}

static void no_room_at_all_writes_nothing(void **state SBX_UNUSED)
{
    char out = '#';

    assert_string_equal(sbx_quote(&out, 0, "abc", 3), "");
    assert_int_equal(out, '#');
}

static void two_quotes_in_one_call_do_not_meet(void **state SBX_UNUSED)
{
    char out[64];

    (void)snprintf(out, sizeof(out), "%s %s", SBX_QUOTE("a\n"), SBX_QUOTE_N("bcd", 2));
    assert_string_equal(out, "a\\x0a bc");
}

struct word {
    const char *name;
    const char *bytes;
    const char *quoted;
};

static const struct word words[] = {
    {"sh: an empty word", "", "''"},
    {"sh: a plain word", "abc", "'abc'"},
    {"sh: a single quote", "it's", "'it'\\''s'"},
    {"sh: quotes at both ends and in a row", "'a''b'", "''\\''a'\\'''\\''b'\\'''"},
    {"sh: what a shell would expand", "$(id) `id` $HOME \\ \" * ? [a] ~ ! # & ; | < > ( ) { }",
     "'$(id) `id` $HOME \\ \" * ? [a] ~ ! # & ; | < > ( ) { }'"},
    {"sh: line ends and bytes that are no text", "a\nb\r\t\xff\033", "'a\nb\r\t\xff\033'"},
    {"sh: a leading dash", "-rf", "'-rf'"},
};

static void quotes_a_word(void **state)
{
    const struct word *row = *state;
    struct sbx_buf out = SBX_BUF_INIT(1000);
    char text[256] = "";
    enum sbx_status st = sbx_quote_sh(&out, row->bytes, strlen(row->bytes), NULL);

    if (!st)
        memcpy(text, out.data, out.len + 1);
    sbx_buf_done(&out);
    assert_int_equal(st, SBX_OK);
    assert_string_equal(text, row->quoted);
}

/* The shell's own opinion: the word comes back as the bytes that went in. */
static void a_shell_agrees(void **state)
{
    const struct word *row = *state;
    struct sbx_buf script = SBX_BUF_INIT(1000);
    char got[256] = "";
    int ends[2], status = -1;
    ssize_t n;
    pid_t pid;

    assert_int_equal(sbx_buf_str(&script, "printf %s ", NULL), SBX_OK);
    assert_int_equal(sbx_quote_sh(&script, row->bytes, strlen(row->bytes), NULL), SBX_OK);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], 1);
        (void)execl("/bin/sh", "sh", "-c", script.data, (char *)NULL);
        _exit(127);
    }
    sbx_buf_done(&script);
    (void)close(ends[1]);
    n = read(ends[0], got, sizeof(got) - 1);
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(n, strlen(row->bytes));
    assert_string_equal(got, row->bytes);
}

static void a_word_that_does_not_fit_leaves_nothing(void **state SBX_UNUSED)
{
    struct sbx_buf out = SBX_BUF_INIT(8);
    enum sbx_status nul, limit;
    int differs;

    assert_int_equal(sbx_buf_str(&out, "cd ", NULL), SBX_OK);
    limit = sbx_quote_sh(&out, "it's", 4, NULL);
    nul = sbx_quote_sh(&out, "a\0b", 3, NULL);
    differs = strcmp(out.data, "cd ") || out.len != 3;
    sbx_buf_done(&out);
    assert_int_equal(limit, SBX_E_LIMIT);
    assert_int_equal(nul, SBX_E_USAGE);
    assert_int_equal(differs, 0);
}

static void a_name_for_printf_holds_octal_escapes(void **state SBX_UNUSED)
{
    static const char bytes[] = "aZ_9./- %\\'\n\0"
                                "1\xff";
    struct sbx_buf out = SBX_BUF_INIT(64);

    assert_int_equal(sbx_quote_octal(&out, bytes, sizeof(bytes) - 1, NULL), SBX_OK);
    assert_string_equal(out.data, "aZ_9./-\\040\\045\\134\\047\\012\\0001\\377");
    assert_int_equal(out.len, sbx_quote_octal_len(bytes, sizeof(bytes) - 1));
    assert_int_equal(sbx_quote_octal(&out, bytes, sizeof(bytes) - 1, NULL), SBX_E_LIMIT);
    assert_int_equal(out.len, sbx_quote_octal_len(bytes, sizeof(bytes) - 1));
    sbx_buf_done(&out);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(rows) + N_ELEMENTS(cuts) + 2 * N_ELEMENTS(words) + 5] = {
        cmocka_unit_test(cutting_never_breaks_anything),
        cmocka_unit_test(no_room_at_all_writes_nothing),
        cmocka_unit_test(two_quotes_in_one_call_do_not_meet),
        cmocka_unit_test(a_word_that_does_not_fit_leaves_nothing),
        cmocka_unit_test(a_name_for_printf_holds_octal_escapes),
    };
    size_t n = rows_add(tests, 5, ROWS(rows), quotes);

    n = rows_add(tests, n, ROWS(cuts), is_cut);
    n = rows_add(tests, n, ROWS(words), quotes_a_word);
    n = rows_add(tests, n, ROWS(words), a_shell_agrees);
    return rows_run("quote", tests, n);
}
