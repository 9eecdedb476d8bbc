/* Tables of tests: each row is a cmocka test of its own, so that a failing row names itself. */
#ifndef TESTS_ROWS_H
#define TESTS_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"

/* A table as the three arguments that say what it is. */
#define ROWS(table) (table), N_ELEMENTS(table), sizeof((table)[0])

/* Puts a test into tests[at...] for each of the n rows of `size` bytes, whose first member is its
 * sentence (const char *). The test gets its row as *state, by way of the fixture if there is one.
 * Returns the next free place. */
static inline size_t rows_add_with(struct CMUnitTest *tests, size_t at, const void *table, size_t n,
                                   size_t size, CMUnitTestFunction fn, CMFixtureFunction setup,
                                   CMFixtureFunction teardown)
{
    const char *row = table;

    for (size_t i = 0; i < n; i++, row += size) {
        union {
            const void *in;
            void *out;
        } state = {.in = row};
        const char *const *name = state.in;

        tests[at++] = (struct CMUnitTest){*name, fn, setup, teardown, state.out};
    }
    return at;
}

/* The same without a fixture. */
static inline size_t rows_add(struct CMUnitTest *tests, size_t at, const void *table, size_t n,
                              size_t size, CMUnitTestFunction fn)
{
    return rows_add_with(tests, at, table, n, size, fn, NULL, NULL);
}

static inline int rows_run(const char *group, const struct CMUnitTest *tests, size_t n)
{
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

#endif
