#include "transport/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"

/* A pipe whose ends are above 2: a process that has closed its standard streams and prints all the
 * same would else print to the shell. */
static int pipe_above_stdio(int ret[2])
{
    int fds[2], moved[2] = {-1, -1};
    int i, saved = 0;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    for (i = 0; i < 2; i++) {
        if (fds[i] > 2)
            moved[i] = sbx_fd_take(&fds[i]);
        else
            moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (moved[i] < 0)
            saved = errno;
    }
    sbx_fd_close(&fds[0]);
    sbx_fd_close(&fds[1]);
    if (saved) {
        sbx_fd_close(&moved[0]);
        sbx_fd_close(&moved[1]);
        errno = saved;
        return -1;
    }
    memcpy(ret, moved, sizeof(moved));
    return 0;
}

/* With a terminal COMMAND stays in our process group: ssh may ask for a passphrase there, and
 * Ctrl-C reaches it. */
static bool has_terminal(void)
{
    SBX_FD_AUTO int fd =
        open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC); /* banned-ok: only asks if there is one */

    return fd >= 0;
}

static int set_attributes(posix_spawnattr_t *attr, bool group)
{
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    sigset_t all, none;
    int rc;

    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    if (group)
        flags = (short)(flags | POSIX_SPAWN_SETSID);
    rc = posix_spawnattr_setsigdefault(attr, &all);
    if (!rc)
        rc = posix_spawnattr_setsigmask(attr, &none);
    if (!rc)
        rc = posix_spawnattr_setflags(attr, flags);
    return rc;
}

/* Returns 0 or an errno value. */
static int spawn(const char *const argv[], const int fds[3], bool group, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int i, rc;

    rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return rc;
    }
    for (i = 0; i < 3 && !rc; i++)
        rc = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    if (!rc)
        rc = set_attributes(&attr, group);
    if (!rc)
        rc = posix_spawnp(ret, argv[0], &actions, &attr, (char *const *)argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static bool unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

enum sbx_status sbx_child_start(struct sbx_child *child, const char *const argv[],
                                struct sbx_error *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int theirs[3], ours[3];
    enum sbx_status st = SBX_OK;
    pid_t pid = 0;
    bool group = !has_terminal();
    int i, rc;

    for (i = 0; i < 3 && !st; i++)
        if (pipe_above_stdio(pipes[i]) < 0 || !unblock(pipes[i][i == 0]))
            st = sbx_err_host(err, errno, "pipe", "start '%s'", SBX_QUOTE(argv[0]));
    for (i = 0; i < 3; i++) {
        theirs[i] = pipes[i][i != 0];
        ours[i] = pipes[i][i == 0];
    }
    if (!st) {
        rc = spawn(argv, theirs, group, &pid);
        if (rc)
            st = sbx_err_set(err, SBX_E_UNREACHABLE, rc, "start '%s'", SBX_QUOTE(argv[0]));
    }
    for (i = 0; i < 3; i++) {
        sbx_fd_close(&theirs[i]);
        if (st)
            sbx_fd_close(&ours[i]);
    }
    if (!st)
        *child = (struct sbx_child){pid, group, ours[0], ours[1], ours[2]};
    return st;
}

/* Looks without reaping: as long as the process is not reaped its number, and that of its group,
 * belong to it, and may be signalled. Returns -1 where it is no child of ours any more, because the
 * program ignores SIGCHLD or waits for everything. */
static int peek(pid_t pid, siginfo_t *info)
{
    memset(info, 0, sizeof(*info));
    if (waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return -1;
    return info->si_pid == pid;
}

bool sbx_child_ended(const struct sbx_child *child, struct sbx_child_status *ret)
{
    struct sbx_child_status status = {SBX_CHILD_UNKNOWN, 0};
    siginfo_t info;
    int ended = child->pid ? peek(child->pid, &info) : -1;

    if (ended > 0)
        status = (struct sbx_child_status){
            info.si_code == CLD_EXITED ? SBX_CHILD_EXITED : SBX_CHILD_SIGNALLED, info.si_status};
    if (ended != 0 && ret)
        *ret = status;
    return ended != 0;
}

static void send_signal(const struct sbx_child *child, int sig)
{
    siginfo_t info;

    if (peek(child->pid, &info) >= 0)
        (void)kill(child->group ? -child->pid : child->pid, sig);
}

/* Waits a short while for the process to end, and for whoever else writes to its output to be gone:
 * the rest of its group gets the same time to end in order. */
static bool wait_end(const struct sbx_child *child, bool writers_too)
{
    uint64_t until = sbx_clock_now() + SBX_END_GRACE_MS * (uint64_t)SBX_NS_PER_MS;
    int pause = 1;

    while (sbx_clock_now() < until) {
        struct pollfd out = {.fd = child->out};
        bool gone = sbx_child_ended(child, NULL);

        if (gone && (!writers_too || child->out < 0))
            return true;
        if (poll(&out, 1, 0) > 0 && gone)
            return true;
        (void)poll(NULL, 0, pause);
        if (pause < 16)
            pause *= 2;
    }
    return false;
}

void sbx_child_end(struct sbx_child *child, bool gently)
{
    sbx_fd_close(&child->in);
    if (child->pid) {
        if (!gently || !wait_end(child, true)) {
            send_signal(child, SIGTERM);
            (void)wait_end(child, true);
        }
        send_signal(child, SIGKILL); /* also what is left of its group */
        /* Bounded, since a process may hang in the kernel; that one stays a zombie of ours. */
        if (wait_end(child, false))
            (void)waitpid(child->pid, NULL, WNOHANG);
        child->pid = 0;
    }
    sbx_fd_close(&child->out);
    sbx_fd_close(&child->diag);
}

ssize_t sbx_child_write(int fd, const void *bytes, size_t n)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe_only, pending, before;
    bool was_pending;
    ssize_t written;
    int saved;

    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) > 0;
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    written = write(fd, bytes, n);
    saved = errno;
    if (written < 0 && saved == EPIPE && !was_pending)
        (void)sigtimedwait(&pipe_only, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return written;
}
