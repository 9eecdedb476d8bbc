/* Reads the answer to a command of OpenSandbox's execd: one JSON object a line, with or without the
 * "data:" of Server-Sent Events. */
#ifndef TRANSPORT_EXECD_EVENTS_H
#define TRANSPORT_EXECD_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "sbx/sink.h"
#include "sbx/transport.h"
#include "transport/secrets.h"

#define SBX_EXECD_ID 32 /* hex digits of a command's id */

/* Any split of the stream gives the same answer. */
struct sbx_execd_events {
    struct sbx_sink out;               /* texts of stdout events, each ended by LF */
    struct sbx_sink diag;              /* texts of stderr events, likewise, secrets redacted */
    const struct sbx_secrets *secrets; /* borrowed; may be NULL */
    struct sbx_buf line;               /* owned */
    uint64_t raw, useful;              /* bytes that came, and bytes of stdout's texts among them */
    bool any_init;                     /* one init event was seen */
    /* The terminal event was seen: nothing after it counts, and nothing more need be read. */
    bool ended;
    struct sbx_exit exit;      /* valid if ended */
    char why[256];             /* terminated, escaped: evalue where it is no number; else "" */
    char id[SBX_EXECD_ID + 1]; /* of the first init event, terminated; "": none, or no such id */
};

void sbx_execd_events_init(struct sbx_execd_events *e, struct sbx_sink out, struct sbx_sink diag,
                           const struct sbx_secrets *secrets);
void sbx_execd_events_done(struct sbx_execd_events *e);

/* Takes bytes of the body. A failure of `out` is returned unchanged. SBX_E_LIMIT: a line of more
 * than SBX_EVENT_LINE bytes, or more bytes around the texts of stdout than any server needs (those
 * of stderr are among them). SBX_E_REMOTE: a line that is no such event, or execd's own error
 * object in place of one.
 *
 * exit: `execution_complete` is EXITED 0; an error whose evalue is a number from 0 to 255 is
 * EXITED with it; -1 is SIGNALLED, with the signal if the traceback names one (else 0), and no
 * proof of a deadline; a text that names a context deadline is DEADLINE with code 124; any other
 * text means that the command did not start or could not be waited for: UNKNOWN, told by `why`. */
enum sbx_status sbx_execd_events_write(struct sbx_execd_events *e, const char *bytes, size_t n,
                                       struct sbx_error *err);

#endif
