/* The line that is redrawn in place on a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sbx/sync.h>

/* {0}: off. Set `on`, then feed events; other lines may be written after _clear. */
struct sbx_cli_progress {
    bool on;
    int shown;         /* columns of the line that is there; 0: none */
    uint64_t drawn_ms; /* when it was drawn; 0: never */
    uint64_t rate_ms;  /* when rate_bytes was read */
    uint64_t rate_bytes;
    double rate; /* bytes a second, smoothed */
    enum sbx_stage stage;
};

/* Takes an event of any kind, and redraws when a stage begins or 0.1 s have passed. */
void sbx_cli_progress_event(struct sbx_cli_progress *p, const struct sbx_event *event);

/* Removes the line, so that another one can be written. */
void sbx_cli_progress_clear(struct sbx_cli_progress *p);

#endif
