/* Stage 4 to 6: files on their way from the transport to their names.
 *
 * The transfer thread runs the transport's fetch; its queue callbacks (sync/flight.c) put what
 * arrives into temporaries and hand complete ones over in batches. The conductor thread
 * (sync/transfer.c) confirms and publishes a batch (sync/publish.c) while the next is received. */
#ifndef SYNC_TRANSFER_H
#define SYNC_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "fsutil/walk.h"
#include "sbx/transport.h"
#include "sync/batch.h"
#include "sync/pass.h"

/* A file to be fetched once more, since it changed while it was fetched. */
struct sbx_again {
    uint32_t item;
    bool ctime_only; /* only its ctime moved: digest is that of the first read */
    unsigned char digest[SBX_DIGEST_LEN];
};

struct sbx_flight;

struct sbx_transfer {
    struct sbx_pass *p;
    const uint32_t *order; /* borrowed; records in the order of transfer */
    size_t n_order;
    bool last_round; /* what changes now has failed */

    /* The transfer thread's alone. */
    size_t cursor;
    struct sbx_fs_walk *walk;  /* owned; makes directories */
    struct sbx_flight *busy;   /* owned; taken and not ended */
    struct sbx_flight *spare;  /* owned */
    struct sbx_batch *filling; /* owned */
    bool needs_run;            /* serial only: a batch waits for a `run`, so the fetch has to end */
    uint64_t bytes_left;       /* of the pass */
    uint64_t reserved;         /* of those, for files under way */
    uint64_t began_ns;
    uint64_t began_received;

    /* Directories made; owned, the text is in p->text. After the rounds the conductor's. */
    const char **made;
    size_t n_made, cap_made;

    /* The conductor's alone. */
    struct sbx_fs_walk *publish_walk; /* owned */

    /* Shared by the two, under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sbx_batch *ready; /* owned; oldest first */
    unsigned n_ready;
    bool finished;
    int ready_fd;            /* owned; an eventfd, readable while a batch may be begun */
    struct sbx_again *again; /* owned */
    size_t n_again, cap_again;
};

/* Receives, confirms and publishes what plan wants, in as many rounds as it takes. */
SBX_MUST_CHECK enum sbx_status sbx_sync_transfer(struct sbx_pass *p, struct sbx_error *err);

#endif
