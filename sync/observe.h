/* Telling the observer, from whichever thread, one event at a time. */
#ifndef SYNC_OBSERVE_H
#define SYNC_OBSERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "sbx/sync.h"

struct sbx_observer {
    sbx_observe_fn *fn; /* NULL: nobody watches */
    void *ctx;
    pthread_mutex_t lock;
    struct sbx_event now; /* stage and numbers as last told */
    uint64_t told_ns;     /* when progress was told last */
};

void sbx_observer_init(struct sbx_observer *o, sbx_observe_fn *fn, void *ctx);
void sbx_observer_done(struct sbx_observer *o);

void sbx_observe_stage(struct sbx_observer *o, enum sbx_stage stage);
void sbx_observe_warning(struct sbx_observer *o, enum sbx_warning warning);
/* `file` holds what is known of it: path, outcome, reason and marks. */
void sbx_observe_file(struct sbx_observer *o, const struct sbx_event *file);
/* Numbers of the listing, and of the transfer; told at most ten times a second. */
void sbx_observe_records(struct sbx_observer *o, uint64_t records);
void sbx_observe_wanted(struct sbx_observer *o, uint64_t files, uint64_t bytes);
void sbx_observe_bytes(struct sbx_observer *o, uint64_t n);

/* A line about a file, as a DIAG event: "path: text", the path escaped, `text` printable. */
void sbx_observe_text(struct sbx_observer *o, const char *path, size_t n, const char *text);

/* Standard error of one script of the remote side on its way to the observer, line by line and
 * escaped. Zero it and set `o`; each script under way has its own. */
struct sbx_observe_diag {
    struct sbx_observer *o; /* borrowed */
    char line[SBX_STDERR_LINE];
    size_t line_len;
};
struct sbx_sink sbx_observe_diag(struct sbx_observe_diag *diag);
/* Tells what came after the last line end. */
void sbx_observe_diag_end(struct sbx_observe_diag *diag);

#endif
