/* One pass: mirror the directory of a transport into a directory of this host.
 *
 *   struct sbx_options o = SBX_OPTIONS_INIT;
 *   struct sbx_source_options source = SBX_SOURCE_OPTIONS_INIT;
 *   source.command = (const char *const[]){"ssh", "host", "sh", NULL};
 *   sbx_transport_open("exec:/srv/results", &source, &transport, &err);
 *   sbx_report_new(&report, &err);
 *   o.dest = "out";
 *   st = sbx_sync(transport, &o, report, &err);
 *   ... sbx_report_outcome(report), sbx_report_count(report, SBX_PUBLISHED), sbx_report_json(...)
 *   sbx_report_free(report);
 *   sbx_transport_free(transport);
 *
 * Thread safety: any number of passes may run at the same time in one process, each with its own
 * transport and report. sbx_cancel() may be called from anywhere. Nothing of the process is
 * changed. */
#ifndef SBX_SYNC_H
#define SBX_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sbx/error.h"
#include "sbx/export.h"
#include "sbx/sink.h"
#include "sbx/transport.h"
#include "sbx/verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares the libraries below. Call it once before threads are started; again is fine. */
SBX_API SBX_MUST_CHECK enum sbx_status sbx_init(struct sbx_error *err);

/* The version of the library that is running, such as "0.1.0". */
SBX_API const char *sbx_version(void);

struct sbx_cancel;

/* A switch that ends the passes that were given it, and can be used once. Must outlive them. */
SBX_API SBX_MUST_CHECK enum sbx_status sbx_cancel_new(struct sbx_cancel **ret,
                                                      struct sbx_error *err);
SBX_API void sbx_cancel_free(struct sbx_cancel *cancel); /* NULL is fine */

/* Ends the passes soon: what is published stays, what is under way is dropped, temporaries go, the
 * report is complete. Async-signal-safe, from any thread, any number of times; keeps errno. */
SBX_API void sbx_cancel(struct sbx_cancel *cancel);

enum sbx_stage {
    SBX_STAGE_LIST = 0,
    SBX_STAGE_PLAN,
    SBX_STAGE_TRANSFER, /* with confirm and publish, which run beside it */
    SBX_STAGE_RECORD,
};

enum sbx_event_kind {
    SBX_EVENT_STAGE = 0, /* stage has begun */
    SBX_EVENT_PROGRESS,  /* numbers moved; at most ten times a second */
    SBX_EVENT_FILE,      /* a file has its outcome: display, outcome, reason */
    SBX_EVENT_WARNING,   /* warning, once per kind */
    SBX_EVENT_DIAG,      /* a line of the remote side's standard error: display, escaped and cut */
};

/* What an observer is told. Valid during the call only. */
struct sbx_event {
    enum sbx_event_kind kind;
    enum sbx_stage stage;
    enum sbx_warning warning;
    enum sbx_outcome outcome;
    enum sbx_reason reason;
    const char *path; /* bytes; NULL unless a file is meant */
    size_t path_len;
    const char *display; /* printable ASCII: path or text, escaped; NULL if neither is meant */
    uint64_t records;    /* listed so far */
    uint64_t files_done, files_wanted;
    uint64_t bytes_done, bytes_wanted;
    bool unstable, unconfirmed, replaces; /* of a file that is or would be published */
};

/* Called from one thread at a time, though not always the same; must return soon and must not call
 * back into the pass, sbx_cancel() excepted. */
typedef void sbx_observe_fn(void *ctx, const struct sbx_event *event);

enum sbx_names { SBX_NAMES_PORTABLE = 0, SBX_NAMES_POSIX };
enum sbx_durability { SBX_DURABILITY_BATCH = 0, SBX_DURABILITY_FULL, SBX_DURABILITY_NONE };

/* Everything is borrowed for the length of the pass. A limit of 0 means its default, which
 * docs/ARCHITECTURE.md lists. Sizes are bytes. */
struct sbx_options {
    uint32_t version;          /* SBX_OPTIONS_VERSION, set by SBX_OPTIONS_INIT */
    const char *dest;          /* host directory; its last component is made if it is missing */
    const char *source;        /* how the report names the source; NULL: the transport's identity */
    const char *identity;      /* replaces the transport's; NULL: the transport's */
    struct sbx_cancel *cancel; /* NULL: cannot be cancelled */
    sbx_observe_fn *observe;   /* NULL: nobody watches */
    void *observe_ctx;
    uint64_t max_records;
    uint64_t max_directories;
    uint64_t max_listing; /* decoded bytes */
    uint64_t max_files;   /* to transfer in this pass */
    uint64_t max_file_size;
    uint64_t max_bytes; /* to receive in this pass */
    double deadline_s;  /* seconds for the whole pass, waiting for the lock included */
    double wait_s; /* seconds to wait for another pass on the same destination; 0: not at all */
    double idle_s; /* seconds without a byte after which a peer is stuck */
    unsigned jobs;
    enum sbx_names names;
    enum sbx_durability durability;
    bool dry_run;    /* stop after plan; write nothing */
    bool no_confirm; /* publish without asking whether the remote file is still what was listed */
    bool allow_changing; /* publish files that are being written to, as far as listed (unstable) */
    bool ignore_ctime;   /* for sources whose ctime moves by itself */
    const char *const *exclude; /* patterns, see sbx-sync(1) */
    size_t n_exclude;
    uint64_t report_limit; /* files named in the report at most; counts are always exact */
    bool report_none;      /* name no file at all in the report (report_limit 0 is the default) */
};
#define SBX_OPTIONS_VERSION 1u
#define SBX_OPTIONS_INIT ((struct sbx_options){.version = SBX_OPTIONS_VERSION})

struct sbx_report;

SBX_API SBX_MUST_CHECK enum sbx_status sbx_report_new(struct sbx_report **ret,
                                                      struct sbx_error *err);
SBX_API void sbx_report_free(struct sbx_report *report); /* NULL is fine */

enum sbx_pass_outcome {
    SBX_PASS_FAILED = 0, /* also before sbx_sync() has returned */
    SBX_PASS_PARTIAL,
    /* everything listed is published, unchanged or excluded, and the listing had no warning */
    SBX_PASS_COMPLETE,
};
/* "complete", "partial", "failed". */
SBX_API const char *sbx_pass_outcome_name(enum sbx_pass_outcome outcome);

enum sbx_listing_state {
    SBX_LISTING_NONE = 0, /* the pass ended before it was asked for */
    SBX_LISTING_COMPLETE,
    SBX_LISTING_WARNED,
    SBX_LISTING_TRUNCATED,
    SBX_LISTING_DAMAGED,
    SBX_LISTING_MISSING, /* no such directory */
    SBX_LISTING_NOTDIR,
    SBX_LISTING_DENIED,
    SBX_LISTING_UNREACHABLE,
    SBX_LISTING_CANCELLED,
    SBX_LISTING_DEADLINE,
};
SBX_API const char *sbx_listing_state_name(enum sbx_listing_state state);

/* One named file of a report; valid as long as the report. */
struct sbx_report_file {
    const char *path; /* bytes as listed, terminated besides */
    size_t path_len;
    const char *display; /* printable ASCII */
    enum sbx_outcome outcome;
    enum sbx_reason reason;
    uint64_t size;
    bool has_digest;          /* files published in this pass */
    unsigned char digest[32]; /* BLAKE2b-256 of the content */
    bool unstable, unconfirmed, replaces;
    /* Other spellings of the same name, bytes, terminated; a directory's ends in a slash. NULL ends
     * the list. */
    const char *with[9];
    const char *step; /* what failed on the host; NULL unless reason is "host" or "host-name" */
    int os_errno;
};

SBX_API enum sbx_pass_outcome sbx_report_outcome(const struct sbx_report *report);
SBX_API enum sbx_listing_state sbx_report_listing(const struct sbx_report *report);
SBX_API uint64_t sbx_report_listed(const struct sbx_report *report);
SBX_API uint64_t sbx_report_count(const struct sbx_report *report, enum sbx_outcome outcome);
/* Links and special files, which are not listed, where the sandbox's tools could count them. */
SBX_API uint64_t sbx_report_skipped(const struct sbx_report *report);
/* Names that SBX_NAMES_PORTABLE refused and SBX_NAMES_POSIX would take. */
SBX_API uint64_t sbx_report_posix_would_take(const struct sbx_report *report);
SBX_API uint64_t sbx_report_reason(const struct sbx_report *report, enum sbx_reason reason);
SBX_API bool sbx_report_warned(const struct sbx_report *report, enum sbx_warning warning);
SBX_API uint64_t sbx_report_received(const struct sbx_report *report);  /* bytes of content */
SBX_API uint64_t sbx_report_published(const struct sbx_report *report); /* bytes of content */
SBX_API double sbx_report_elapsed(const struct sbx_report *report);     /* seconds */
/* Why the pass failed or ended early; status SBX_OK if it did not. */
SBX_API const struct sbx_error *sbx_report_error(const struct sbx_report *report);
/* The named files: refused, failed and deferred ones first. NULL from n_files on. */
SBX_API const struct sbx_report_file *sbx_report_file(const struct sbx_report *report, size_t i);
SBX_API size_t sbx_report_files(const struct sbx_report *report);

/* Writes the report as one JSON object and a newline, ASCII only: schema sbx-sync/report/1. */
SBX_API SBX_MUST_CHECK enum sbx_status sbx_report_json(const struct sbx_report *report,
                                                       struct sbx_sink out, struct sbx_error *err);

/* Runs one pass. `report` (fresh) is filled whatever happens, and agrees with the result:
 *
 *   SBX_OK              complete or partial, see the report
 *   SBX_E_USAGE         an option makes no sense, or source and dest contain each other
 *   SBX_E_BUSY          another pass holds the destination
 *   SBX_E_UNREACHABLE, SBX_E_UNAUTHORISED, SBX_E_GONE, SBX_E_REMOTE, SBX_E_LIMIT,
 *   SBX_E_DEADLINE      the listing failed: files and manifest are as they were
 *   SBX_E_HOST, SBX_E_NOMEM
 *                       the destination failed; files that were published stay
 *   SBX_E_CANCELLED     sbx_cancel() ended it */
SBX_API SBX_MUST_CHECK enum sbx_status sbx_sync(struct sbx_transport *transport,
                                                const struct sbx_options *options,
                                                struct sbx_report *report, struct sbx_error *err);

#ifdef __cplusplus
}
#endif

#endif
