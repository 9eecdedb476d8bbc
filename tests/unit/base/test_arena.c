#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/rows.h"

static int setup(void **state)
{
    struct sbx_arena *arena = malloc(sizeof(*arena));

    *arena = SBX_ARENA_INIT(64u << 20);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    sbx_arena_done(*state);
    sbx_arena_done(*state); /* twice is fine */
    free(*state);
    return 0;
}

static void copies_are_packed_and_terminated(void **state)
{
    const char *a = NULL, *b = NULL;

    assert_int_equal(sbx_arena_copy(*state, "one", 3, &a, NULL), SBX_OK);
    assert_int_equal(sbx_arena_copy(*state, "two\0!", 5, &b, NULL), SBX_OK);
    assert_string_equal(a, "one");
    assert_memory_equal(b, "two\0!", 6);
    assert_ptr_equal(b, a + 4);
}

static void an_empty_copy_is_an_empty_text(void **state)
{
    const char *a = NULL;

    assert_int_equal(sbx_arena_copy(*state, NULL, 0, &a, NULL), SBX_OK);
    assert_string_equal(a, "");
}

static void nothing_moves_while_it_grows(void **state)
{
    const char **copies = malloc(50000 * sizeof(*copies));
    size_t bad = 0;

    for (unsigned i = 0; i < 50000; i++) {
        char text[64];

        memset(text, (int)('a' + i % 26), sizeof(text));
        assert_int_equal(sbx_arena_copy(*state, text, 1 + i % 64, &copies[i], NULL), SBX_OK);
    }
    for (unsigned i = 0; i < 50000; i++)
        bad += strlen(copies[i]) != 1 + i % 64 || copies[i][i % 64] != (char)('a' + i % 26);
    free(copies);
    assert_int_equal(bad, 0);
}

static void more_than_a_chunk_is_possible(void **state)
{
    char *big = malloc(3u << 20);
    const char *copy = NULL;
    int differs;

    memset(big, 'b', 3u << 20);
    assert_int_equal(sbx_arena_copy(*state, big, 3u << 20, &copy, NULL), SBX_OK);
    differs = memcmp(copy, big, 3u << 20);
    free(big);
    assert_int_equal(differs, 0);
    assert_int_equal(copy[3u << 20], '\0');
    assert_int_equal(sbx_arena_copy(*state, "after", 5, &copy, NULL), SBX_OK);
    assert_string_equal(copy, "after");
}

static void the_maximum_counts_what_is_handed_out(void **state)
{
    struct sbx_arena *arena = *state;
    const char *untouched = "untouched", *copy = untouched;
    struct sbx_error err = {0};

    arena->max = 10;
    assert_int_equal(sbx_arena_copy(arena, "12345", 5, &copy, &err), SBX_OK);
    copy = untouched;
    assert_int_equal(sbx_arena_copy(arena, "1234", 4, &copy, &err), SBX_E_LIMIT);
    assert_int_equal(err.status, SBX_E_LIMIT);
    assert_ptr_equal(copy, untouched);
    assert_int_equal(arena->used, 6);
    assert_int_equal(sbx_arena_copy(arena, "123", 3, &copy, &err), SBX_OK);
    assert_int_equal(arena->used, 10);
    assert_int_equal(sbx_arena_copy(arena, "", SIZE_MAX - 1, &copy, &err), SBX_E_LIMIT);
}

static void sizes_near_the_largest_do_not_wrap(void **state)
{
    struct sbx_arena *arena = *state;
    const char *copy = NULL;

    arena->max = SIZE_MAX;
    assert_int_equal(sbx_arena_copy(arena, "", SIZE_MAX, &copy, NULL), SBX_E_NOMEM);
    assert_int_equal(sbx_arena_copy(arena, "", SIZE_MAX - 8, &copy, NULL), SBX_E_NOMEM);
    assert_int_equal(sbx_arena_copy(arena, "still usable", 12, &copy, NULL), SBX_OK);
    assert_int_equal(arena->used, 13);
}

static void after_done_it_may_be_used_again(void **state)
{
    struct sbx_arena *arena = *state;
    const char *copy = NULL;

    assert_int_equal(sbx_arena_copy(arena, "a", 1, &copy, NULL), SBX_OK);
    sbx_arena_done(arena);
    assert_int_equal(arena->used, 0);
    assert_int_equal(sbx_arena_copy(arena, "b", 1, &copy, NULL), SBX_OK);
    assert_string_equal(copy, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_are_packed_and_terminated, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_copy_is_an_empty_text, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_moves_while_it_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(more_than_a_chunk_is_possible, setup, teardown),
        cmocka_unit_test_setup_teardown(the_maximum_counts_what_is_handed_out, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_near_the_largest_do_not_wrap, setup, teardown),
        cmocka_unit_test_setup_teardown(after_done_it_may_be_used_again, setup, teardown),
    };

    return rows_run("arena", tests, N_ELEMENTS(tests));
}
