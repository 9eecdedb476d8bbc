#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/rows.h"

/* What a test owns: a value that is built or parsed, a child, and the text. */
struct fixture {
    struct sbx_json *json, *child;
    struct sbx_buf text;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->json = sbx_json_object();
    f->child = sbx_json_array();
    f->text = SBX_BUF_INIT(1u << 22);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    sbx_json_freep(&f->json);
    sbx_json_freep(&f->json); /* twice is fine */
    sbx_json_freep(&f->child);
    sbx_buf_done(&f->text);
    free(f);
    return 0;
}

static void members_keep_their_order_and_types(void **state)
{
    struct fixture *f = *state;

    sbx_json_add_str(f->json, "z", "text");
    sbx_json_add_uint(f->json, "a", 7);
    sbx_json_add_bool(f->json, "yes", true);
    sbx_json_add_bool(f->json, "no", false);
    sbx_json_add_null(f->json, "none");
    sbx_json_add_str(f->child, NULL, "first");
    sbx_json_add_uint(f->child, NULL, INT64_MAX);
    sbx_json_add(f->json, "list", &f->child);
    assert_null(f->child);
    assert_int_equal(sbx_json_write(f->json, &f->text, NULL), SBX_OK);
    assert_string_equal(f->text.data,
                        "{\"z\":\"text\",\"a\":7,\"yes\":true,"
                        "\"no\":false,\"none\":null,\"list\":[\"first\",9223372036854775807]}");
}

static void text_is_written_as_printable_ascii(void **state)
{
    struct fixture *f = *state;

    sbx_json_add_bytes(f->json, "k", "\x7f\xc3\xa9\xf0\x9f\x98\x80\n\033\0\"\\\x7f\x7f", 14);
    assert_int_equal(sbx_json_write(f->json, &f->text, NULL), SBX_OK);
    assert_string_equal(f->text.data,
                        "{\"k\":\"\\u007f\\u00E9\\uD83D\\uDE00\\n\\u001B\\u0000\\\"\\\\\\u007f"
                        "\\u007f\"}");
}

static void a_text_longer_than_the_first_attempt(void **state)
{
    struct fixture *f = *state;
    char *long_text = malloc(100001);

    memset(long_text, 'x', 100000);
    long_text[100000] = '\0';
    sbx_json_add_str(f->json, "k", long_text);
    free(long_text);
    assert_int_equal(sbx_buf_str(&f->text, "before", NULL), SBX_OK);
    assert_int_equal(sbx_json_write(f->json, &f->text, NULL), SBX_OK);
    assert_int_equal(f->text.len, 6 + 6 + 100000 + 2);
    assert_memory_equal(f->text.data, "before{\"k\":\"x", 13);
    assert_string_equal(f->text.data + f->text.len - 3, "x\"}");
}

struct bad {
    const char *name;
    void (*build)(struct sbx_json *json);
};

static void build_latin1(struct sbx_json *json)
{
    sbx_json_add_str(json, "k", "\xe9");
}

static void build_surrogate(struct sbx_json *json)
{
    sbx_json_add_bytes(json, "k", "\xed\xa0\x80", 3);
}

static void build_overlong(struct sbx_json *json)
{
    sbx_json_add_bytes(json, "k", "\xc0\xaf", 2);
}

static void build_too_large(struct sbx_json *json)
{
    sbx_json_add_uint(json, "k", (uint64_t)INT64_MAX + 1);
}

static void build_no_child(struct sbx_json *json)
{
    struct sbx_json *none = NULL;

    sbx_json_add(json, "k", &none);
}

static void build_bad_child(struct sbx_json *json)
{
    struct sbx_json *child = sbx_json_object();

    build_latin1(child);
    sbx_json_add(json, "k", &child);
}

static void build_element_of_an_object(struct sbx_json *json)
{
    sbx_json_add_uint(json, NULL, 1);
}

static const struct bad bads[] = {
    {"a text that is not UTF-8 is remembered", build_latin1},
    {"a surrogate is remembered", build_surrogate},
    {"an overlong character is remembered", build_overlong},
    {"a number above 2^63 - 1 is remembered", build_too_large},
    {"a child that memory was refused for is remembered", build_no_child},
    {"a failure of a child is remembered", build_bad_child},
    {"an element without a key is remembered", build_element_of_an_object},
};

static void failure_is_remembered(void **state)
{
    const struct bad *row = *state;
    struct sbx_json *json = sbx_json_object();
    struct sbx_buf text = SBX_BUF_INIT(1000);
    struct sbx_error err = {0};
    enum sbx_status st;
    size_t len;

    row->build(json);
    sbx_json_add_bool(json, "later", true);
    st = sbx_json_write(json, &text, &err);
    len = text.len;
    sbx_json_freep(&json);
    sbx_buf_done(&text);
    assert_int_equal(st, SBX_E_NOMEM);
    assert_int_equal(err.status, SBX_E_NOMEM);
    assert_int_equal(len, 0);
}

static void building_on_nothing_is_told_at_the_end(void **state)
{
    struct fixture *f = *state;

    sbx_json_add_str(NULL, "k", "v");
    sbx_json_add(NULL, "k", &f->child);
    assert_null(f->child);
    assert_int_equal(sbx_json_write(NULL, &f->text, NULL), SBX_E_NOMEM);
}

/* In every room, the text is written whole or not at all. */
static void write_in_every_room(struct fixture *f, size_t whole)
{
    sbx_buf_clear(&f->text);
    f->text.max = 1;
    assert_int_equal(sbx_buf_str(&f->text, "#", NULL), SBX_OK);
    for (; f->text.max < 1 + whole; f->text.max++) {
        struct sbx_error err = {0};

        assert_int_equal(sbx_json_write(f->json, &f->text, &err), SBX_E_LIMIT);
        assert_int_equal(err.status, SBX_E_LIMIT);
        assert_int_equal(f->text.len, 1);
        assert_string_equal(f->text.data, "#");
    }
    assert_int_equal(sbx_json_write(f->json, &f->text, NULL), SBX_OK);
    assert_int_equal(f->text.len, 1 + whole);
}

static void a_limit_leaves_what_was_there(void **state)
{
    struct fixture *f = *state;

    sbx_json_add_str(f->json, "key", "plain");
    write_in_every_room(f, strlen("{\"key\":\"plain\"}"));
    sbx_json_add_str(f->json, "key", "\x7f\x7f");
    write_in_every_room(f, strlen("{\"key\":\"\\u007f\\u007f\"}"));
}

struct parse {
    const char *name;
    const char *text;
    size_t n;
    enum sbx_status status;
};

#define TEXT(s) s, sizeof(s) - 1
#define NEST8(open) open open open open open open open open
#define NEST32(open) NEST8(open) NEST8(open) NEST8(open) NEST8(open)
static const struct parse parses[] = {
    {"an object", TEXT("{\"a\":1}"), SBX_OK},
    {"white space around it", TEXT(" \t\r\n{ } \n"), SBX_OK},
    {"a lone value", TEXT("\"x\""), SBX_OK},
    {"an escaped NUL in a text", TEXT("{\"a\":\"\\u0000\"}"), SBX_OK},
    {"brackets in a text are no depth", TEXT("[\"" NEST32("[") NEST32("{") "\"]"), SBX_OK},
    {"an escaped quote does not end a text", TEXT("[\"\\\"" NEST32("[") NEST32("[") "\"]"), SBX_OK},
    {"an escaped backslash does not hide the end of a text",
     TEXT("[\"\\\\\"," NEST32("[") NEST32("]") "]"), SBX_E_REMOTE},
    {"the same key in two objects", TEXT("{\"a\":{\"a\":1}}"), SBX_OK},
    {"depth 32", TEXT(NEST32("[") NEST32("]")), SBX_OK},
    {"depth 33", TEXT("[" NEST32("[") NEST32("]") "]"), SBX_E_REMOTE},
    {"depth 33 of objects", TEXT("[" NEST32("{\"a\":") "1" NEST32("}") "]"), SBX_E_REMOTE},
    {"many shallow ones", TEXT("[" NEST32("[[]],") NEST32("[[]],") "[]]"), SBX_OK},
    {"a key twice", TEXT("{\"a\":1,\"b\":2,\"a\":1}"), SBX_E_REMOTE},
    {"a key twice, spelled in two ways", TEXT("{\"a\":1,\"\\u0061\":1}"), SBX_E_REMOTE},
    {"a key twice, deep down", TEXT("[{\"x\":{\"a\":1,\"a\":2}}]"), SBX_E_REMOTE},
    {"nothing", TEXT(""), SBX_E_REMOTE},
    {"two values", TEXT("{} {}"), SBX_E_REMOTE},
    {"a cut object", TEXT("{\"a\":1"), SBX_E_REMOTE},
    {"a NUL behind it", TEXT("{}\0"), SBX_E_REMOTE},
    {"a NUL in a text", TEXT("[\"\0\"]"), SBX_E_REMOTE},
    {"an escaped NUL in a key", TEXT("{\"a\\u0000b\":1}"), SBX_E_REMOTE},
    {"a trailing comma", TEXT("[1,]"), SBX_E_REMOTE},
    {"a text that is not UTF-8", TEXT("[\"\xff\"]"), SBX_E_REMOTE},
    {"half of a surrogate pair", TEXT("[\"\\ud800\"]"), SBX_E_REMOTE},
    {"a line end in a text", TEXT("[\"\n\"]"), SBX_E_REMOTE},
    {"an integer above 2^63 - 1", TEXT("[9223372036854775808]"), SBX_E_REMOTE},
    {"a real that is no number of ours", TEXT("[1e999]"), SBX_E_REMOTE},
    {"a single quote", TEXT("{'a':1}"), SBX_E_REMOTE},
    {"a comment", TEXT("/**/{}"), SBX_E_REMOTE},
    {"a byte order mark", TEXT("\xef\xbb\xbf{}"), SBX_E_REMOTE},
};

static void parses_or_refuses(void **state)
{
    const struct parse *row = *state;
    struct sbx_json *json = NULL;
    struct sbx_error err = {0};
    char *exact = malloc(row->n ? row->n : 1); /* a sanitizer watches its end */
    enum sbx_status st;
    bool given;

    memcpy(exact, row->text, row->n);
    st = sbx_json_parse(exact, row->n, &json, &err);
    given = json != NULL;
    sbx_json_freep(&json);
    free(exact);
    assert_int_equal(st, row->status);
    assert_int_equal(err.status, row->status);
    assert_int_equal(given, row->status == SBX_OK);
}

static void a_million_brackets_are_no_danger(void **state)
{
    struct fixture *f = *state;
    struct sbx_json *json = NULL;

    assert_int_equal(sbx_buf_reserve(&f->text, 1000000, NULL), SBX_OK);
    memset(f->text.data, '[', 1000000);
    assert_int_equal(sbx_json_parse(f->text.data, 1000000, &json, NULL), SBX_E_REMOTE);
    assert_null(json);
}

static void members_are_found_by_key_and_type(void **state)
{
    static const char text[] = "{\"s\":\"a\\u0000b\",\"u\":7,\"i\":-7,\"b\":true,\"n\":null,"
                               "\"r\":1.5,\"o\":{\"s\":1}}";
    struct fixture *f = *state;
    const char *s = "untouched";
    size_t n = 77;
    uint64_t u = 77;
    bool b = false;

    sbx_json_freep(&f->json);
    assert_int_equal(sbx_json_parse(text, sizeof(text) - 1, &f->json, NULL), SBX_OK);
    assert_false(sbx_json_get_str(f->json, "u", &s, &n) || sbx_json_get_str(f->json, "x", &s, &n));
    assert_false(sbx_json_get_uint(f->json, "i", &u) || sbx_json_get_uint(f->json, "s", &u) ||
                 sbx_json_get_uint(f->json, "r", &u) || sbx_json_get_uint(f->json, "x", &u));
    assert_false(sbx_json_get_bool(f->json, "n", &b) || sbx_json_get_bool(f->json, "u", &b));
    assert_string_equal(s, "untouched");
    assert_true(n == 77 && u == 77 && !b);
    assert_true(sbx_json_get_str(f->json, "s", &s, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(s, "a\0b", 4);
    assert_true(sbx_json_get_uint(f->json, "u", &u) && u == 7);
    assert_true(sbx_json_get_bool(f->json, "b", &b) && b);
    assert_true(sbx_json_has(f->json, "n") && !sbx_json_has(f->json, "x"));
}

static void objects_inside_are_values_of_their_own(void **state)
{
    static const char text[] = "{\"in\":{\"b\":\"1\",\"a\":\"22\",\"n\":3},\"list\":[\"x\",4]}";
    struct fixture *f = *state;
    const char *key, *value;
    size_t n;

    sbx_json_freep(&f->json);
    sbx_json_freep(&f->child);
    assert_int_equal(sbx_json_parse(text, sizeof(text) - 1, &f->json, NULL), SBX_OK);
    assert_false(sbx_json_get_object(f->json, "list", &f->child));
    assert_true(sbx_json_get_object(f->json, "in", &f->child));
    assert_true(sbx_json_get_element_str(f->json, "list", 0, &value, &n));
    assert_string_equal(value, "x");
    assert_false(sbx_json_get_element_str(f->json, "list", 1, &value, &n));
    assert_false(sbx_json_get_element_str(f->json, "list", 2, &value, &n));
    assert_false(sbx_json_get_element_str(f->json, "in", 0, &value, &n));
    sbx_json_freep(&f->json); /* the object inside lives on */
    assert_int_equal(sbx_json_members(f->child), 3);
    assert_true(sbx_json_get_member_str(f->child, 1, &key, &value, &n));
    assert_string_equal(key, "a");
    assert_int_equal(n, 2);
    assert_false(sbx_json_get_member_str(f->child, 2, &key, &value, &n));
    assert_false(sbx_json_get_member_str(f->child, 3, &key, &value, &n));
}

static void what_is_no_object_has_no_members(void **state)
{
    struct fixture *f = *state;
    uint64_t u = 77;

    assert_false(sbx_json_has(f->child, "k") || sbx_json_get_uint(f->child, "k", &u));
    assert_false(sbx_json_has(NULL, "k") || sbx_json_get_uint(NULL, "k", &u));
}

static void a_refusal_shows_text_of_a_peer_escaped(void **state SBX_UNUSED)
{
    struct sbx_json *json = NULL;
    struct sbx_error err = {0};

    assert_int_equal(sbx_json_parse("{\"a\":tr\\ue}", 11, &json, &err), SBX_E_REMOTE);
    assert_non_null(strstr(err.msg, "no JSON"));
    for (const char *p = err.msg; *p; p++)
        assert_in_range(*p, ' ', '~');
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(bads) + N_ELEMENTS(parses) + 9] = {
        cmocka_unit_test_setup_teardown(members_keep_their_order_and_types, setup, teardown),
        cmocka_unit_test_setup_teardown(text_is_written_as_printable_ascii, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_longer_than_the_first_attempt, setup, teardown),
        cmocka_unit_test_setup_teardown(building_on_nothing_is_told_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_leaves_what_was_there, setup, teardown),
        cmocka_unit_test_setup_teardown(a_million_brackets_are_no_danger, setup, teardown),
        cmocka_unit_test_setup_teardown(members_are_found_by_key_and_type, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_inside_are_values_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_object_has_no_members, setup, teardown),
        cmocka_unit_test(a_refusal_shows_text_of_a_peer_escaped),
    };
    size_t n = rows_add(tests, 9, ROWS(bads), failure_is_remembered);

    n = rows_add(tests, n, ROWS(parses), parses_or_refuses);
    return rows_run("json", tests, n);
}
