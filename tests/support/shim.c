/* A file system that misbehaves, preloaded into the command. SBX_SHIM holds rules, separated by
 * semicolons:
 *
 *   CALL[:NAME]=ERRNO[@FROM[+COUNT]]   fails with that errno value, from the FROM-th call on (1 is
 *                                      the first), COUNT times (for ever if it is left out)
 *   ino                                each lookup of a name gives another inode number
 *   mtime2                             modification times are rounded down to 2 seconds
 *   long, ascii                        no names of more than 143 bytes, or beyond ASCII
 *
 * CALL is the name of the function, but for openat("exclusive", "create", "tmpfile" where it makes
 * a file) and fcntl ("lock", "dupfd"). NAME is a pattern for the last component: the new one for
 * renames and links, the open file's for calls that take a descriptor. Only what lies at or below
 * SBX_SHIM_UNDER counts. Each such call is appended to SBX_SHIM_LOG once it is over: its name, its
 * result (0, an errno value, or one after '!' if a rule made it) and its path. Programs that the
 * command starts are left alone. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MAX_RULES 16
#define MAX_FDS 1024
#define LONGEST 143 /* bytes of a name: eCryptfs */
#define REAL(name) ((__typeof__(&(name)))real(#name))

struct rule {
    char call[16], name[64];
    int os_errno;
    unsigned long from, count, seen;
};

static struct {
    bool on, ino, mtime2, is_long, ascii;
    struct rule rules[MAX_RULES];
    size_t n;
    char under[4096];
    int log;
    uint64_t next_ino, fd_ino[MAX_FDS];
} shim = {.log = -1, .next_ino = UINT64_C(1) << 40};

/* What a call is about. */
struct subject {
    bool ours;
    char path[8192];
    const char *name; /* the last component, in path */
};

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort();
    return found;
}

static unsigned long number(const char **text)
{
    unsigned long value = 0;

    while (**text >= '0' && **text <= '9')
        value = 10 * value + (unsigned long)(*(*text)++ - '0');
    return value;
}

static void take_word(const char *text, size_t n, char *out, size_t room)
{
    if (n >= room)
        abort();
    memcpy(out, text, n);
    out[n] = '\0';
}

static void add_rule(const char *text)
{
    struct rule *rule = &shim.rules[shim.n++];
    size_t n = strcspn(text, ":=");

    if (shim.n == MAX_RULES)
        abort();
    take_word(text, n, rule->call, sizeof(rule->call));
    text += n;
    if (*text == ':') {
        n = strcspn(++text, "=");
        take_word(text, n, rule->name, sizeof(rule->name));
        text += n;
    }
    if (*text++ != '=')
        abort();
    rule->os_errno = (int)number(&text);
    rule->from = 1;
    if (*text == '@') {
        text++;
        rule->from = number(&text);
    }
    if (*text == '+') {
        text++;
        rule->count = number(&text);
    }
    if (*text)
        abort();
}

static void add_word(const char *word)
{
    if (strcmp(word, "ino") == 0)
        shim.ino = true;
    else if (strcmp(word, "mtime2") == 0)
        shim.mtime2 = true;
    else if (strcmp(word, "long") == 0)
        shim.is_long = true;
    else if (strcmp(word, "ascii") == 0)
        shim.ascii = true;
    else if (*word)
        add_rule(word);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SBX_SHIM"), *under = getenv("SBX_SHIM_UNDER");
    const char *log = getenv("SBX_SHIM_LOG");
    char word[128];

    (void)unsetenv("LD_PRELOAD");
    if (!text || !under)
        return;
    take_word(under, strlen(under), shim.under, sizeof(shim.under));
    while (*text) {
        size_t n = strcspn(text, ";");

        take_word(text, n, word, sizeof(word));
        add_word(word);
        text += n + (text[n] == ';');
    }
    if (log)
        shim.log = (int)syscall(SYS_openat, AT_FDCWD, log,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    shim.on = true;
}

/* The path of an open descriptor; empty if there is none. */
static size_t path_of_fd(int fd, char *out, size_t room)
{
    char link[64];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, out, room - 1);
    if (n < 0)
        n = 0;
    out[n] = '\0';
    return (size_t)n;
}

static struct subject *look(struct subject *s, int fd, const char *name)
{
    size_t n = 0, under = strlen(shim.under);

    memset(s, 0, sizeof(*s));
    if (!shim.on)
        return s;
    if (fd != AT_FDCWD)
        n = path_of_fd(fd, s->path, sizeof(s->path) / 2);
    if (name)
        (void)snprintf(s->path + n, sizeof(s->path) - n, "%s%s", n ? "/" : "", name);
    s->name = strrchr(s->path, '/');
    s->name = s->name ? s->name + 1 : s->path;
    s->ours = strncmp(s->path, shim.under, under) == 0 &&
              (s->path[under] == '\0' || s->path[under] == '/');
    return s;
}

static void tell(const struct subject *s, const char *call, const char *mark, int os_errno)
{
    char line[9000];
    int n;

    if (!s->ours || shim.log < 0)
        return;
    n = snprintf(line, sizeof(line), "%s %s%d %s\n", call, mark, os_errno, s->path);
    if (n > 0 && (size_t)n < sizeof(line))
        (void)syscall(SYS_write, shim.log, line, (size_t)n);
}

static int refuses_name(const char *name)
{
    if (shim.is_long && strlen(name) > LONGEST)
        return ENAMETOOLONG;
    for (; shim.ascii && *name; name++)
        if (*name & 0x80)
            return EILSEQ;
    return 0;
}

static int apply(struct rule *rule, const char *call, const char *name)
{
    unsigned long nth;

    if (strcmp(rule->call, call) != 0 || (*rule->name && fnmatch(rule->name, name, 0) != 0))
        return 0;
    nth = __atomic_add_fetch(&rule->seen, 1, __ATOMIC_SEQ_CST);
    if (nth < rule->from || (rule->count && nth >= rule->from + rule->count))
        return 0;
    return rule->os_errno;
}

/* What the rules say of this call: 0, or the errno value to fail with. */
static int refuses(struct subject *s, const char *call, bool named)
{
    int os_errno;

    if (!s->ours)
        return 0;
    os_errno = named ? refuses_name(s->name) : 0;
    for (size_t i = 0; i < shim.n; i++) {
        int answer = apply(&shim.rules[i], call, s->name);

        os_errno = answer ? answer : os_errno;
    }
    if (os_errno) {
        tell(s, call, "!", os_errno);
        errno = os_errno;
    }
    return os_errno;
}

static int done(const struct subject *s, const char *call, int rc)
{
    int saved = errno;

    tell(s, call, "", rc < 0 ? errno : 0);
    errno = saved;
    return rc;
}

static uint64_t new_ino(void)
{
    return __atomic_add_fetch(&shim.next_ino, 1, __ATOMIC_SEQ_CST);
}

static void remember(int fd, uint64_t ino)
{
    if (fd >= 0 && fd < MAX_FDS)
        shim.fd_ino[fd] = ino;
}

/* Files that are made are told apart by how: "exclusive" is the way of temporaries. */
static const char *kind_of_open(int flags)
{
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return "tmpfile";
    if (!(flags & O_CREAT))
        return "openat";
    return flags & O_EXCL && flags & O_NOFOLLOW ? "exclusive" : "create";
}

EXPORTED int openat(int dirfd, const char *name, int flags, ...)
{
    const char *call = kind_of_open(flags);
    struct subject s;
    mode_t mode = 0;
    va_list args;
    int fd;

    va_start(args, flags);
    if (strcmp(call, "openat") != 0)
        mode = va_arg(args, mode_t);
    va_end(args);
    if (refuses(look(&s, dirfd, name), call, true))
        return -1;
    fd = REAL(openat)(dirfd, name, flags, mode);
    remember(fd, s.ours ? new_ino() : 0);
    return done(&s, call, fd);
}

EXPORTED int mkdirat(int dirfd, const char *name, mode_t mode)
{
    struct subject s;

    if (refuses(look(&s, dirfd, name), "mkdirat", true))
        return -1;
    return done(&s, "mkdirat", REAL(mkdirat)(dirfd, name, mode));
}

EXPORTED ssize_t write(int fd, const void *bytes, size_t n)
{
    struct subject s;
    ssize_t rc;

    if (refuses(look(&s, fd, NULL), "write", false))
        return -1;
    rc = REAL(write)(fd, bytes, n);
    (void)done(&s, "write", rc < 0 ? -1 : 0);
    return rc;
}

EXPORTED ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    struct subject s;

    if (refuses(look(&s, fd, NULL), "pread", false))
        return -1;
    return REAL(pread)(fd, bytes, n, at);
}

EXPORTED int fsync(int fd)
{
    struct subject s;

    if (refuses(look(&s, fd, NULL), "fsync", false))
        return -1;
    return done(&s, "fsync", REAL(fsync)(fd));
}

EXPORTED int fdatasync(int fd)
{
    struct subject s;

    if (refuses(look(&s, fd, NULL), "fdatasync", false))
        return -1;
    return done(&s, "fdatasync", REAL(fdatasync)(fd));
}

EXPORTED int syncfs(int fd)
{
    struct subject s;

    if (refuses(look(&s, fd, NULL), "syncfs", false))
        return -1;
    return done(&s, "syncfs", REAL(syncfs)(fd));
}

/* Closes in any case: a close that failed is a close. */
EXPORTED int close(int fd)
{
    struct subject s;
    int os_errno = refuses(look(&s, fd, NULL), "close", false);
    int rc = REAL(close)(fd);

    if (os_errno) {
        errno = os_errno;
        return -1;
    }
    return done(&s, "close", rc);
}

EXPORTED int renameat(int olddir, const char *old, int newdir, const char *new)
{
    struct subject s;

    if (refuses(look(&s, newdir, new), "renameat", true))
        return -1;
    return done(&s, "renameat", REAL(renameat)(olddir, old, newdir, new));
}

EXPORTED int renameat2(int olddir, const char *old, int newdir, const char *new, unsigned flags)
{
    struct subject s;

    if (refuses(look(&s, newdir, new), "renameat2", true))
        return -1;
    return done(&s, "renameat2", REAL(renameat2)(olddir, old, newdir, new, flags));
}

EXPORTED int linkat(int olddir, const char *old, int newdir, const char *new, int flags)
{
    struct subject s;

    if (refuses(look(&s, newdir, new), "linkat", true))
        return -1;
    return done(&s, "linkat", REAL(linkat)(olddir, old, newdir, new, flags));
}

EXPORTED int unlinkat(int dirfd, const char *name, int flags)
{
    struct subject s;

    if (refuses(look(&s, dirfd, name), "unlinkat", true))
        return -1;
    return done(&s, "unlinkat", REAL(unlinkat)(dirfd, name, flags));
}

EXPORTED int fchmod(int fd, mode_t mode)
{
    struct subject s;

    if (refuses(look(&s, fd, NULL), "fchmod", false))
        return -1;
    return done(&s, "fchmod", REAL(fchmod)(fd, mode));
}

EXPORTED int futimens(int fd, const struct timespec times[2])
{
    struct timespec rounded[2];
    struct subject s;

    if (refuses(look(&s, fd, NULL), "futimens", false))
        return -1;
    memcpy(rounded, times, sizeof(rounded));
    if (s.ours && shim.mtime2 && times[1].tv_nsec != UTIME_OMIT)
        rounded[1] = (struct timespec){.tv_sec = times[1].tv_sec & ~(time_t)1};
    return done(&s, "futimens", REAL(futimens)(fd, rounded));
}

EXPORTED int ftruncate(int fd, off_t n)
{
    struct subject s;

    if (refuses(look(&s, fd, NULL), "ftruncate", false))
        return -1;
    return done(&s, "ftruncate", REAL(ftruncate)(fd, n));
}

EXPORTED int fstatat(int dirfd, const char *name, struct stat *st, int flags)
{
    struct subject s;
    int rc;

    if (refuses(look(&s, dirfd, name), "fstatat", true))
        return -1;
    rc = REAL(fstatat)(dirfd, name, st, flags);
    if (rc == 0 && s.ours && shim.ino)
        st->st_ino = new_ino();
    return rc;
}

EXPORTED int fstat(int fd, struct stat *st)
{
    struct subject s;
    int rc;

    if (refuses(look(&s, fd, NULL), "fstat", false))
        return -1;
    rc = REAL(fstat)(fd, st);
    if (rc == 0 && s.ours && shim.ino && fd >= 0 && fd < MAX_FDS)
        st->st_ino = shim.fd_ino[fd];
    return rc;
}

EXPORTED struct dirent *readdir(DIR *dir)
{
    struct subject s;

    if (refuses(look(&s, dirfd(dir), NULL), "readdir", false))
        return NULL;
    return REAL(readdir)(dir);
}

EXPORTED int fcntl(int fd, int command, ...)
{
    struct subject s;
    const char *call = command == F_OFD_SETLK ? "lock" : command == F_DUPFD_CLOEXEC ? "dupfd" : "";
    va_list args;
    void *arg;
    int rc;

    va_start(args, command);
    arg = va_arg(args, void *);
    va_end(args);
    if (!*call)
        return REAL(fcntl)(fd, command, arg);
    if (refuses(look(&s, fd, NULL), call, false))
        return -1;
    rc = REAL(fcntl)(fd, command, arg);
    if (command == F_DUPFD_CLOEXEC && rc >= 0 && fd < MAX_FDS)
        remember(rc, shim.fd_ino[fd]);
    return done(&s, call, rc);
}
