#include "tests/fault/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned left; /* calls until the one that fails; 0: not armed */
static int failure;
static const char *refused = "";
static const char *fired;
static unsigned short_writes, writes;
static bool filling;
static size_t room;

void fault_arm(unsigned nth, int os_errno)
{
    fault_disarm();
    fired = NULL;
    left = nth;
    failure = os_errno;
}

void fault_refuse(const char *calls, int os_errno)
{
    fault_arm(0, os_errno);
    refused = calls;
}

void fault_short_writes(unsigned n)
{
    short_writes = n;
    writes = 0;
}

void fault_full_after(size_t n, int os_errno)
{
    fault_arm(0, os_errno);
    filling = true;
    room = n;
}

void fault_refuse_too(const char *calls)
{
    refused = calls;
}

void fault_disarm(void)
{
    filling = false;
    left = 0;
    refused = "";
    short_writes = 0;
}

const char *fault_fired(void)
{
    return fired;
}

static bool is_refused(const char *call)
{
    size_t n = strlen(call);

    for (const char *p = refused; *p; p += strspn(p, " ")) {
        size_t m = strcspn(p, " ");

        if (m == n && memcmp(p, call, n) == 0)
            return true;
        p += m;
    }
    return false;
}

static bool fails(const char *call)
{
    if ((left == 0 || --left > 0) && !is_refused(call))
        return false;
    fired = call;
    errno = failure;
    return true;
}

/* A function of the usual kind: -1 and errno. */
#define WRAP(ret, name, params, args)                                                              \
    ret __real_##name params;                                                                      \
    ret __wrap_##name params;                                                                      \
    ret __wrap_##name params                                                                       \
    {                                                                                              \
        return fails(#name) ? (ret)-1 : __real_##name args;                                        \
    }

#define WRAP_NULL(ret, name, params, args)                                                         \
    ret __real_##name params;                                                                      \
    ret __wrap_##name params;                                                                      \
    ret __wrap_##name params                                                                       \
    {                                                                                              \
        return fails(#name) ? NULL : __real_##name args;                                           \
    }

WRAP(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP(int, fstat, (int fd, struct stat *st), (fd, st))
WRAP(int, fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, futimens, (int fd, const struct timespec t[2]), (fd, t))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, syncfs, (int fd), (fd))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(off_t, lseek, (int fd, off_t n, int whence), (fd, n, whence))
WRAP(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags))
WRAP(int, linkat, (int a, const char *from, int b, const char *to, int flags),
     (a, from, b, to, flags))
WRAP(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
WRAP_NULL(DIR *, fdopendir, (int fd), (fd))
WRAP_NULL(struct dirent *, readdir, (DIR * dir), (dir))
WRAP_NULL(void *, calloc, (size_t n, size_t size), (n, size))
WRAP_NULL(void *, malloc, (size_t n), (n))
WRAP_NULL(void *, realloc, (void *p, size_t n), (p, n))

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    if (flags & O_CREAT) {
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return fails("openat") ? -1 : __real_openat(fd, path, flags, mode);
}

int __real_fcntl(int fd, int op, ...);
int __wrap_fcntl(int fd, int op, ...);
int __wrap_fcntl(int fd, int op, ...)
{
    va_list args;
    void *arg;

    va_start(args, op);
    arg = va_arg(args, void *);
    va_end(args);
    return fails("fcntl") ? -1 : __real_fcntl(fd, op, arg);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int rc = __real_close(fd);

    return fails("close") ? -1 : rc;
}

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (fails("write"))
        return -1;
    if (filling) {
        if (room == 0) {
            fired = "write";
            errno = failure;
            return -1;
        }
        n = n < room ? n : room;
        room -= n;
        return __real_write(fd, p, n);
    }
    if (!short_writes)
        return __real_write(fd, p, n);
    if (++writes % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return __real_write(fd, p, n < short_writes ? n : short_writes);
}
