/* Mirrors a directory of a sandbox as a release hook would: with a deadline, and ended early and in
 * order by SIGTERM. The report goes to standard output, what was not brought over to standard
 * error.
 *
 *   mirror SOURCE DEST [COMMAND [ARG]...]
 *   mirror exec:/srv/results out docker exec -i BOX sh
 *
 *   cc mirror.c $(pkg-config --cflags --libs sbxsync) */
#include <signal.h>
#include <stdio.h>

#include <sbx/sync.h>

#define RELEASE_SECONDS 30.0

static struct sbx_cancel *cancel; /* a handler has no other way to find it */

static void on_term(int sig)
{
    (void)sig;
    sbx_cancel(cancel);
}

static enum sbx_status write_out(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    (void)ctx;
    if (fwrite(bytes, 1, n, stdout) == n)
        return SBX_OK;
    err->status = SBX_E_HOST;
    (void)snprintf(err->msg, sizeof(err->msg), "write to standard output");
    return SBX_E_HOST;
}

/* `path` is bytes that the sandbox chose; only `display` is fit for a log or a terminal. */
static void tell(const struct sbx_report *report)
{
    const struct sbx_report_file *f;

    for (size_t i = 0; (f = sbx_report_file(report, i)); i++) {
        if (f->reason && f->outcome != SBX_EXCLUDED)
            (void)fprintf(stderr, "%s (%s): %s\n", sbx_outcome_name(f->outcome),
                          sbx_reason_name(f->reason), f->display);
    }
}

/* Best effort: whatever comes of it, the sandbox may be released afterwards. */
static enum sbx_status mirror(struct sbx_transport *transport, const char *dest,
                              struct sbx_report *report, struct sbx_error *err)
{
    struct sbx_options options = SBX_OPTIONS_INIT;
    enum sbx_status st;

    options.dest = dest;
    options.cancel = cancel;
    options.deadline_s = RELEASE_SECONDS;
    options.wait_s = RELEASE_SECONDS / 10; /* for another pass into the same directory */
    st = sbx_sync(transport, &options, report, err);
    tell(report);
    if (st)
        return st;
    return sbx_report_json(report, (struct sbx_sink){.write = write_out}, err);
}

int main(int argc, char **argv)
{
    struct sbx_source_options source = SBX_SOURCE_OPTIONS_INIT;
    struct sigaction act = {.sa_handler = on_term};
    struct sbx_transport *transport = NULL;
    struct sbx_report *report = NULL;
    struct sbx_error err = {0};
    enum sbx_status st;
    int code = 2;

    if (argc < 3) {
        (void)fputs("usage: mirror SOURCE DEST [COMMAND [ARG]...]\n", stderr);
        return code;
    }
    if (argc > 3)
        source.command = (const char *const *)argv + 3;
    st = sbx_init(&err); /* once, before other threads */
    if (!st)
        st = sbx_cancel_new(&cancel, &err);
    if (!st)
        st = sbx_report_new(&report, &err);
    if (!st)
        st = sbx_transport_open(argv[1], &source, &transport, &err);
    if (!st) {
        (void)sigaction(SIGTERM, &act, NULL);
        st = mirror(transport, argv[2], report, &err);
    }
    if (st)
        (void)fprintf(stderr, "mirror: %s: %s\n", sbx_status_name(st), err.msg);
    else
        code = sbx_report_outcome(report) == SBX_PASS_COMPLETE ? 0 : 1;
    sbx_transport_free(transport);
    sbx_report_free(report);
    return code; /* the cancel switch stays: a signal may still come */
}
