/* A directory of our own to list, shells to list it with, and PATHs that hold only what the script
 * may need, of one make. */
#ifndef TESTS_UNIT_LISTING_BOX_H
#define TESTS_UNIT_LISTING_BOX_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "listing/record.h"
#include "sbx/sink.h"
#include "sbx/transport.h"

#define NOBODY 65534

enum shell { DASH, BASH, ASH, MKSH, N_SHELLS };
enum tools { GNU, BUSYBOX, TOYBOX, BARE, N_TOOLS };

static const char *const shell_names[] = {"dash", "bash", "busybox", "mksh"};
static const char *const tools_names[] = {"GNU", "BusyBox", "toybox", "the barest"};
/* What the script must find out about each. */
static const char *const tools_found[] = {"printf,gzip,base64", "stat,gzip,base64",
                                          "stat,plain,base64", "stat,plain,hex"};

struct box {
    char dir[64];
    bool have_shell[N_SHELLS], have_tools[N_TOOLS];
};

static inline void box_must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

/* The path of name below the box; valid until the eighth call from now. */
static inline const char *at(const struct box *box, const char *name)
{
    static char paths[8][4096];
    static unsigned turn;
    char *path = paths[turn++ % 8];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", box->dir, name);
    return path;
}

static inline void box_mkdir(const struct box *box, const char *name, mode_t mode)
{
    box_must(mkdir(at(box, name), 0755) == 0, name);
    box_must(chmod(at(box, name), mode) == 0, name);
}

/* A file of n bytes. */
static inline void box_file(const struct box *box, const char *name, size_t n)
{
    int fd = openat(AT_FDCWD, at(box, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    box_must(fd >= 0, name);
    box_must(ftruncate(fd, (off_t)n) == 0, name);
    (void)close(fd);
}

static inline void box_mtime(const struct box *box, const char *name, time_t sec, long nsec)
{
    const struct timespec times[2] = {{sec, nsec}, {sec, nsec}};

    box_must(utimensat(AT_FDCWD, at(box, name), times, 0) == 0, name);
}

static inline const char *program(const char *name, char path[64])
{
    static const char *const dirs[] = {"/bin", "/usr/bin", "/usr/local/bin"};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        (void)snprintf(path, 64, "%s/%s", dirs[i], name);
        if (access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

/* box/<set>/<name> leads to the program. */
static inline bool box_link(const struct box *box, const char *set, const char *name,
                            const char *to)
{
    char path[64], link[96];

    if (!program(to, path))
        return false;
    (void)snprintf(link, sizeof(link), "%s/%s", set, name);
    box_must(symlink(path, at(box, link)) == 0, link);
    return true;
}

/* A folder with nothing but links to these tools. */
static inline bool box_tools(const struct box *box, const char *set, const char *multi,
                             const char *without)
{
    static const char *const names[] = {"find", "xargs", "stat", "head",   "gzip",
                                        "od",   "date",  "cat",  "base64", "printf"};
    bool all = true;

    box_mkdir(box, set, 0755);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strstr(without, names[i]))
            all = box_link(box, set, names[i], multi ? multi : names[i]) && all;
    return all;
}

static inline void box_new(struct box *box)
{
    char set[16];

    (void)snprintf(box->dir, sizeof(box->dir), "/tmp/sbx-listing.XXXXXX");
    box_must(mkdtemp(box->dir) != NULL, "mkdtemp");
    box_must(chmod(box->dir, 0755) == 0, "chmod");
    for (int i = 0; i < N_SHELLS; i++) {
        (void)snprintf(set, sizeof(set), "shell%d", i);
        box_mkdir(box, set, 0755);
        box->have_shell[i] = box_link(box, set, "sh", shell_names[i]);
    }
    box->have_tools[GNU] = box_tools(box, "tools0", NULL, "");
    box->have_tools[BUSYBOX] = box_tools(box, "tools1", "busybox", "");
    box->have_tools[TOYBOX] = box_tools(box, "tools2", "toybox", "gzip");
    box->have_tools[BARE] = box_tools(box, "tools3", "busybox", "gzip base64");
}

static inline int box_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static inline void box_free(const struct box *box)
{
    (void)nftw(box->dir, box_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* How a script is run. */
struct run {
    enum shell shell;
    const char *set;        /* of tools */
    const char *const *env; /* besides PATH; NULL-terminated */
    bool as_argument;       /* sh -c, and standard input closed */
    bool ignore_sigpipe;
    uid_t uid; /* 0: ours */
};

static inline void box_child(const struct box *box, const struct run *run, const char *script,
                             int in, int out, int diag)
{
    char path[256], sh[96];
    char *env[16] = {path};
    char *argv[4] = {sh, NULL};
    size_t n = 1;

    (void)snprintf(path, sizeof(path), "PATH=%s/shell%d:%s/%s", box->dir, (int)run->shell, box->dir,
                   run->set);
    (void)snprintf(sh, sizeof(sh), "%s/shell%d/sh", box->dir, (int)run->shell);
    for (size_t i = 0; run->env && run->env[i]; i++)
        env[n++] = strdup(run->env[i]);
    if (run->as_argument) {
        argv[1] = strdup("-c");
        argv[2] = strdup(script);
    }
    if (chdir(box->dir) < 0 || dup2(out, 1) < 0 || dup2(diag, 2) < 0 || dup2(in, 0) < 0)
        _exit(125);
    if (run->as_argument)
        (void)close(0);
    (void)signal(SIGPIPE, run->ignore_sigpipe ? SIG_IGN : SIG_DFL);
    if (run->uid && (setgid(run->uid) < 0 || setuid(run->uid) < 0) && geteuid() == 0)
        _exit(125);
    (void)execve(sh, argv, env);
    _exit(125);
}

/* A file of the box, emptied, without a name. */
static inline int box_scratch(const struct box *box)
{
    int fd = openat(AT_FDCWD, at(box, "scratch"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    box_must(fd >= 0, "scratch");
    box_must(unlink(at(box, "scratch")) == 0, "scratch");
    return fd;
}

/* Runs a script; its output streams into `out` until that fails. Appends what it wrote to standard
 * error. */
static inline struct sbx_exit box_run(const struct box *box, const struct run *run,
                                      const struct sbx_buf *script, struct sbx_sink out,
                                      struct sbx_buf *diag)
{
    int in = box_scratch(box), err = box_scratch(box), fds[2], status;
    enum sbx_status st = SBX_OK;
    char buf[8192];
    ssize_t n;
    pid_t pid;

    box_must(write(in, script->data, script->len) == (ssize_t)script->len, "write");
    box_must(lseek(in, 0, SEEK_SET) == 0, "lseek");
    box_must(pipe2(fds, O_CLOEXEC) == 0, "pipe");
    pid = fork();
    box_must(pid >= 0, "fork");
    if (pid == 0)
        box_child(box, run, script->data, in, fds[1], err);
    (void)close(fds[1]);
    while (!st && (n = read(fds[0], buf, sizeof(buf))) > 0)
        st = out.write(out.ctx, buf, (size_t)n, NULL);
    (void)close(fds[0]);
    box_must(waitpid(pid, &status, 0) == pid, "waitpid");
    (void)lseek(err, 0, SEEK_SET);
    while ((n = read(err, buf, sizeof(buf))) > 0)
        if (sbx_buf_add(diag, buf, (size_t)n, NULL))
            abort();
    (void)close(in);
    (void)close(err);
    if (WIFSIGNALED(status))
        return (struct sbx_exit){SBX_EXIT_SIGNALLED, WTERMSIG(status)};
    return (struct sbx_exit){SBX_EXIT_EXITED, WEXITSTATUS(status)};
}

/* The record that `name` of the box must have as `path`. */
static inline struct sbx_record box_record(const struct box *box, const char *name,
                                           const char *path)
{
    struct sbx_record r = {.path = path, .path_len = (uint32_t)strlen(path)};
    struct stat st;

    box_must(lstat(at(box, name), &st) == 0, name);
    r.size = (uint64_t)st.st_size;
    r.mtime.sec = st.st_mtim.tv_sec;
    r.mtime.nsec = (uint32_t)st.st_mtim.tv_nsec;
    r.ctime.sec = st.st_ctim.tv_sec;
    r.ctime.nsec = (uint32_t)st.st_ctim.tv_nsec;
    return r;
}

#endif
