/* The command line. */
#ifndef CLI_OPTS_H
#define CLI_OPTS_H

#include <stdbool.h>
#include <stddef.h>

#include <sbx/error.h>
#include <sbx/sync.h>

#define SBX_CLI_MAX_EXCLUDE 1024 /* patterns of one command line */

enum sbx_cli_progress_mode { SBX_CLI_PROGRESS_AUTO = 0, SBX_CLI_PROGRESS_ON, SBX_CLI_PROGRESS_OFF };

/* What the user asks for. Everything is borrowed from argv; do not move or copy it. */
struct sbx_cli_opts {
    struct sbx_options pass;    /* dest included */
    const char *source;         /* as it was typed */
    const char *const *command; /* what follows `--`, NULL-terminated; NULL if nothing does */
    const char *cacert;         /* NULL: the system's certificates */
    const char *exclude[SBX_CLI_MAX_EXCLUDE];
    enum sbx_cli_progress_mode progress;
    bool json, quiet, verbose;
    bool help, version; /* then nothing else is looked at */
    bool hint;          /* after a failure: --help would have told */
};

/* Reads a command line. SBX_E_USAGE: err->msg says in one line what is wrong. */
SBX_MUST_CHECK enum sbx_status sbx_cli_opts_parse(struct sbx_cli_opts *opts, int argc, char **argv,
                                                  struct sbx_error *err);

#endif
