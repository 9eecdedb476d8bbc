/* Tables of tests: each row is a cmocka test of its own, so that a failing row names itself. */
#ifndef TESTS_UNIT_BASE_ROWS_H
#define TESTS_UNIT_BASE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Puts a test into tests[at...] for each of the n rows of `size` bytes, whose first member is its
 * sentence (const char *). The test gets its row as *state. Returns the next free place. */
static inline size_t rows_add(struct CMUnitTest *tests, size_t at, const void *table, size_t n,
                              size_t size, CMUnitTestFunction fn)
{
    const char *row = table;

    for (size_t i = 0; i < n; i++, row += size) {
        union {
            const void *in;
            void *out;
        } state = {.in = row};
        const char *const *name = state.in;

        tests[at++] =
            (struct CMUnitTest){.name = *name, .test_func = fn, .initial_state = state.out};
    }
    return at;
}

static inline int rows_run(const char *group, const struct CMUnitTest *tests, size_t n)
{
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

#endif
