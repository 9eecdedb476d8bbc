/* Time for tests of cost: processor time, which other work on the machine does not stretch much. */
#ifndef TESTS_UNIT_PREFLIGHT_CPU_H
#define TESTS_UNIT_PREFLIGHT_CPU_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cpu_ns(void)
{
    return (uint64_t)clock() * (1000000000u / CLOCKS_PER_SEC);
}

#endif
