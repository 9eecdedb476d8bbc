/* DEST/.sbx-sync/manifest.jsonl: what the destination holds, and of which remote version.
 *
 * A header line, a line per file in path order, a trailer line with their count and a BLAKE2b-256
 * of everything before it. It is merged, not loaded: reading gives one line at a time, and writing
 * takes over old lines as they stand. */
#ifndef STATE_MANIFEST_H
#define STATE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "sbx/sync.h"
#include "sbx/verdict.h"

/* The published file as it was on the host right after it was published. */
struct sbx_host_facts {
    uint64_t ino;
    uint64_t size;
    struct sbx_time mtime;
    struct sbx_time ctime;
};

struct sbx_line {
    const char *path; /* borrowed from the reader until its next call */
    size_t path_len;
    uint64_t size; /* the remote version: all that was listed */
    struct sbx_time mtime;
    struct sbx_time ctime;
    bool young, unstable; /* never counts as unchanged */
    bool has_host;        /* a copy was published: host and digest are set */
    struct sbx_host_facts host;
    unsigned char digest[SBX_DIGEST_LEN];
    enum sbx_outcome last; /* of the last pass if that was FAILED, DEFERRED or REFUSED, else NONE */
};

struct sbx_manifest_header {
    const char *identity; /* borrowed; any bytes, terminated */
    enum sbx_names names;
};

struct sbx_manifest_reader;

enum sbx_manifest_state {
    SBX_MANIFEST_ABSENT,
    SBX_MANIFEST_OK,
    SBX_MANIFEST_DAMAGED, /* or of a newer schema, or over its limit: a warning, and a full pass */
};

/* Opens and proves the whole file: header, trailer, count, digest, size. *ret is NULL unless
 * *ret_state is OK. A damaged one is no failure: *ret_why (NULL if nobody asks) says what is wrong
 * with it. SBX_E_HOST: it is not ours, or no regular file; also when it cannot be read. statedir
 * -1: absent. */
SBX_MUST_CHECK enum sbx_status sbx_manifest_open(int statedir, struct sbx_manifest_reader **ret,
                                                 enum sbx_manifest_state *ret_state,
                                                 struct sbx_error *ret_why, struct sbx_error *err);
void sbx_manifest_close(struct sbx_manifest_reader *reader);
const struct sbx_manifest_header *sbx_manifest_header(const struct sbx_manifest_reader *reader);

/* The next line; *ret_more is false at the end. Also gives the text of the line, newline included.
 * SBX_E_REMOTE: a line that is none, out of order, or whose path preflight refuses: the manifest is
 * damaged after all. */
SBX_MUST_CHECK enum sbx_status sbx_manifest_next(struct sbx_manifest_reader *reader,
                                                 struct sbx_line *ret, const char **ret_text,
                                                 size_t *ret_text_len, bool *ret_more,
                                                 struct sbx_error *err);
/* Back to the first line. */
void sbx_manifest_rewind(struct sbx_manifest_reader *reader);

struct sbx_manifest_writer;

/* Begins a new manifest as a temporary (".sbx-sync.<token>.<serial>") beside the old one. Lines
 * come in path order. */
SBX_MUST_CHECK enum sbx_status sbx_manifest_writer_new(int statedir, const char *token,
                                                       uint64_t serial,
                                                       const struct sbx_manifest_header *header,
                                                       struct sbx_manifest_writer **ret,
                                                       struct sbx_error *err);
/* SBX_E_USAGE, and nothing added: out of order, or a path that preflight refuses under the header's
 * names. Any other failure is final: commit will fail too. */
SBX_MUST_CHECK enum sbx_status sbx_manifest_writer_line(struct sbx_manifest_writer *writer,
                                                        const struct sbx_line *line,
                                                        struct sbx_error *err);
/* A line of the old manifest as it stands, newline included. */
SBX_MUST_CHECK enum sbx_status sbx_manifest_writer_text(struct sbx_manifest_writer *writer,
                                                        const char *text, size_t n,
                                                        struct sbx_error *err);
/* Trailer, mode (0666 & umask & ~022), sync where `durability` asks for it, rename. The writer is
 * freed whatever happens; on failure the old manifest stays and the temporary is gone, unless only
 * the sync of the directory failed: then the new one stands, and a crash may lose it. */
SBX_MUST_CHECK enum sbx_status sbx_manifest_writer_commit(struct sbx_manifest_writer **take_writer,
                                                          enum sbx_durability durability,
                                                          struct sbx_error *err);
void sbx_manifest_writer_abort(struct sbx_manifest_writer **take_writer); /* NULL is fine */

#endif
