/* What the stages of one pass share. */
#ifndef SYNC_PASS_H
#define SYNC_PASS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fsutil/tmp.h"
#include "listing/list.h"
#include "preflight/preflight.h"
#include "sbx/sync.h"
#include "state/manifest.h"
#include "state/run.h"
#include "state/state.h"
#include "sync/observe.h"
#include "sync/options.h"
#include "transport/transport.h"

#define SBX_ITEM_EXISTS 1u       /* plan found a regular file at the name */
#define SBX_ITEM_REPLACES 2u     /* ... that no manifest line vouches for */
#define SBX_ITEM_LATE 4u         /* failed or deferred last time: comes late */
#define SBX_ITEM_LAST 8u         /* was tried last time, in vain: comes last of all */
#define SBX_ITEM_RENEWED 16u     /* unchanged, but the host's stamp was renewed: see fact */
#define SBX_ITEM_UNSTABLE 32u    /* published while it changed (--allow-changing) */
#define SBX_ITEM_UNCONFIRMED 64u /* published without a confirmation (--no-confirm) */
#define SBX_ITEM_AGAIN 128u      /* changed while it was fetched: is fetched once more */

/* What becomes of one record, beside it: memory for each record is a promise. */
struct sbx_item {
    uint32_t fact;   /* index + 1 into pass->facts; 0: none */
    uint32_t note;   /* index + 1 into pass->notes; 0: none */
    uint16_t mode;   /* permission bits of the file that is replaced */
    uint8_t outcome; /* enum sbx_outcome; NONE: wanted, or not looked at yet */
    uint8_t reason;  /* enum sbx_reason */
    uint8_t flags;   /* SBX_ITEM_… */
    uint8_t absent;  /* how many directories on the way were missing in plan */
    bool tried;      /* was begun in this pass */
};

/* A file on the host whose content is proved: published or renewed in this pass. */
struct sbx_fact {
    struct sbx_host_facts host;
    unsigned char digest[SBX_DIGEST_LEN];
};

/* What the report says beside a reason. */
struct sbx_note {
    const char *with; /* host spelling or entry in the way; in pass->text; NULL: none */
    const char *step; /* in pass->text; NULL: none */
    int os_errno;
};

struct sbx_pass {
    const struct sbx_options *o; /* resolved: no zero means "default" any more */
    struct sbx_transport *transport;
    const char *identity;
    struct sbx_observer observer;
    int cancel_fd;
    uint64_t started_ns, stop_ns, deadline_ns;
    int64_t started_s;

    int rootfd; /* owned; -1: missing, in a dry run */
    struct sbx_state state;

    struct sbx_list *list; /* owned */
    enum sbx_listing_state listing_state;
    struct sbx_record *records; /* borrowed from list, sorted by path; n of them */
    size_t n;
    struct sbx_preflight *pre; /* owned */
    uint32_t *order;           /* owned; wanted records in the order of transfer */
    size_t n_order;
    uint64_t wanted_bytes;

    /* The conductor's alone. */
    struct sbx_manifest_reader *manifest; /* owned; NULL: none, or not to be used */
    uint64_t manifest_written_ns;         /* 0: not yet */
    struct sbx_fact *facts;               /* owned */
    size_t n_facts, cap_facts;
    uint64_t published; /* bytes */

    /* The transfer thread's alone while there is one. */
    struct sbx_run run;

    /* Shared by the two, under `lock`. */
    pthread_mutex_t lock;
    struct sbx_item *items; /* owned; n of them */
    struct sbx_note *notes; /* owned */
    size_t n_notes, cap_notes;
    struct sbx_arena text;
    uint64_t serial;   /* of temporaries */
    uint64_t received; /* bytes; the transfer thread, which alone adds to it, reads it without */
    bool warned[SBX_WARNINGS];
    bool temporaries_left;         /* some could not be removed: the run record stays */
    struct sbx_error host_error;   /* the destination failed: nothing more is transferred */
    unsigned eio_in_row;           /* files */
    struct sbx_error source_error; /* the source was lost */
};

bool sbx_pass_cancelled(const struct sbx_pass *p);
/* SBX_E_CANCELLED or SBX_E_DEADLINE once `until_ns` or a cancellation has come. */
SBX_MUST_CHECK enum sbx_status sbx_pass_check(const struct sbx_pass *p, uint64_t until_ns,
                                              struct sbx_error *err);

/* Decides an item, tells the observer. Takes the lock. */
void sbx_pass_decide(struct sbx_pass *p, size_t i, enum sbx_outcome outcome,
                     enum sbx_reason reason);
/* The same with the entry in the way, or another spelling (copied; "" for none). */
void sbx_pass_refuse(struct sbx_pass *p, size_t i, enum sbx_reason reason, const char *with);
/* The same for a call that failed on the host: decides failed `host`, and ends the transfer stage
 * where the destination is full, read-only or failing. */
void sbx_pass_host_failed(struct sbx_pass *p, size_t i, const struct sbx_error *err);
/* Sets a SBX_ITEM_… flag. Takes the lock. */
void sbx_pass_flag(struct sbx_pass *p, size_t i, uint8_t flag);
/* Why nothing more may be transferred; NONE: go on. Takes the lock. */
enum sbx_reason sbx_pass_ended(struct sbx_pass *p);

void sbx_pass_warn(struct sbx_pass *p, enum sbx_warning warning);

/* Keeps what is known of a file on the host. */
SBX_MUST_CHECK enum sbx_status sbx_pass_fact(struct sbx_pass *p, size_t i, const struct stat *st,
                                             const unsigned char digest[SBX_DIGEST_LEN],
                                             struct sbx_error *err);

/* The directory part of a path: everything before the last slash, or nothing. */
size_t sbx_dir_len(const char *path, size_t n);

#endif
