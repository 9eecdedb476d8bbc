/* What a peer was sent is not shown when it sends it back. */
#include "tests/support/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "transport/secrets.h"

#define MAX_TESTS 64

static struct sbx_secrets secrets; /* owned */
static struct sbx_buf out;         /* owned */

static void clean(void)
{
    sbx_secrets_done(&secrets);
    sbx_buf_done(&out);
    out = SBX_BUF_INIT(256);
}

static const struct row {
    const char *name;
    const char *secrets[4];
    const char *in;
    const char *want;
} rows[] = {
    {"no secrets change nothing", {NULL}, "abc", "abc"},
    {"an empty text is no secret", {""}, "abc", "abc"},
    {"a secret in the middle", {"key"}, "a key b", "a *** b"},
    {"a secret at the start", {"key"}, "key b", "*** b"},
    {"a secret at the end", {"key"}, "a key", "a ***"},
    {"nothing but a secret", {"key"}, "key", "***"},
    {"a secret that stands many times", {"key"}, "key,keykey.key", "***,******.***"},
    {"a secret that was begun before", {"aab"}, "aaab", "a***"},
    {"a part of a secret is none", {"secret"}, "secre cret", "secre cret"},
    {"a secret that is cut by the end", {"secret"}, "a secre", "a secre"},
    {"other capitals are another text", {"key"}, "KEY", "KEY"},
    {"a secret of one byte", {"x"}, "axbx", "a***b***"},
    {"two secrets", {"one", "two"}, "two one", "*** ***"},
    {"the longer one is hidden, whichever came first",
     {"key", "keyring"},
     "keyring key",
     "*** ***"},
    {"the longer one is hidden, if it came first", {"keyring", "key"}, "keyring key", "*** ***"},
    {"a secret inside another", {"abcdef", "cd"}, "abcdef cd", "*** ***"},
    {"nothing is left of one that overlaps another", {"abcd", "cdefg"}, "xabcdefgy", "x***y"},
    {"a chain of overlaps is one", {"abc", "cde", "efg"}, "xabcdefgy", "x***y"},
    {"a secret that overlaps itself", {"aa"}, "baaaab", "b***b"},
    {"secrets side by side are two", {"ab", "cd"}, "abcd", "******"},
    {"a secret that looks like a pattern", {".*"}, "a.*b", "a***b"},
    {"a secret that was added twice", {"key", "key"}, "a key", "a ***"},
    {"a secret that is no UTF-8", {"\377\001"}, "a\377\001\377", "a***\377"},
    {"a secret that looks hidden", {"*"}, "a*", "a***"},
};

static void check(void **state)
{
    const struct row *row = *state;

    clean();
    for (size_t i = 0; i < 4 && row->secrets[i]; i++)
        assert_int_equal(sbx_secrets_add(&secrets, row->secrets[i], NULL), SBX_OK);
    assert_int_equal(sbx_buf_str(&out, "<", NULL), SBX_OK);
    assert_int_equal(sbx_secrets_redact(&secrets, row->in, strlen(row->in), &out, NULL), SBX_OK);
    assert_string_equal(out.data + 1, row->want);
}

static void bytes_may_hold_nul(void **state)
{
    (void)state;
    clean();
    assert_int_equal(sbx_secrets_add(&secrets, "key", NULL), SBX_OK);
    assert_int_equal(sbx_secrets_redact(&secrets, "\0key\0ke\0", 8, &out, NULL), SBX_OK);
    assert_int_equal(out.len, 8);
    assert_memory_equal(out.data, "\0***\0ke\0", 8);
}

static void only_n_bytes_are_read(void **state)
{
    static const char text[5] = {'.', '.', 'k', 'e', 'y'};

    (void)state;
    clean();
    assert_int_equal(sbx_secrets_add(&secrets, "key", NULL), SBX_OK);
    assert_int_equal(sbx_secrets_redact(&secrets, text, 4, &out, NULL), SBX_OK);
    assert_string_equal(out.data, "..ke");
}

static void no_set_is_an_empty_set(void **state)
{
    (void)state;
    clean();
    assert_int_equal(sbx_secrets_redact(NULL, "key", 3, &out, NULL), SBX_OK);
    assert_string_equal(out.data, "key");
    assert_int_equal(sbx_secrets_redact(&secrets, "", 0, &out, NULL), SBX_OK);
    assert_int_equal(out.len, 3);
}

static void the_text_is_copied(void **state)
{
    char text[] = "key";

    (void)state;
    clean();
    assert_int_equal(sbx_secrets_add(&secrets, text, NULL), SBX_OK);
    text[0] = 'x';
    assert_int_equal(sbx_secrets_redact(&secrets, "key xey", 7, &out, NULL), SBX_OK);
    assert_string_equal(out.data, "*** xey");
}

static void a_result_beyond_the_buffer_is_a_limit(void **state)
{
    (void)state;
    clean();
    out.max = 4;
    assert_int_equal(sbx_secrets_add(&secrets, "k", NULL), SBX_OK);
    assert_int_equal(sbx_secrets_redact(&secrets, "ak", 2, &out, NULL), SBX_OK);
    sbx_buf_clear(&out);
    assert_int_equal(sbx_secrets_redact(&secrets, "abk", 3, &out, NULL), SBX_E_LIMIT);
}

static void the_longest_come_first_and_are_bounded_in_number(void **state)
{
    struct sbx_error err = {.status = SBX_OK};
    enum sbx_status st = SBX_OK;
    char text[16];
    size_t n;

    (void)state;
    clean();
    for (n = 0; n < 10000 && !st; n++) {
        (void)snprintf(text, sizeof(text), "%zu", n * 37 % 1000);
        st = sbx_secrets_add(&secrets, text, &err);
    }
    assert_int_equal(st, SBX_E_LIMIT);
    for (n = 1; n < secrets.n; n++)
        assert_true(strlen(secrets.texts[n]) <= strlen(secrets.texts[n - 1]));
}

static void done_twice_is_done(void **state)
{
    (void)state;
    clean();
    assert_int_equal(sbx_secrets_add(&secrets, "key", NULL), SBX_OK);
    sbx_secrets_done(&secrets);
    sbx_secrets_done(&secrets);
    assert_int_equal(secrets.n, 0);
    assert_null(secrets.texts);
    assert_int_equal(sbx_secrets_add(&secrets, "key", NULL), SBX_OK);
    assert_int_equal(secrets.n, 1);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TESTS] = {
        cmocka_unit_test(bytes_may_hold_nul),
        cmocka_unit_test(only_n_bytes_are_read),
        cmocka_unit_test(no_set_is_an_empty_set),
        cmocka_unit_test(the_text_is_copied),
        cmocka_unit_test(a_result_beyond_the_buffer_is_a_limit),
        cmocka_unit_test(the_longest_come_first_and_are_bounded_in_number),
        cmocka_unit_test(done_twice_is_done),
    };
    size_t n = rows_add(tests, 7, ROWS(rows), check);
    int rc = rows_run("secrets", tests, n);

    clean();
    return rc;
}
