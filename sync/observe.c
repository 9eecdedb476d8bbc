/* In comes standard error of the remote side, untrusted text; it leaves escaped and cut. */
#include "sync/observe.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"

#define PROGRESS_NS (SBX_NS_PER_S / 10)

void sbx_observer_init(struct sbx_observer *o, sbx_observe_fn *fn, void *ctx)
{
    memset(o, 0, sizeof(*o));
    o->fn = fn;
    o->ctx = ctx;
    (void)pthread_mutex_init(&o->lock, NULL); /* cannot fail without attributes on Linux */
}

void sbx_observer_done(struct sbx_observer *o)
{
    (void)pthread_mutex_destroy(&o->lock);
}

/* With the lock held: tells `kind` with the numbers as they stand. */
static void tell(struct sbx_observer *o, enum sbx_event_kind kind, const struct sbx_event *more)
{
    struct sbx_event event = o->now;

    event.kind = kind;
    if (more) {
        event.warning = more->warning;
        event.outcome = more->outcome;
        event.reason = more->reason;
        event.path = more->path;
        event.path_len = more->path_len;
        event.display = more->display;
        event.unstable = more->unstable;
        event.unconfirmed = more->unconfirmed;
        event.replaces = more->replaces;
    }
    if (o->fn)
        o->fn(o->ctx, &event);
}

static void tell_progress(struct sbx_observer *o)
{
    uint64_t now;

    if (!o->fn)
        return;
    now = sbx_clock_now();
    if (now - o->told_ns < PROGRESS_NS)
        return;
    o->told_ns = now;
    tell(o, SBX_EVENT_PROGRESS, NULL);
}

void sbx_observe_stage(struct sbx_observer *o, enum sbx_stage stage)
{
    pthread_mutex_lock(&o->lock);
    o->now.stage = stage;
    tell(o, SBX_EVENT_STAGE, NULL);
    pthread_mutex_unlock(&o->lock);
}

void sbx_observe_warning(struct sbx_observer *o, enum sbx_warning warning)
{
    const struct sbx_event event = {.warning = warning};

    pthread_mutex_lock(&o->lock);
    tell(o, SBX_EVENT_WARNING, &event);
    pthread_mutex_unlock(&o->lock);
}

void sbx_observe_file(struct sbx_observer *o, const struct sbx_event *file)
{
    char display[SBX_STDERR_LINE];
    struct sbx_event event = *file;

    if (!o->fn)
        return;
    event.display = sbx_quote_ascii(display, sizeof(display), file->path, file->path_len);
    pthread_mutex_lock(&o->lock);
    if (o->now.stage == SBX_STAGE_TRANSFER)
        o->now.files_done++;
    tell(o, SBX_EVENT_FILE, &event);
    tell_progress(o);
    pthread_mutex_unlock(&o->lock);
}

void sbx_observe_records(struct sbx_observer *o, uint64_t records)
{
    pthread_mutex_lock(&o->lock);
    o->now.records = records;
    tell_progress(o);
    pthread_mutex_unlock(&o->lock);
}

void sbx_observe_wanted(struct sbx_observer *o, uint64_t files, uint64_t bytes)
{
    pthread_mutex_lock(&o->lock);
    o->now.files_wanted += files;
    o->now.bytes_wanted += bytes;
    tell_progress(o);
    pthread_mutex_unlock(&o->lock);
}

void sbx_observe_bytes(struct sbx_observer *o, uint64_t n)
{
    pthread_mutex_lock(&o->lock);
    o->now.bytes_done += n;
    tell_progress(o);
    pthread_mutex_unlock(&o->lock);
}

void sbx_observe_text(struct sbx_observer *o, const char *path, size_t n, const char *text)
{
    char display[SBX_STDERR_LINE];
    const struct sbx_event event = {.display = display};

    if (!o->fn)
        return;
    (void)snprintf(display, sizeof(display), "%s: %s", SBX_QUOTE_N(path, n), text);
    pthread_mutex_lock(&o->lock);
    tell(o, SBX_EVENT_DIAG, &event);
    pthread_mutex_unlock(&o->lock);
}

static void diag_line(struct sbx_observe_diag *diag)
{
    char display[SBX_STDERR_LINE];
    const struct sbx_event event = {.display = display};

    if (diag->line_len > 0 && diag->o->fn) {
        (void)sbx_quote_ascii(display, sizeof(display), diag->line, diag->line_len);
        pthread_mutex_lock(&diag->o->lock);
        tell(diag->o, SBX_EVENT_DIAG, &event);
        pthread_mutex_unlock(&diag->o->lock);
    }
    diag->line_len = 0;
}

static enum sbx_status diag_write(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct sbx_observe_diag *diag = ctx;
    const char *p = bytes;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n' || p[i] == '\r')
            diag_line(diag);
        else if (diag->line_len < sizeof(diag->line))
            diag->line[diag->line_len++] = p[i];
    }
    return SBX_OK;
}

struct sbx_sink sbx_observe_diag(struct sbx_observe_diag *diag)
{
    return (struct sbx_sink){.write = diag_write, .ctx = diag};
}

void sbx_observe_diag_end(struct sbx_observe_diag *diag)
{
    diag_line(diag);
}
