/* Time: instants are uint64_t nanoseconds of CLOCK_MONOTONIC, deadlines are absolute. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define SBX_NS_PER_S 1000000000u
#define SBX_NS_PER_MS 1000000u
#define SBX_NEVER UINT64_MAX

/* A point in calendar time as files carry it: sec may be negative, nsec counts forward. Packed to
 * 12 bytes, since every listed file has two. */
struct __attribute__((packed, aligned(4))) sbx_time {
    int64_t sec;   /* since 1970 */
    uint32_t nsec; /* below 1,000,000,000 */
};

static inline bool sbx_time_equal(struct sbx_time a, struct sbx_time b)
{
    return a.sec == b.sec && a.nsec == b.nsec;
}

uint64_t sbx_clock_now(void);

/* Seconds since 1970, CLOCK_REALTIME. */
int64_t sbx_clock_epoch(void);

/* What is left until deadline_ns for poll(2): milliseconds rounded up, 0 once it has passed, at
 * most `most` (pass INT_MAX for no other bound). */
int sbx_clock_poll_ms(uint64_t deadline_ns, int most);

/* base + s seconds; SBX_NEVER where that does not fit. Negative s counts as 0. */
uint64_t sbx_clock_after(uint64_t base_ns, double s);

#endif
