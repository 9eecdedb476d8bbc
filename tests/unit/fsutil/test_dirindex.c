#include "fsutil/dirindex.h"

#include "base/clock.h"
#include "tests/support/world.h"

static const struct other_case {
    const char *why;
    const char *build;
    const char *name;
    const char *want; /* NULL: no other spelling */
} other_cases[] = {
    {"an empty directory", "", "a", NULL},
    {"the name itself", "f:a", "a", NULL},
    {"another name", "f:b", "a", NULL},
    {"another case", "f:ReadMe", "readme", "ReadMe"},
    {"sharp s",
     "f:stra\xc3\x9f"
     "e",
     "STRASSE",
     "stra\xc3\x9f"
     "e"},
    {"the other normal form", "f:caf\xc3\xa9", "cafe\xcc\x81", "caf\xc3\xa9"},
    {"both spellings there, the first asked", "f:a f:A", "a", "A"},
    {"both spellings there, the second asked", "f:a f:A", "A", "a"},
    {"a name that is not UTF-8 is left out", "f:caf\xe9", "caf", NULL},
    {"what is ours is left out", "d:.sbx-sync", ".SBX-sync", NULL},
};

static void check_other(void **state)
{
    struct world *w = *state;
    const struct other_case *c = w->row;
    struct sbx_fs_index *index = NULL;
    const char *other = "untouched";

    world_build(w, c->build);
    assert_int_equal(sbx_fs_index_new(w->rootfd, &index, NULL), SBX_OK);
    assert_int_equal(sbx_fs_index_other(index, c->name, strlen(c->name), &other, NULL), SBX_OK);
    if (c->want)
        assert_string_equal(other, c->want);
    else
        assert_null(other);
    sbx_fs_index_free(index);
}

static void grows_by_what_is_added(void **state)
{
    struct world *w = *state;
    struct sbx_fs_index *index = NULL;
    const char *other;
    char name[32];
    int n;

    assert_int_equal(sbx_fs_index_new(w->rootfd, &index, NULL), SBX_OK);
    for (int i = 0; i < 5000; i++) {
        n = snprintf(name, sizeof(name), "Name-%d", i);
        assert_int_equal(sbx_fs_index_add(index, name, (size_t)n, NULL), SBX_OK);
        assert_int_equal(sbx_fs_index_add(index, name, (size_t)n, NULL), SBX_OK);
    }
    for (int i = 0; i < 5000; i++) {
        n = snprintf(name, sizeof(name), "Name-%d", i);
        assert_int_equal(sbx_fs_index_other(index, name, (size_t)n, &other, NULL), SBX_OK);
        assert_null(other);
        name[0] = 'n';
        assert_int_equal(sbx_fs_index_other(index, name, (size_t)n, &other, NULL), SBX_OK);
        assert_non_null(other);
        assert_string_equal(other + 1, name + 1);
    }
    sbx_fs_index_free(index);
}

/* 65,536 spellings of one key in a table that probed from slot to slot would take minutes. */
static void many_spellings_of_one_name_stay_cheap(void **state)
{
    struct world *w = *state;
    struct sbx_fs_index *index = NULL;
    uint64_t begin = sbx_clock_now();
    const char *other = NULL;

    assert_int_equal(sbx_fs_index_new(w->rootfd, &index, NULL), SBX_OK);
    for (unsigned i = 0; i < 65536; i++) {
        char name[16];

        for (unsigned bit = 0; bit < 16; bit++)
            name[bit] = (i >> bit) & 1 ? 'A' : 'a';
        assert_int_equal(sbx_fs_index_add(index, name, 16, NULL), SBX_OK);
    }
    assert_int_equal(sbx_fs_index_other(index, "aaaaaaaaaaaaaaaa", 16, &other, NULL), SBX_OK);
    assert_string_equal(other, "Aaaaaaaaaaaaaaaa");
    assert_true(sbx_clock_now() - begin < 5ull * SBX_NS_PER_S);
    sbx_fs_index_free(index);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        WORLD_TEST("what is added is found", grows_by_what_is_added),
        WORLD_TEST("many spellings of one name stay cheap", many_spellings_of_one_name_stay_cheap),
    };
    struct CMUnitTest tests[N_ELEMENTS(other_cases) + N_ELEMENTS(others)];
    size_t n = world_rows(tests, 0, ROWS(other_cases), check_other);

    memcpy(tests + n, others, sizeof(others));
    return cmocka_run_group_tests_name("spellings of a directory", tests, NULL, NULL);
}
