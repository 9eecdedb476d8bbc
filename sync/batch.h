/* Complete temporaries on their way from the transfer thread to the conductor. */
#ifndef SYNC_BATCH_H
#define SYNC_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/error.h"

struct sbx_transfer;

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

/* Adds to the batch that is being filled, and hands it over once it is full. */
SBX_MUST_CHECK enum sbx_status sbx_batch_add(struct sbx_transfer *t, const struct sbx_ready *ready,
                                             struct sbx_error *err);
void sbx_batch_hand_over(struct sbx_transfer *t);
void sbx_batch_free(struct sbx_batch *batch);

#endif
