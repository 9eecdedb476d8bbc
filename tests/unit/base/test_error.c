#include "base/error.h"

#include <errno.h>
#include <string.h>

#include "base/quote.h"
#include "tests/support/rows.h"

/* How much text a message takes. */
#define MSG_MAX (sizeof(((struct sbx_error *)0)->msg) - 1)

static void a_message_names_status_and_errno(void **state SBX_UNUSED)
{
    struct sbx_error err = {.step = "left over"};

    assert_int_equal(sbx_err_set(&err, SBX_E_HOST, ENOSPC, "write '%s'", "a.txt"), SBX_E_HOST);
    assert_int_equal(err.status, SBX_E_HOST);
    assert_int_equal(err.os_errno, ENOSPC);
    assert_string_equal(err.msg, "write 'a.txt': ENOSPC (No space left on device)");
    assert_string_equal(err.step, "");
}

static void without_errno_the_text_stands_alone(void **state SBX_UNUSED)
{
    struct sbx_error err = {.os_errno = EIO};

    assert_int_equal(sbx_err_set(&err, SBX_E_REMOTE, 0, "bad %d", 7), SBX_E_REMOTE);
    assert_int_equal(err.os_errno, 0);
    assert_string_equal(err.msg, "bad 7");
}

static void a_failed_call_is_the_step(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    assert_int_equal(sbx_err_host(&err, EACCES, "renameat", "'%s'", "a"), SBX_E_HOST);
    assert_string_equal(err.step, "renameat");
    assert_string_equal(err.msg, "renameat: 'a': EACCES (Permission denied)");
    assert_int_equal(sbx_err_host(&err, ENOMEM, "openat", "%s", ""), SBX_E_NOMEM);
    assert_string_equal(err.msg, "openat: ENOMEM (Cannot allocate memory)");
    assert_int_equal(err.status, SBX_E_NOMEM);
}

static void a_long_call_name_is_cut(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    (void)sbx_err_host(&err, EIO, "a_call_with_a_name_longer_than_a_step", "x");
    assert_int_equal(strlen(err.step), sizeof(err.step) - 1);
    assert_non_null(strstr(err.msg, "EIO"));
}

static void context_comes_before(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    (void)sbx_err_host(&err, EIO, "read", "'%s'", "b");
    assert_int_equal(sbx_err_wrap(&err, SBX_E_HOST, "under '%s'", "a"), SBX_E_HOST);
    assert_int_equal(sbx_err_wrap(&err, SBX_E_HOST, "publish"), SBX_E_HOST);
    assert_string_equal(err.msg, "publish: under 'a': read: 'b': EIO (Input/output error)");
    assert_string_equal(err.step, "read");
    assert_int_equal(err.os_errno, EIO);
}

static void context_of_nothing_stands_alone(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    assert_int_equal(sbx_err_wrap(&err, SBX_E_LIMIT, "listing"), SBX_E_LIMIT);
    assert_string_equal(err.msg, "listing");
    assert_int_equal(err.status, SBX_E_LIMIT);
}

static void nobody_to_tell_is_fine(void **state SBX_UNUSED)
{
    assert_int_equal(sbx_err_set(NULL, SBX_E_REMOTE, 0, "x"), SBX_E_REMOTE);
    assert_int_equal(sbx_err_host(NULL, EIO, "read", "x"), SBX_E_HOST);
    assert_int_equal(sbx_err_host(NULL, ENOMEM, "read", "x"), SBX_E_NOMEM);
    assert_int_equal(sbx_err_wrap(NULL, SBX_E_REMOTE, "x"), SBX_E_REMOTE);
    assert_int_equal(sbx_err_nomem(NULL), SBX_E_NOMEM);
}

static void a_message_may_quote_itself(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "inner");
    (void)sbx_err_set(&err, SBX_E_HOST, EIO, "outer (%s)", err.msg);
    assert_string_equal(err.msg, "outer (inner): EIO (Input/output error)");
    (void)sbx_err_wrap(&err, SBX_E_HOST, "%s", err.msg);
    assert_non_null(strstr(err.msg, "error): outer (inner): EIO"));
}

static void nothing_but_printable_ascii_is_kept(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "a\nb\033c\x7f%s", "\xc3\xa9");
    assert_string_equal(err.msg, "a?b?c???");
    (void)sbx_err_wrap(&err, SBX_E_REMOTE, "\t");
    assert_string_equal(err.msg, "?: a?b?c???");
}

static void a_long_message_keeps_its_errno(void **state SBX_UNUSED)
{
    static const char tail[] = "...: ENOSPC (No space left on device)";
    struct sbx_error err = {0};
    char text[600];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)sbx_err_set(&err, SBX_E_HOST, ENOSPC, "%s", text);
    assert_int_equal(strlen(err.msg), MSG_MAX);
    assert_string_equal(err.msg + MSG_MAX - strlen(tail), tail);
}

static void a_message_that_just_fits_is_whole(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};
    char text[MSG_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[MSG_MAX] = '\0';
    (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "%s", text);
    assert_string_equal(err.msg, text);
    text[MSG_MAX] = 'x';
    text[MSG_MAX + 1] = '\0';
    (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "%s", text);
    assert_int_equal(strlen(err.msg), MSG_MAX);
    assert_string_equal(err.msg + MSG_MAX - 4, "x...");
}

static void a_long_context_leaves_the_inner_message(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};
    char text[600];

    memset(text, 'c', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "the reason");
    (void)sbx_err_wrap(&err, SBX_E_REMOTE, "%s", text);
    assert_int_equal(strlen(err.msg), MSG_MAX);
    assert_non_null(strstr(err.msg, "ccc...: the reason"));
    /* And with a long inner message both are seen. */
    (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "the reason %s", text);
    (void)sbx_err_wrap(&err, SBX_E_REMOTE, "%s", text);
    assert_non_null(strstr(err.msg, "ccc...: the reason cc"));
}

/* Of every length, a message of escapes ends in a whole one. */
static void an_escape_is_never_cut(void **state SBX_UNUSED)
{
    for (size_t lead = 0; lead < 8; lead++) {
        struct sbx_error err = {0};
        char text[600] = "12345678";
        size_t n;

        for (size_t at = lead; at + 6 < sizeof(text); at += 6)
            memcpy(text + at, "\\x0a\\\\", 7);
        (void)sbx_err_set(&err, SBX_E_REMOTE, 0, "%s", text);
        n = strlen(err.msg);
        assert_in_range(n, MSG_MAX - 4, MSG_MAX);
        assert_string_equal(err.msg + n - 3, "...");
        n -= 3 + lead;
        assert_true(n % 6 == 0 || n % 6 == 4);
    }
}

struct name {
    const char *name;
    enum sbx_status status;
};

static const struct name names[] = {
    {"ok", SBX_OK},
    {"nomem", SBX_E_NOMEM},
    {"usage", SBX_E_USAGE},
    {"remote", SBX_E_REMOTE},
    {"limit", SBX_E_LIMIT},
    {"deadline", SBX_E_DEADLINE},
    {"cancelled", SBX_E_CANCELLED},
    {"host", SBX_E_HOST},
    {"busy", SBX_E_BUSY},
    {"unreachable", SBX_E_UNREACHABLE},
    {"unauthorised", SBX_E_UNAUTHORISED},
    {"gone", SBX_E_GONE},
    {"unknown", (enum sbx_status)(SBX_E_GONE + 1)},
    {"unknown", (enum sbx_status) - 1},
};

static void status_name(void **state)
{
    const struct name *row = *state;

    assert_string_equal(sbx_status_name(row->status), row->name);
}

static void errno_names(void **state SBX_UNUSED)
{
    struct sbx_error err = {0};

    assert_string_equal(sbx_errno_name(EXDEV), "EXDEV");
    assert_string_equal(sbx_errno_name(99999), "E?");
    (void)sbx_err_set(&err, SBX_E_HOST, 99999, "x");
    assert_string_equal(err.msg, "x: E? (unknown error)");
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(names) + 14] = {
        cmocka_unit_test(a_message_names_status_and_errno),
        cmocka_unit_test(without_errno_the_text_stands_alone),
        cmocka_unit_test(a_failed_call_is_the_step),
        cmocka_unit_test(a_long_call_name_is_cut),
        cmocka_unit_test(context_comes_before),
        cmocka_unit_test(context_of_nothing_stands_alone),
        cmocka_unit_test(nobody_to_tell_is_fine),
        cmocka_unit_test(a_message_may_quote_itself),
        cmocka_unit_test(nothing_but_printable_ascii_is_kept),
        cmocka_unit_test(a_long_message_keeps_its_errno),
        cmocka_unit_test(a_message_that_just_fits_is_whole),
        cmocka_unit_test(a_long_context_leaves_the_inner_message),
        cmocka_unit_test(an_escape_is_never_cut),
        cmocka_unit_test(errno_names),
    };
    size_t n = rows_add(tests, 14, ROWS(names), status_name);

    return rows_run("error", tests, n);
}
