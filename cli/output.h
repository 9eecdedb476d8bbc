/* What a pass says: lines on standard error, and the report on standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdint.h>

#include <sbx/error.h>
#include <sbx/sync.h>

#include "cli/opts.h"
#include "cli/progress.h"

struct sbx_cli_output {
    const struct sbx_cli_opts *opts;
    struct sbx_cli_progress progress;
    uint64_t remote_lines; /* of the remote side's standard error, shown or not */
};

/* Decides what will be shown. Buffers standard error by the line. */
void sbx_cli_output_init(struct sbx_cli_output *out, const struct sbx_cli_opts *opts);

/* An sbx_observe_fn; ctx is a struct sbx_cli_output. */
void sbx_cli_observe(void *ctx, const struct sbx_event *event);

/* A line that begins with "sbx-sync: error: ". */
void sbx_cli_error(const char *msg);

/* Writes the report to standard output, all of it. */
SBX_MUST_CHECK enum sbx_status sbx_cli_write_report(const struct sbx_report *report,
                                                    struct sbx_error *err);

/* The lines at the end of a pass that gave `status`: what was not brought over, why the pass ended,
 * and the summary. `sig` is the signal that ended it, 0 for none. */
void sbx_cli_finish(struct sbx_cli_output *out, const struct sbx_report *report,
                    enum sbx_status status, const struct sbx_error *err, int sig);

#endif
