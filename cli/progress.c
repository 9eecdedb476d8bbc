#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/text.h"

#define REDRAW_MS 100
#define RATE_S 3.0 /* seconds over which the rate is smoothed */
#define MAX_COLUMNS 160

/* Columns that may be written without the terminal going on to its next line. */
static int columns(void)
{
    struct winsize w = {0};

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
        return 79;
    return w.ws_col > MAX_COLUMNS ? MAX_COLUMNS : w.ws_col - 1;
}

static void measure(struct sbx_cli_progress *p, uint64_t now, uint64_t bytes)
{
    double seconds = (double)(now - p->rate_ms) / 1000;

    if (p->rate_ms == 0 || bytes < p->rate_bytes) {
        p->rate = 0;
    } else if (seconds > 0) {
        double rate = (double)(bytes - p->rate_bytes) / seconds;

        p->rate += p->rate > 0 ? (rate - p->rate) * seconds / (seconds + RATE_S) : rate;
    }
    p->rate_ms = now;
    p->rate_bytes = bytes;
}

static void compose_transfer(const struct sbx_cli_progress *p, const struct sbx_event *e, char *out,
                             size_t cap)
{
    uint64_t left = e->bytes_wanted > e->bytes_done ? e->bytes_wanted - e->bytes_done : 0;
    char time_left[SBX_CLI_SIZE_MAX] = "-:--";

    if (p->rate >= 1)
        (void)sbx_cli_duration(time_left, (uint64_t)((double)left / p->rate));
    (void)snprintf(out, cap, "transfer: %" PRIu64 "/%" PRIu64 " files, %s/%s, %s/s, %s left",
                   e->files_done, e->files_wanted, SBX_CLI_BYTES(e->bytes_done),
                   SBX_CLI_BYTES(e->bytes_wanted), SBX_CLI_BYTES((uint64_t)p->rate), time_left);
}

static void compose(const struct sbx_cli_progress *p, const struct sbx_event *e, char *out,
                    size_t cap)
{
    switch (p->stage) {
    case SBX_STAGE_LIST:
        (void)snprintf(out, cap, "list: %" PRIu64 " files", e->records);
        break;
    case SBX_STAGE_PLAN:
        (void)snprintf(out, cap, "plan: %" PRIu64 " files", e->records);
        break;
    case SBX_STAGE_TRANSFER:
        compose_transfer(p, e, out, cap);
        break;
    case SBX_STAGE_RECORD:
        (void)snprintf(out, cap, "record: %" PRIu64 " files", e->files_done);
        break;
    }
}

/* Blanks over what is left of a longer line, rather than an escape sequence: that also reads well
 * in a log, where --progress may send it. */
static void draw(struct sbx_cli_progress *p, const char *line)
{
    int width = columns(), len = (int)strlen(line);

    if (len > width)
        len = width;
    (void)fprintf(stderr, "\r%.*s%*s", len, line, p->shown > len ? p->shown - len : 0, "");
    (void)fflush(stderr);
    p->shown = len;
}

void sbx_cli_progress_event(struct sbx_cli_progress *p, const struct sbx_event *event)
{
    bool begins = event->kind == SBX_EVENT_STAGE;
    char line[MAX_COLUMNS + 1] = "";
    uint64_t now;

    if (!p->on)
        return;
    now = sbx_cli_now_ms();
    if (begins) {
        p->stage = event->stage;
        p->rate_ms = 0;
    } else if (now - p->drawn_ms < REDRAW_MS) {
        return;
    }
    measure(p, now, event->bytes_done);
    compose(p, event, line, sizeof(line));
    draw(p, line);
    p->drawn_ms = now;
}

void sbx_cli_progress_clear(struct sbx_cli_progress *p)
{
    if (p->shown == 0)
        return;
    (void)fprintf(stderr, "\r%*s\r", p->shown, "");
    p->shown = 0;
}
