#include "base/clock.h"

#include <time.h>

/* clock_gettime cannot fail for these two clocks on any kernel that runs glibc. */
static struct timespec read_clock(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return t;
}

uint64_t sbx_clock_now(void)
{
    struct timespec t = read_clock(CLOCK_MONOTONIC);

    return (uint64_t)t.tv_sec * SBX_NS_PER_S + (uint64_t)t.tv_nsec;
}

int64_t sbx_clock_epoch(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME).tv_sec;
}

/* Rounded up, since 0 means "do not wait": the last of a millisecond would be spent spinning. */
int sbx_clock_poll_ms(uint64_t deadline_ns, int most)
{
    uint64_t now, ms;

    if (deadline_ns == SBX_NEVER)
        return most;
    now = sbx_clock_now();
    if (now >= deadline_ns)
        return 0;
    ms = (deadline_ns - now - 1) / SBX_NS_PER_MS + 1;
    return ms > (uint64_t)most ? most : (int)ms;
}

uint64_t sbx_clock_after(uint64_t base_ns, double s)
{
    const double most_s = 18e9; /* a little less than 2^64 nanoseconds: the conversion is defined */
    uint64_t sum;

    if (!(s > 0)) /* not a number counts as 0, too */
        return base_ns;
    if (s > most_s)
        return SBX_NEVER;
    if (__builtin_add_overflow(base_ns, (uint64_t)(s * SBX_NS_PER_S + 0.5), &sum))
        return SBX_NEVER;
    return sum;
}
