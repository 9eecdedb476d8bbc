/* System calls and allocations that fail when a test says so. Nothing in the library knows: the
 * linker sends its calls through the wrappers of fault.c (-Wl,--wrap). */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stddef.h>

/* The nth of the wrapped calls from now on fails with os_errno (allocations with ENOMEM). A close
 * that fails has closed, as on Linux. */
void fault_arm(unsigned nth, int os_errno);
/* From now on the calls named in `calls`, as in "fchmod futimens", fail each time. */
void fault_refuse(const char *calls, int os_errno);
/* From now on write(2) takes at most n bytes, and is interrupted every second time. */
void fault_short_writes(unsigned n);
/* From now on write(2) takes n bytes more in all, and fails from there on: a full disk. */
void fault_full_after(size_t n, int os_errno);
/* Adds to what was armed: these calls fail too, with the same errno. */
void fault_refuse_too(const char *calls);
void fault_disarm(void);
/* The name of the call that failed since the last arming or refusing, or NULL. */
const char *fault_fired(void);

#endif
