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
#include <sys/stat.h>

#include "base/digest.h"
#include "fsutil/tmp.h"
#include "fsutil/walk.h"
#include "sbx/transport.h"
#include "sync/confirm.h"
#include "sync/pass.h"

/* A complete temporary that waits for its name. */
struct sbx_ready {
    uint32_t item;
    bool renamed;
    bool dropped;      /* decided otherwise; its temporary is gone */
    bool confirmed;    /* the stream carried a record that agreed */
    uint64_t serial;   /* of the temporary's name */
    uint64_t dev, ino; /* of the directory in which it was made */
    uint64_t file_ino; /* of the temporary itself */
    uint64_t size;
    unsigned char digest[SBX_DIGEST_LEN];
    struct stat st; /* once renamed */
};

struct sbx_batch {
    struct sbx_ready *files; /* owned */
    size_t n, cap;
    uint64_t bytes;
    struct sbx_batch *next;
};

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

    /* transfer thread only */
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

    /* conductor only */
    struct sbx_fs_walk *publish_walk; /* owned */

    /* shared, under lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sbx_batch *ready; /* owned; oldest first */
    unsigned n_ready;
    bool finished;
    int ready_fd;            /* owned; an eventfd, readable while a batch may be begun */
    struct sbx_again *again; /* owned */
    size_t n_again, cap_again;
};

/* -- flight.c: the transport's queue -- */

struct sbx_queue sbx_flight_queue(struct sbx_transfer *t);
/* After a fetch: files that were not ended are lost, the filling batch is handed over. */
void sbx_flight_settle(struct sbx_transfer *t);
void sbx_flight_free_all(struct sbx_transfer *t);
/* -- judge.c: what becomes of a file -- */

/* It is not what was listed: once more later, or failed. `digest` only for a moved ctime. */
void sbx_judge_changed(struct sbx_transfer *t, uint32_t item, const unsigned char *digest);
/* Whether a file of `got` bytes may be published as listed, given how its confirmation came out; if
 * not, it is decided here, or put aside for the next round. */
bool sbx_judge_file(struct sbx_transfer *t, uint32_t item, enum sbx_confirmed confirmed,
                    uint64_t got, const unsigned char digest[SBX_DIGEST_LEN]);
/* Before the last round: puts what is fetched once more in the order in which it is looked up. */
void sbx_judge_sort(struct sbx_transfer *t);
/* Decides a file whose fetch ended with another result than SBX_FETCH_OK. */
void sbx_judge_result(struct sbx_transfer *t, uint32_t item, enum sbx_fetch_result result);

/* -- batch.c: complete temporaries on their way to the conductor -- */

/* Adds to the batch that is being filled, and hands it over once it is full. */
SBX_MUST_CHECK enum sbx_status sbx_batch_add(struct sbx_transfer *t, const struct sbx_ready *ready,
                                             struct sbx_error *err);
void sbx_batch_hand_over(struct sbx_transfer *t);
void sbx_batch_free(struct sbx_batch *batch);

/* -- publish.c -- */

/* Confirms what has not been, publishes, syncs, decides every file of the batch. */
SBX_MUST_CHECK enum sbx_status sbx_publish_batch(struct sbx_transfer *t, struct sbx_batch *batch,
                                                 struct sbx_error *err);
/* Removes directories that were made in this pass and are empty. */
void sbx_publish_tidy(struct sbx_transfer *t);

#endif
