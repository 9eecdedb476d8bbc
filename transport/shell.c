/* In: standard output and standard error of a child whose far end a sandbox may own; trusted with
 * nothing. Out: its output as it is to `out`, its last words escaped in a message, and the number
 * of its exit line, which proves no more than that somebody who saw the script wrote it. */
#include "transport/shell.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/marked.h"
#include "transport/transport.h"

#define TICK_MS 100 /* how long output is quiet before a child that has ended counts as ended */

/* One script under way. */
struct run {
    struct sbx_shell *shell;
    const struct sbx_call *call;
    struct sbx_sink out, diag;
    struct sbx_buf input; /* owned; the script between the commands that print our own lines */
    size_t sent;
    uint64_t idle_ns;
    uint64_t last_ns; /* when the peer last did something, or we stopped doing something */
    uint64_t began_ns;
    uint64_t first_ns; /* when the start line has to be there; SBX_NEVER: no such limit */
    bool heard;        /* the start line has come: somebody runs what we send */
    bool any;          /* something came before it */
    bool newline;      /* and its last byte, a newline, is held back */
    size_t tail_n;
    char tail[SBX_MARKED_NONCE]; /* the end of what came before it */
    bool done;                   /* the exit line has come */
    int code;
    struct sbx_marked marked;
    char nonce[SBX_MARKED_NONCE + 1];
    size_t kept_n;
    char kept[SBX_STDERR_KEPT]; /* the last of standard error */
};

static enum sbx_status give(struct run *run, const char *bytes, size_t n, struct sbx_error *err)
{
    return n > 0 && run->out.write ? run->out.write(run->out.ctx, bytes, n, err) : SBX_OK;
}

/* Whether our nonce is in what came so far: before its own line it can only be an echo. */
static bool is_echo(struct run *run, const char *bytes, size_t n)
{
    char joint[2 * SBX_MARKED_NONCE];
    size_t head = n < SBX_MARKED_NONCE ? n : SBX_MARKED_NONCE, all = run->tail_n + head;

    memcpy(joint, run->tail, run->tail_n);
    memcpy(joint + run->tail_n, bytes, head);
    if (memmem(joint, all, run->nonce, SBX_MARKED_NONCE) ||
        memmem(bytes, n, run->nonce, SBX_MARKED_NONCE))
        return true;
    if (n >= SBX_MARKED_NONCE) {
        run->tail_n = SBX_MARKED_NONCE;
        memcpy(run->tail, bytes + n - SBX_MARKED_NONCE, SBX_MARKED_NONCE);
    } else {
        run->tail_n = all < SBX_MARKED_NONCE ? all : SBX_MARKED_NONCE;
        memcpy(run->tail, joint + all - run->tail_n, run->tail_n);
    }
    return false;
}

/* What comes before the start line. The newline in front of that line is ours and goes to nobody,
 * so the last one is held back until more is known. */
static enum sbx_status before_start(struct run *run, const char *bytes, size_t n,
                                    struct sbx_error *err)
{
    enum sbx_status st;

    run->any = true;
    if (is_echo(run, bytes, n))
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0,
                           "COMMAND gives back what it is sent, as a terminal does (is there a -t "
                           "in it? leave it out)");
    st = run->newline ? give(run, "\n", 1, err) : SBX_OK;
    run->newline = bytes[n - 1] == '\n';
    return st ? st : give(run, bytes, run->newline ? n - 1 : n, err);
}

static enum sbx_status on_bytes(void *ctx, const char *bytes, size_t n, struct sbx_error *err)
{
    struct run *run = ctx;

    /* What follows the exit line belongs to no script. */
    if (run->done)
        return SBX_OK;
    return run->heard ? give(run, bytes, n, err) : before_start(run, bytes, n, err);
}

static enum sbx_status on_line(void *ctx, const char *text, bool *ret_taken, struct sbx_error *err)
{
    struct run *run = ctx;
    size_t digits;
    int code = 0;

    (void)err;
    if (!run->heard && strcmp(text, "start") == 0) {
        *ret_taken = run->heard = true;
        return SBX_OK;
    }
    if (run->done || strncmp(text, "exit ", 5) != 0)
        return SBX_OK;
    text += 5;
    digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 3 || text[digits])
        return SBX_OK;
    while (*text)
        code = 10 * code + (*text++ - '0');
    run->code = code;
    run->done = true;
    *ret_taken = true;
    return SBX_OK;
}

/* The newline before each line lets it begin one whatever was printed last. That of the exit line
 * is not taken away: holding back every newline, since the line might follow, would keep the last
 * line of each read from its reader until more comes. The backslash gets past an alias, "|| :" past
 * set -e. */
static enum sbx_status make_input(struct run *run, const char *script, size_t n,
                                  struct sbx_error *err)
{
    enum sbx_status st;

    run->input = SBX_BUF_INIT(n + 256);
    st = sbx_buf_printf(&run->input, err, "\\printf '\\n%%s start\\n' %s || :\n", run->nonce);
    if (!st)
        st = sbx_buf_add(&run->input, script, n, err);
    if (!st)
        st = sbx_buf_printf(&run->input, err, "\n\\printf '\\n%%s exit %%s\\n' %s \"$?\" || :\n",
                            run->nonce);
    return st;
}

static void keep(struct run *run, const char *bytes, size_t n)
{
    size_t over;

    if (n > sizeof(run->kept)) {
        bytes += n - sizeof(run->kept);
        n = sizeof(run->kept);
    }
    over = run->kept_n + n > sizeof(run->kept) ? run->kept_n + n - sizeof(run->kept) : 0;
    memmove(run->kept, run->kept + over, run->kept_n - over);
    run->kept_n -= over;
    memcpy(run->kept + run->kept_n, bytes, n);
    run->kept_n += n;
}

/* Reads once. 0: the end, or nothing there; the end closes *fd. */
static size_t pull(struct run *run, int *fd)
{
    ssize_t n = read(*fd, run->shell->chunk.data, SBX_SHELL_CHUNK);

    if (n > 0)
        return (size_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        sbx_fd_close(fd);
    return 0;
}

static size_t pull_diag(struct run *run)
{
    size_t n = pull(run, &run->shell->child.diag);

    if (n == 0)
        return 0;
    keep(run, run->shell->chunk.data, n);
    if (run->diag.write)
        (void)run->diag.write(run->diag.ctx, run->shell->chunk.data, n, NULL);
    return n;
}

static enum sbx_status pull_out(struct run *run, struct sbx_error *err)
{
    size_t n = pull(run, &run->shell->child.out);
    enum sbx_status st = SBX_OK;

    if (n > 0) {
        st = sbx_marked_push(&run->marked, run->shell->chunk.data, n, err);
        run->last_ns = sbx_clock_now();
    }
    return st;
}

static void feed(struct run *run)
{
    ssize_t n = sbx_child_write(run->shell->child.in, run->input.data + run->sent,
                                run->input.len - run->sent);

    if (n > 0) {
        run->sent += (size_t)n;
        run->last_ns = sbx_clock_now();
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        /* Nobody reads it any more; what is still to come from there says why. */
        run->sent = run->input.len;
    }
}

/* The last line that the child wrote to standard error, with ": " before it, or "". */
static const char *last_words(const struct run *run, char *text, size_t cap)
{
    size_t end = run->kept_n, start;

    while (end > 0 && strchr("\r\n\t ", run->kept[end - 1]))
        end--;
    start = end;
    while (start > 0 && run->kept[start - 1] != '\n')
        start--;
    text[0] = '\0';
    if (start < end) {
        memcpy(text, ": ", 3);
        (void)sbx_quote_ascii(text + 2, cap - 2, run->kept + start, end - start);
    }
    return text;
}

/* Waits a moment for the child's end: its last words may come a little later than the end of its
 * output, its end later still. Returns whether it has ended. */
static bool wait_for_end(struct run *run, struct sbx_child_status *how)
{
    struct sbx_child *child = &run->shell->child;
    uint64_t until = sbx_clock_now() + SBX_END_GRACE_MS * (uint64_t)SBX_NS_PER_MS;
    bool ended = false;

    while (!ended && sbx_clock_now() < until) {
        struct pollfd diag = {.fd = child->diag, .events = POLLIN};

        ended = sbx_child_ended(child, how);
        (void)poll(&diag, 1, ended ? 0 : 5);
        if (diag.revents)
            (void)pull_diag(run);
    }
    while (child->diag >= 0 && pull_diag(run) > 0 && sbx_clock_now() < until)
        ;
    return ended;
}

/* The output has ended without the exit line: finds out why, and ends what is left. */
static enum sbx_status lost(struct run *run, struct sbx_error *err)
{
    struct sbx_child_status how = {SBX_CHILD_UNKNOWN, 0};
    char words[320], hint[96] = "";
    enum sbx_status st = sbx_marked_end(&run->marked, err);
    bool ended;

    if (!st && run->newline && !run->heard)
        st = give(run, "\n", 1, err);
    if (st)
        return st;
    ended = wait_for_end(run, &how);
    sbx_child_end(&run->shell->child, false);
    (void)last_words(run, words, sizeof(words));
    if (run->shell->hint && !run->shell->answered)
        (void)snprintf(hint, sizeof(hint), " (%s)", run->shell->hint);
    if (how.how == SBX_CHILD_EXITED)
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "COMMAND ended with status %d%s%s", how.code,
                           hint, words);
    if (how.how == SBX_CHILD_SIGNALLED)
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "COMMAND was ended by signal %d%s%s",
                           how.code, hint, words);
    return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "COMMAND %s%s%s",
                       ended ? "ended" : "closed its output", hint, words);
}

static int wait_ms(const struct run *run)
{
    uint64_t until = run->call->deadline_ns;

    if (!run->heard && run->first_ns < until)
        until = run->first_ns;
    if (run->idle_ns && run->idle_ns < until && run->last_ns < until - run->idle_ns)
        until = run->last_ns + run->idle_ns;
    return sbx_clock_poll_ms(until, TICK_MS);
}

/* Until the start line there is no telling whether COMMAND leads to a shell at all: `cat` and
 * `sleep` read what they are given, too. */
static enum sbx_status no_start(const struct run *run, enum sbx_status st, const char *what,
                                struct sbx_error *err)
{
    const char *hint = run->shell->answered ? NULL : run->shell->hint;

    return sbx_err_set(err, st, 0, "%sCOMMAND answered %s for %.0f s%s%s%s", what,
                       run->any ? "with something else than a shell's output" : "nothing",
                       (double)(sbx_clock_now() - run->began_ns) / SBX_NS_PER_S, hint ? " (" : "",
                       hint ? hint : "", hint ? ")" : "");
}

static enum sbx_status check_idle(const struct run *run, struct sbx_error *err)
{
    uint64_t now = sbx_clock_now();

    if (!run->heard && now >= run->first_ns)
        return no_start(run, SBX_E_UNREACHABLE, "", err);
    if (run->idle_ns == 0 || now < run->last_ns || now - run->last_ns < run->idle_ns)
        return SBX_OK;
    return sbx_err_set(err, SBX_E_LIMIT, 0, "nothing came from COMMAND for %.1f s",
                       (double)run->idle_ns / SBX_NS_PER_S);
}

/* Moves what can be moved without waiting. `readable`: there is output, or its end. */
static enum sbx_status move(struct run *run, bool readable, struct sbx_error *err)
{
    enum sbx_status st = readable ? pull_out(run, err) : SBX_OK;

    if (st || run->done)
        return st;
    return run->shell->child.out < 0 ? lost(run, err) : check_idle(run, err);
}

/* Waits for whatever comes first and deals with it. */
static enum sbx_status turn(struct run *run, struct sbx_error *err)
{
    struct sbx_child *child = &run->shell->child;
    struct pollfd fds[] = {
        {.fd = run->call->cancel_fd, .events = POLLIN},
        {.fd = run->sent < run->input.len ? child->in : -1, .events = POLLOUT},
        {.fd = child->diag, .events = POLLIN},
        {.fd = child->out, .events = POLLIN},
    };
    int ready = poll(fds, N_ELEMENTS(fds), wait_ms(run));
    enum sbx_status st;

    if (ready < 0 && errno != EINTR)
        return sbx_err_host(err, errno, "poll", "wait for COMMAND");
    st = sbx_transport_check(run->call, err);
    if (st == SBX_E_DEADLINE && !run->heard)
        st = no_start(run, st, "deadline passed: ", err);
    if (st || ready < 0)
        return st;
    /* Somebody else may hold the pipe of a child that has ended: that must not keep us. */
    if (ready == 0 && sbx_child_ended(child, NULL))
        return lost(run, err);
    if (fds[1].revents)
        feed(run);
    if (fds[2].revents)
        (void)pull_diag(run);
    return move(run, fds[3].revents, err);
}

/* What is there now, and no more than a bounded amount of it. */
static void drain(struct run *run, int *fd)
{
    unsigned i;

    for (i = 0; i < SBX_DRAIN_CHUNKS && *fd >= 0 && pull(run, fd) > 0; i++)
        ;
}

static void drain_diag(struct run *run)
{
    unsigned i;

    for (i = 0; i < SBX_DRAIN_CHUNKS && run->shell->child.diag >= 0 && pull_diag(run) > 0; i++)
        ;
}

static enum sbx_status make_ready(struct run *run, struct sbx_error *err)
{
    struct sbx_shell *shell = run->shell;
    enum sbx_status st = sbx_buf_reserve(&shell->chunk, SBX_SHELL_CHUNK, err);

    if (st)
        return st;
    if (shell->child.pid && sbx_child_ended(&shell->child, NULL))
        sbx_child_end(&shell->child, false);
    if (shell->child.pid) {
        drain(run, &shell->child.out); /* came after the last exit line, belongs to no script */
        return SBX_OK;
    }
    if (shell->starts_left == 0)
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "COMMAND ended early once too often");
    shell->starts_left--;
    return sbx_child_start(&shell->child, shell->argv, err);
}

enum sbx_status sbx_shell_run(struct sbx_shell *shell, const struct sbx_call *call,
                              const char *script, size_t script_len, uint64_t idle_ns,
                              struct sbx_sink out, struct sbx_sink diag, struct sbx_exit *ret_exit,
                              struct sbx_error *err)
{
    struct run run = {.shell = shell, .call = call, .out = out, .diag = diag, .idle_ns = idle_ns};
    enum sbx_status st = make_ready(&run, err);

    if (st)
        return st;
    sbx_random_hex(run.nonce, SBX_MARKED_NONCE / 2);
    run.marked =
        (struct sbx_marked){.nonce = run.nonce, .ctx = &run, .bytes = on_bytes, .line = on_line};
    run.began_ns = run.last_ns = sbx_clock_now();
    run.first_ns = SBX_NEVER;
    if (call->idle_ns > 0 && call->idle_ns < SBX_NEVER - run.began_ns && shell->child.group)
        run.first_ns = run.began_ns + call->idle_ns;
    st = make_input(&run, script, script_len, err);
    while (!st && !run.done)
        st = turn(&run, err);
    if (!st)
        drain_diag(&run);
    sbx_buf_done(&run.input);
    if (st) {
        sbx_child_end(&shell->child, false);
        return st;
    }
    shell->answered = true;
    *ret_exit = (struct sbx_exit){SBX_EXIT_EXITED, run.code};
    return SBX_OK;
}

void sbx_shell_end(struct sbx_shell *shell)
{
    sbx_child_end(&shell->child, true);
    sbx_buf_done(&shell->chunk);
}
