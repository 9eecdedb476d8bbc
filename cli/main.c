#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <sbx/sync.h>
#include <sbx/transport.h>

#include "cli/array.h"
#include "cli/clock.h"
#include "cli/opts.h"
#include "cli/output.h"
#include "cli/usage.h"

/* The exit statuses of sbx-sync(1). */
enum exit_status {
    EXIT_COMPLETE = 0,
    EXIT_PARTIAL = 1,
    EXIT_USAGE = 2,
    EXIT_SOURCE = 3,
    EXIT_DEST = 4,
    EXIT_BUSY = 5,
    EXIT_SIGNAL = 128,
};

/* A second signal within this time is taken for the first one's echo: timeout(1), shells and
 * supervisors signal a process and then its group. */
#define ECHO_MS 500

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A handler has no other way to learn of these. The switch is never freed, since a signal may come
 * until the process ends. */
static struct sbx_cancel *cancel_switch;
static atomic_int first_signal;
static _Atomic uint64_t signal_ms[NSIG]; /* when each came first; 0: it did not */

/* The first signal ends the pass in order; whoever repeats it does not want to wait for that.
 * SIGHUP is not counted: a closed terminal sends several. */
static void on_signal(int sig)
{
    int keep = errno, none = 0;
    uint64_t never = 0, now = sbx_cli_now_ms();

    (void)atomic_compare_exchange_strong(&first_signal, &none, sig);
    if (atomic_compare_exchange_strong(&signal_ms[sig], &never, now) || sig == SIGHUP ||
        now - never < ECHO_MS) {
        sbx_cancel(cancel_switch);
    } else {
        (void)signal(sig, SIG_DFL);
        (void)raise(sig);
    }
    errno = keep;
}

/* A signal that is ignored when we start stays so: nohup(1) and shells mean it. */
static void catch_signals(void)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    (void)sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < N_ELEMENTS(end_signals); i++) {
        struct sigaction old;

        if (sigaction(end_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(end_signals[i], &act, NULL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
}

/* Fills closed standard descriptors, so that no file of ours takes their place. They are opened
 * the wrong way round: a report that goes to a closed standard output must fail, not vanish. */
static int fill_std_fds(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd) /* banned-ok: no peer here */
            return -1;
    }
    return 0;
}

static int exit_status(enum sbx_status st, enum sbx_pass_outcome pass, int sig)
{
    switch (st) {
    case SBX_OK:
        return pass == SBX_PASS_COMPLETE ? EXIT_COMPLETE : EXIT_PARTIAL;
    case SBX_E_USAGE:
        return EXIT_USAGE;
    case SBX_E_BUSY:
        return EXIT_BUSY;
    case SBX_E_UNREACHABLE:
    case SBX_E_UNAUTHORISED:
    case SBX_E_GONE:
    case SBX_E_REMOTE:
    case SBX_E_LIMIT:
    case SBX_E_DEADLINE:
        return EXIT_SOURCE;
    case SBX_E_CANCELLED:
        return sig ? EXIT_SIGNAL + sig : EXIT_PARTIAL;
    case SBX_E_NOMEM:
    case SBX_E_HOST:
        break;
    }
    return EXIT_DEST;
}

static int print_text(const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
        return EXIT_COMPLETE;
    sbx_cli_error("cannot write to standard output");
    return EXIT_DEST;
}

static int print_version(void)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "sbx-sync %s\n", sbx_version());
    return print_text(text);
}

/* The pass itself, from a report that is empty to one that is written. */
static int run_pass(struct sbx_cli_opts *opts, struct sbx_transport *transport,
                    struct sbx_report *report)
{
    struct sbx_error err = {0}, write_err = {0};
    enum sbx_status st, written = SBX_OK;
    struct sbx_cli_output out;
    int code, sig;

    sbx_cli_output_init(&out, opts);
    opts->pass.cancel = cancel_switch;
    opts->pass.observe = sbx_cli_observe;
    opts->pass.observe_ctx = &out;
    st = sbx_sync(transport, &opts->pass, report, &err);
    sig = atomic_load(&first_signal);
    if (opts->json)
        written = sbx_cli_write_report(report, &write_err);
    sbx_cli_finish(&out, report, st, &err, sig);
    code = exit_status(st, sbx_report_outcome(report), sig);
    if (written) {
        sbx_cli_error(write_err.msg);
        if (code == EXIT_COMPLETE || code == EXIT_PARTIAL)
            code = EXIT_DEST;
    }
    return code;
}

static int run(struct sbx_cli_opts *opts)
{
    struct sbx_source_options source = SBX_SOURCE_OPTIONS_INIT;
    struct sbx_transport *transport = NULL;
    struct sbx_report *report = NULL;
    struct sbx_error err = {0};
    enum sbx_status st;
    int code;

    source.command = opts->command;
    source.cacert = opts->cacert;
    st = sbx_init(&err);
    if (!st)
        st = sbx_report_new(&report, &err);
    if (!st)
        st = sbx_cancel_new(&cancel_switch, &err);
    if (!st)
        st = sbx_transport_open(opts->source, &source, &transport, &err);
    if (!st) {
        catch_signals();
        code = run_pass(opts, transport, report);
    } else {
        sbx_cli_error(err.msg);
        code = exit_status(st, SBX_PASS_FAILED, 0);
    }
    sbx_transport_free(transport);
    sbx_report_free(report);
    return code;
}

int main(int argc, char **argv)
{
    struct sbx_cli_opts opts;
    struct sbx_error err = {0};

    if (fill_std_fds() < 0)
        return EXIT_DEST;
    if (sbx_cli_opts_parse(&opts, argc, argv, &err)) {
        sbx_cli_error(err.msg);
        if (opts.hint)
            (void)fputs("Try 'sbx-sync --help'.\n", stderr);
        return EXIT_USAGE;
    }
    if (opts.help)
        return print_text(sbx_cli_usage);
    if (opts.version)
        return print_version();
    return run(&opts);
}
