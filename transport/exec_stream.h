/* Reads the stream that exec_script makes, and brings each file to the queue as it comes. */
#ifndef TRANSPORT_EXEC_STREAM_H
#define TRANSPORT_EXEC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/error.h"
#include "sbx/transport.h"
#include "transport/exec_group.h"
#include "transport/marked.h"

#define SBX_EXEC_MARKER (SBX_MARKED_NONCE + 2) /* LF, nonce, blank: what ends the content */

enum sbx_exec_state {
    SBX_EXEC_NOISE = 0, /* before the first line of ours */
    SBX_EXEC_BETWEEN,   /* the next file's line, or the end, is due */
    SBX_EXEC_CONTENT,   /* in a file: before its marker */
    SBX_EXEC_TRAILER,   /* in a file: after its marker */
    SBX_EXEC_GROUP,     /* in a group */
    SBX_EXEC_ENDED,     /* the last line has come */
};

struct sbx_exec_stream {
    const struct sbx_queue *queue;         /* borrowed */
    const struct sbx_wanted *const *files; /* borrowed; what the script was made for */
    size_t n_files;
    size_t at;      /* the file whose lines are due or under way */
    size_t ended;   /* files[0..ended) were given to the queue's end(), or put into `again` */
    size_t singles; /* files[0..singles) are asked for one by one */
    const struct sbx_wanted **again; /* borrowed, room for n_files: to be asked for one by one */
    size_t n_again;
    size_t count;         /* files of the group under way */
    struct sbx_buf group; /* owned; its payload */
    enum sbx_exec_state state;
    bool broken; /* the stream broke its rules: what push returned was about that */
    uint64_t got;
    uint64_t raw_left; /* bytes that may still come, whatever they mean */
    size_t noise;
    enum sbx_coding coding;
    struct sbx_decoder decoder;
    struct sbx_buf decoded; /* owned; its first `held` bytes may begin a marker */
    struct sbx_buf trailer; /* owned; status, blank, record */
    struct sbx_marked lines;
    char marker[SBX_EXEC_MARKER + 1]; /* terminated */
};

/* `s` must not move afterwards. nonce: borrowed. Set `singles` and `again` before a write. */
void sbx_exec_stream_init(struct sbx_exec_stream *s, const struct sbx_queue *queue,
                          const struct sbx_wanted *const files[], size_t n, const char *nonce,
                          enum sbx_coding coding);
void sbx_exec_stream_done(struct sbx_exec_stream *s);

/* A sbx_write_fn; ctx is the struct. SBX_E_REMOTE: the stream broke its rules and nothing of it can
 * be relied on from here; a file under way is not ended. */
enum sbx_status sbx_exec_stream_write(void *ctx, const void *bytes, size_t n,
                                      struct sbx_error *err);

/* The stream is over before its end: ends the file under way with `result`. `between`: also one
 * whose state is still awaited. Files of a group are not to blame, but go one by one from here.
 * Returns false if no file was ended. */
bool sbx_exec_stream_blame(struct sbx_exec_stream *s, bool between, enum sbx_fetch_result result,
                           const struct sbx_error *why);

#endif
