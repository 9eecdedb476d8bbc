/* Every limit on a peer and every tuned number, once, with unit and reason. Those marked [option]
 * are defaults that the user can set. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdint.h>

#include "base/clock.h"

#define SBX_KIB 1024ull
#define SBX_MIB (1024ull * SBX_KIB)
#define SBX_GIB (1024ull * SBX_MIB)

/* What a pass may cost. */
#define SBX_MAX_RECORDS 100000u           /* [option] listed files: bounds memory */
#define SBX_MAX_DIRECTORIES 50000u        /* [option of the library] distinct directories listed */
#define SBX_MAX_LISTING (32 * SBX_MIB)    /* [option] decoded bytes of the listing */
#define SBX_MAX_FILE_SIZE (512 * SBX_MIB) /* [option] bytes of one file */
#define SBX_MAX_BYTES (2 * SBX_GIB)       /* [option] bytes received in a pass */
#define SBX_MAX_FILES 20000u              /* [option] files transferred in a pass */
#define SBX_DEADLINE_S 120.0              /* [option] seconds for the whole pass */
#define SBX_JOBS 8u                       /* [option] files in flight */
#define SBX_MAX_JOBS 64u                  /* of that option */
#define SBX_REPORT_LIMIT 10000u           /* [option] files named in a report */
#define SBX_DIR_COST (4 * SBX_KIB)        /* bytes of the pass budget that a new directory costs */

/* Hard upper bounds of options, so that sums and allocations cannot overflow. */
#define SBX_CEIL_RECORDS 10000000u         /* records */
#define SBX_CEIL_LISTING (4 * SBX_GIB)     /* bytes */
#define SBX_CEIL_SECONDS (400.0 * 86400.0) /* seconds */

/* Listing. */
#define SBX_MAX_LINE (64 * SBX_KIB)  /* bytes of one line of the remote script that is no data */
#define SBX_MAX_NOISE (64 * SBX_KIB) /* bytes before the begin line */
#define SBX_ENCODED_SLACK (64 * SBX_KIB) /* characters an encoded stream may have on top */
/* Characters of a line of the encoded stream, as text for scripts. execd makes an event of each: 76
 * cost 2 to 4 times the whole transfer, and one line for all costs the square of its length. */
#define SBX_ENCODED_LINE "16384"
#define SBX_YOUNG_S 2 /* seconds within which a whole-second ctime may still move */

/* Names. */
#define SBX_MAX_PATH 4095u     /* bytes of a path: PATH_MAX less its NUL */
#define SBX_MAX_COMPONENT 255u /* bytes, and UTF-16 units: NAME_MAX of Linux, NTFS, APFS */
#define SBX_MAX_DEPTH 100u     /* components of a path: one descriptor each is held at most */
#define SBX_MAX_WITH 8u        /* other spellings named beside a refused one */
#define SBX_MAX_WITH_BYTES (4 * SBX_MIB) /* bytes of them in a report: each may be a path */
#define SBX_MAX_KEYED 1024u /* bytes of a component that is folded: above any system's names */

/* Transfer. */
#define SBX_BATCH_FILES 2000u          /* files of a batch */
#define SBX_BATCH_BYTES (64 * SBX_MIB) /* bytes of a batch: temporaries at one time */
#define SBX_BATCH_NAMES (96 * SBX_KIB) /* encoded names of a batch: its script in one request */
/* Small files go through one pipeline together, since a process for each costs more than its bytes:
 * 3 to 6 ms on a small virtual machine, where /usr/share/doc has 5,000 files. */
#define SBX_GROUP_FILES 200u           /* files of a group */
#define SBX_GROUP_FILE (128 * SBX_KIB) /* bytes of a file in it */
#define SBX_GROUP_BYTES (1 * SBX_MIB)  /* bytes of a group: held in memory until proved */
#define SBX_GROUP_NAMES (32 * SBX_KIB) /* bytes of its paths: arguments of one command */
#define SBX_GROUP_RECORD 160u          /* bytes of a record beside its path: three numbers */
/* Files that come as text through a command, since their names cannot go by another way. */
#define SBX_STREAM_FILES 500u             /* files of one command */
#define SBX_STREAM_NAMES (64 * SBX_KIB)   /* bytes of their names, as its script has them */
#define SBX_STREAM_TRAILER (16 * SBX_KIB) /* bytes of status and record behind a file */
#define SBX_MARKED_MAX 512u               /* bytes of a line of our scripts with a nonce */
#define SBX_BATCHES_AHEAD 2u              /* batches received and not yet published */
/* Seconds kept for confirm, publish and record: the most of this and a tenth, but at most half of
 * the deadline. */
#define SBX_STOP_S 2.0
#define SBX_IDLE_S 30.0               /* seconds without a byte: a stuck peer */
#define SBX_EIO_FILES 3u              /* EIO in a row: the destination is lost */
#define SBX_IO_CHUNK (256 * SBX_KIB)  /* bytes read at once of a local file */
#define SBX_STDERR_KEPT (4 * SBX_KIB) /* bytes of standard error kept for messages */
#define SBX_STDERR_LINE 512u          /* bytes of a line of standard error shown */
#define SBX_DRAIN_CHUNKS 64u          /* chunks read of COMMAND after its end: others may go on */
#define SBX_END_GRACE_MS 200          /* milliseconds between SIGTERM and SIGKILL of COMMAND */

/* State in the destination. */
#define SBX_MAX_MANIFEST (256 * SBX_MIB)     /* bytes of a manifest that is read */
#define SBX_MAX_MANIFEST_LINE (32 * SBX_KIB) /* bytes of a line: a path of \u escapes and facts */
#define SBX_MAX_RUN (64 * SBX_MIB)           /* bytes of a run record that is read */
#define SBX_MAX_RUN_LINES (SBX_MAX_RUN / 8)  /* lines of it: none is shorter than 8 bytes */
#define SBX_MANIFEST_EVERY_S 10.0            /* seconds between manifest writes during a pass */
/* A reading of a host directory that is older than this (nanoseconds) is repeated. */
#define SBX_INDEX_AGE_NS (1ull * SBX_NS_PER_S)
#define SBX_MAX_INDEX (512 * SBX_MIB) /* bytes of names of one host directory: millions of them */
#define SBX_MAX_INDEX_NAMES (UINT32_MAX / 4) /* names of it: 32 bits count four slots for each */
/* How often something is tried that other users of the host can undo meanwhile. */
#define SBX_WALK_TRIES 3u     /* rounds of open and mkdir for one component */
#define SBX_SWEEP_READINGS 3u /* readings of a directory from which leftovers are removed */
#define SBX_SYNC_MIN_NS (1ull * SBX_NS_PER_S) /* no syncfs is begun with less time left */

/* HTTP. */
#define SBX_FIRST_BYTE_S 30.0         /* seconds until an answer begins: a stuck peer */
#define SBX_HTTP_HEAD (64 * SBX_KIB)  /* bytes of the heads of one answer, trailers included */
#define SBX_HTTP_LINES 256u           /* lines of them */
#define SBX_HTTP_INTERIM 8u           /* 1xx answers before the final one */
#define SBX_HTTP_BLOCK (16 * SBX_MIB) /* bytes asked for at once: what a cancellation may cost */
#define SBX_HTTP_ERROR (64 * SBX_KIB) /* bytes of an error's body: read, so as not to hang up */
#define SBX_HTTP_ERROR_KEPT (4 * SBX_KIB) /* bytes of them kept for messages */
#define SBX_HTTP_FETCH_KEPT 1024u /* the same for a file: so many that no secret is cut in two */
#define SBX_HTTP_ANSWER (256 * SBX_KIB) /* bytes of a control plane's answer */
#define SBX_HTTP_IN_A_ROW 3u            /* files without an answer: the source is lost */
#define SBX_RETRY_AFTER_S 2u            /* seconds that a server may ask us to wait */
#define SBX_LEAVE_READ_MS 500           /* milliseconds that an answer is read on when leaving */
#define SBX_LEAVE_QUIET_MS 300          /* milliseconds without reading before the end */
#define SBX_LEASE_ROOM_S 60             /* seconds that a sandbox is to live after the pass */
#define SBX_LIFECYCLE_TARGET 1024u      /* bytes of a path that a control plane gets or gives */
#define SBX_EXECD_HEADERS 20u           /* headers of a request, a control plane's among them */
/* Bytes of a command: what Linux takes as one argument, less what is wrapped around it. */
#define SBX_EXECD_MAX_SCRIPT 130000u
#define SBX_MAX_SECRETS 64u          /* texts that are masked in what a peer says */
#define SBX_TOKEN_FILE (8 * SBX_KIB) /* bytes of a file with a token */
#define SBX_EVENT_LINE (1 * SBX_MIB) /* bytes of one event of a command */
/* Bytes of events around their texts: 60 each where it is honest, on lines of a byte at worst. */
#define SBX_EVENT_SLACK (8 * SBX_MIB)
#define SBX_EVENT_FACTOR 4u /* and so many bytes for each byte of text, escapes included */

/* Memory and parsers. */
#define SBX_ARENA_CHUNK_FIRST (64 * SBX_KIB) /* bytes: a small listing costs little */
#define SBX_ARENA_CHUNK_MOST (1 * SBX_MIB)   /* bytes: the calls saved by more do not count */
#define SBX_JSON_DEPTH 32u                   /* nested arrays and objects: jansson recurses */

#endif
