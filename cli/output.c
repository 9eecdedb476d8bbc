/* In come events and a report about names that a sandbox chose: `display` and messages are
 * printable ASCII already, other spellings of a name are bytes and are escaped here. Out go bounded
 * lines. */
#include "cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/array.h"
#include "cli/text.h"

#define NAMED_FILES 20u  /* lines about files that were not brought over */
#define REMOTE_LINES 20u /* lines of the remote side's standard error */

static const char *const warning_text[SBX_WARNINGS] = {
    [SBX_WARN_FIND_ERRORS] = "the source could not be looked at everywhere; "
                             "what was listed is whole",
    [SBX_WARN_DUPLICATE] = "a file was listed twice",
    [SBX_WARN_UNCONFIRMED] = "published without asking whether files had changed meanwhile",
    [SBX_WARN_CTIME_MOVED] = "change times move though contents do not; "
                             "--ignore-ctime would save reading twice",
    [SBX_WARN_NO_LOCK] = "the file system of DEST cannot lock; "
                         "make sure that no other run uses DEST",
    [SBX_WARN_MANIFEST] = "the manifest cannot be used; every file is looked at anew",
    [SBX_WARN_MANIFEST_WRITE] = "the manifest could not be written; "
                                "the next run will fetch more than it needs to",
    [SBX_WARN_TIMES] = "modification times could not be set",
    [SBX_WARN_MODE] = "permissions of replaced files could not be carried over",
    [SBX_WARN_DIR_SYNC] = "the file system of DEST cannot sync directories; "
                          "a power failure may undo this run",
    [SBX_WARN_UNSYNCED] = "too little time was left to sync; "
                          "a power failure may undo this run or damage its files",
    [SBX_WARN_NO_NOREPLACE] = "the file system of DEST cannot keep a file that is made "
                              "meanwhile from being replaced",
    [SBX_WARN_SWEEP] = "a leftover of an earlier run could not be removed",
    [SBX_WARN_PLAIN_HTTP] = "http without encryption to another machine; "
                            "whoever is between can read and change what is sent",
    [SBX_WARN_LEASE] = "the sandbox may end before this run; its server gave it no more time",
};

static void say(struct sbx_cli_output *out, const char *fmt, ...) SBX_PRINTF(2, 3);

static void say(struct sbx_cli_output *out, const char *fmt, ...)
{
    va_list ap;

    sbx_cli_progress_clear(&out->progress);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    (void)fflush(stderr);
}

void sbx_cli_output_init(struct sbx_cli_output *out, const struct sbx_cli_opts *opts)
{
    *out = (struct sbx_cli_output){.opts = opts};
    (void)setvbuf(stderr, NULL, _IOFBF, BUFSIZ);
    out->progress.on =
        !opts->quiet && (opts->progress == SBX_CLI_PROGRESS_ON ||
                         (opts->progress == SBX_CLI_PROGRESS_AUTO && isatty(STDERR_FILENO)));
}

static bool is_missing(enum sbx_outcome outcome)
{
    return outcome == SBX_REFUSED || outcome == SBX_FAILED || outcome == SBX_DEFERRED;
}

/* What was not brought over comes at the end, from the report: it also knows why. */
static void show_file(struct sbx_cli_output *out, const struct sbx_event *e)
{
    if (!out->opts->verbose || is_missing(e->outcome))
        return;
    say(out, "sbx-sync: %s%s%s%s: %s", sbx_outcome_name(e->outcome),
        e->replaces ? " (replaces a file that no run has made)" : "",
        e->unstable ? " (unstable: it was being written to)" : "",
        e->unconfirmed ? " (unconfirmed)" : "", SBX_CLI_SHORTEN(e->display));
}

static void show_remote(struct sbx_cli_output *out, const struct sbx_event *e)
{
    if (out->opts->quiet || ++out->remote_lines > REMOTE_LINES)
        return;
    say(out, "source: %s", SBX_CLI_SHORTEN(e->display));
}

static void show_warning(struct sbx_cli_output *out, enum sbx_warning warning)
{
    const char *text = (unsigned)warning < SBX_WARNINGS ? warning_text[warning] : NULL;

    say(out, "sbx-sync: warning: %s: %s", sbx_warning_name(warning),
        text ? text : "see the report");
}

void sbx_cli_observe(void *ctx, const struct sbx_event *event)
{
    struct sbx_cli_output *out = ctx;

    switch (event->kind) {
    case SBX_EVENT_FILE:
        show_file(out, event);
        break;
    case SBX_EVENT_WARNING:
        show_warning(out, event->warning);
        break;
    case SBX_EVENT_DIAG:
        show_remote(out, event);
        break;
    case SBX_EVENT_STAGE:
    case SBX_EVENT_PROGRESS:
        break;
    }
    sbx_cli_progress_event(&out->progress, event);
}

void sbx_cli_error(const char *msg)
{
    (void)fprintf(stderr, "sbx-sync: error: %s\n", msg);
    (void)fflush(stderr);
}

/* Whoever started us may have made the pipe non-blocking; a report must not be cut for that. */
static enum sbx_status write_stdout(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    const char *p = bytes;

    (void)ctx;
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, p, n);
        struct pollfd wait = {.fd = STDOUT_FILENO, .events = POLLOUT};

        if (done >= 0) {
            p += done;
            n -= (size_t)done;
        } else if (errno == EAGAIN) {
            (void)poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            err->status = SBX_E_HOST;
            err->os_errno = errno;
            (void)snprintf(err->msg, sizeof(err->msg), "write the report to standard output: %s",
                           strerror(errno));
            return SBX_E_HOST;
        }
    }
    return SBX_OK;
}

enum sbx_status sbx_cli_write_report(const struct sbx_report *report, struct sbx_error *err)
{
    return sbx_report_json(report, (struct sbx_sink){.write = write_stdout}, err);
}

/* ", also spelled A" of an alias, ", in DEST as A" of what stands there, or ": renameat: No space
 * left on device" of a host error. */
static void why(const struct sbx_report_file *f, char *out, size_t cap)
{
    size_t n = 0;

    out[0] = '\0';
    if (f->with[0])
        n = (size_t)snprintf(out, cap, ", %s %s",
                             f->reason == SBX_REFUSE_ALIAS         ? "also spelled"
                             : f->reason == SBX_REFUSE_ALIAS_LOCAL ? "in DEST as"
                                                                   : "in DEST there is",
                             SBX_CLI_QUOTE(f->with[0]));
    if (f->with[0] && f->with[1] && n < cap)
        (void)snprintf(out + n, cap - n, " and otherwise");
    else if (f->step && n < cap)
        (void)snprintf(out + n, cap - n, ": %s: %s", f->step,
                       f->os_errno ? strerror(f->os_errno) : "failed");
}

/* Read from the report and not from events, since only it knows other spellings and causes. */
static void finish_files(struct sbx_cli_output *out, const struct sbx_report *report)
{
    uint64_t total = sbx_report_count(report, SBX_REFUSED) + sbx_report_count(report, SBX_FAILED) +
                     sbx_report_count(report, SBX_DEFERRED);
    const struct sbx_report_file *f;
    uint64_t shown = 0;

    for (size_t i = 0;
         (out->opts->verbose || shown < NAMED_FILES) && (f = sbx_report_file(report, i)); i++) {
        char more[2 * SBX_CLI_NAME_MAX];

        if (!is_missing(f->outcome))
            break;
        why(f, more, sizeof(more));
        say(out, "sbx-sync: %s (%s): %s%s", sbx_outcome_name(f->outcome),
            sbx_reason_name(f->reason), SBX_CLI_SHORTEN(f->display), more);
        shown++;
    }
    if (total > shown)
        say(out, "sbx-sync: ... and %" PRIu64 " more (use %s)", total - shown,
            out->opts->verbose ? "--report-limit" : "--json or -v");
}

static void finish_error(struct sbx_cli_output *out, const struct sbx_report *report,
                         enum sbx_status status, const struct sbx_error *err, int sig)
{
    const struct sbx_error *e = status ? err : sbx_report_error(report);

    if (status == SBX_E_CANCELLED && sig)
        say(out, "sbx-sync: error: ended by signal SIG%s", sigabbrev_np(sig));
    else if (e && e->status)
        say(out, "sbx-sync: error: %s%s", *e->msg ? e->msg : sbx_status_name(e->status),
            e->status == SBX_E_BUSY ? "; --wait SECONDS waits for it" : "");
}

/* Where a line is put together; what does not fit is left out. */
struct line {
    size_t n;
    char text[1536];
};

static void add(struct line *line, const char *fmt, ...) SBX_PRINTF(2, 3);

static void add(struct line *line, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line->text + line->n, sizeof(line->text) - line->n, fmt, ap);
    va_end(ap);
    line->n += n < 0 ? 0 : (size_t)n;
    if (line->n >= sizeof(line->text))
        line->n = sizeof(line->text) - 1;
}

/* Reasons come in the order of their outcomes, so each outcome has a range of them. */
static const struct outcome_reasons {
    enum sbx_outcome outcome;
    enum sbx_reason first, last;
    const char *text;
    bool always;
} outcomes[] = {
    {SBX_WOULD_PUBLISH, SBX_REASON_NONE, SBX_REASON_NONE, "to publish", false},
    {SBX_PUBLISHED, SBX_REASON_NONE, SBX_REASON_NONE, "published", true},
    {SBX_UNCHANGED, SBX_REASON_NONE, SBX_REASON_NONE, "unchanged", true},
    {SBX_EXCLUDED, SBX_REASON_NONE, SBX_REASON_NONE, "excluded", false},
    {SBX_REFUSED, SBX_REFUSE_ENCODING, SBX_REFUSE_HOST_NAME, "refused", false},
    {SBX_DEFERRED, SBX_DEFER_OVER_BUDGET, SBX_DEFER_HOST_FULL, "deferred", false},
    {SBX_FAILED, SBX_FAIL_CHANGED, SBX_FAIL_APPEARED, "failed", false},
};

static void add_outcome(struct line *line, const struct sbx_report *report,
                        const struct outcome_reasons *o)
{
    const char *before = " (";

    add(line, "%s%" PRIu64 " %s", line->n ? ", " : "", sbx_report_count(report, o->outcome),
        o->text);
    for (enum sbx_reason r = o->first; r && r <= o->last; r++) {
        uint64_t n = sbx_report_reason(report, r);

        if (n == 0)
            continue;
        add(line, "%s%s %" PRIu64, before, sbx_reason_name(r), n);
        before = ", ";
    }
    if (*before == ',')
        add(line, ")");
}

/* Patterns that are plain names: the sandbox itself leaves them out of the listing, so nobody knows
 * how many files that were. */
static void add_unlisted(struct line *line, const struct sbx_cli_opts *opts)
{
    const char *first = NULL;
    size_t more = 0;

    for (size_t i = 0; i < opts->pass.n_exclude; i++) {
        if (strpbrk(opts->pass.exclude[i], "/*?[\\"))
            continue;
        more += first != NULL;
        first = first ? first : opts->pass.exclude[i];
    }
    if (!first)
        return;
    add(line, "; --exclude %s", SBX_CLI_QUOTE(first));
    if (more)
        add(line, " and %zu more", more);
    add(line, ": not listed, not counted");
}

static void finish_summary(struct sbx_cli_output *out, const struct sbx_report *report)
{
    enum sbx_listing_state listing = sbx_report_listing(report);
    uint64_t posix = sbx_report_posix_would_take(report), skipped = sbx_report_skipped(report);
    bool dry_run = out->opts->pass.dry_run;
    struct line line = {.n = 0};

    for (size_t i = 0; i < N_ELEMENTS(outcomes); i++) {
        bool always = outcomes[i].outcome == SBX_WOULD_PUBLISH ? dry_run
                      : outcomes[i].outcome == SBX_PUBLISHED   ? !dry_run
                                                               : outcomes[i].always;

        if (always || sbx_report_count(report, outcomes[i].outcome))
            add_outcome(&line, report, &outcomes[i]);
    }
    add(&line, "; %s received in %.1f s: %s", SBX_CLI_BYTES(sbx_report_received(report)),
        sbx_report_elapsed(report), sbx_pass_outcome_name(sbx_report_outcome(report)));
    if (listing != SBX_LISTING_NONE && listing != SBX_LISTING_COMPLETE)
        add(&line, " (listing %s)", sbx_listing_state_name(listing));
    if (skipped)
        add(&line, "; %" PRIu64 " %s left out", skipped,
            skipped == 1 ? "link or special file" : "links or special files");
    if (listing == SBX_LISTING_COMPLETE || listing == SBX_LISTING_WARNED)
        add_unlisted(&line, out->opts);
    if (posix)
        add(&line, "; --names posix would take %" PRIu64 " of the refused names", posix);
    say(out, "sbx-sync: %s", line.text);
}

void sbx_cli_finish(struct sbx_cli_output *out, const struct sbx_report *report,
                    enum sbx_status status, const struct sbx_error *err, int sig)
{
    sbx_cli_progress_clear(&out->progress);
    (void)fflush(stderr);
    if (out->remote_lines > REMOTE_LINES)
        say(out, "source: ... and %" PRIu64 " more lines", out->remote_lines - REMOTE_LINES);
    finish_files(out, report);
    finish_error(out, report, status, err, sig);
    if (!out->opts->quiet && status != SBX_E_USAGE)
        finish_summary(out, report);
}
