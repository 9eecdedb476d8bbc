/* The closed sets of answers about one listed file, and of warnings about a pass.
 *
 * Every listed file ends a pass with exactly one outcome, and with a reason unless it was published
 * or is unchanged. Names are those of the report; values are stable, new ones are added at the end.
 */
#ifndef SBX_VERDICT_H
#define SBX_VERDICT_H

#include "sbx/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sbx_outcome {
    SBX_OUTCOME_NONE = 0, /* not decided yet; never in a finished report */
    SBX_PUBLISHED,        /* the destination name holds the new content */
    SBX_WOULD_PUBLISH,    /* dry run: would have been fetched */
    SBX_UNCHANGED,        /* the destination name already holds it */
    SBX_EXCLUDED,         /* matched an --exclude pattern */
    SBX_REFUSED,  /* not acceptable as it is: the name, the size, or what stands on the host */
    SBX_DEFERRED, /* not tried or not finished; a later pass may */
    SBX_FAILED,   /* tried, and it did not work */
    SBX_OUTCOMES  /* how many there are */
};

enum sbx_reason {
    SBX_REASON_NONE = 0,
    /* refused: the path (rules: docs/ARCHITECTURE.md, "Names") */
    SBX_REFUSE_ENCODING,
    SBX_REFUSE_TRAVERSAL,
    SBX_REFUSE_TOO_LONG,
    SBX_REFUSE_TOO_DEEP,
    SBX_REFUSE_RESERVED_NAME,
    SBX_REFUSE_SEPARATOR,
    SBX_REFUSE_CONTROL,
    SBX_REFUSE_RESERVED_CHAR,
    SBX_REFUSE_TRAILING,
    SBX_REFUSE_BAD_TIME,
    SBX_REFUSE_ALIAS,
    /* refused: the host */
    SBX_REFUSE_ALIAS_LOCAL,
    SBX_REFUSE_LINKED,
    SBX_REFUSE_TYPE_CONFLICT,
    SBX_REFUSE_SPECIAL,
    SBX_REFUSE_TOO_LARGE,
    SBX_REFUSE_HOST_NAME,
    /* failed */
    SBX_FAIL_CHANGED,
    SBX_FAIL_SHORT,
    SBX_FAIL_VANISHED,
    SBX_FAIL_DENIED,
    SBX_FAIL_SERVER,
    SBX_FAIL_PROTOCOL,
    SBX_FAIL_HOST,
    SBX_FAIL_APPEARED,
    /* deferred */
    SBX_DEFER_OVER_BUDGET,
    SBX_DEFER_DEADLINE,
    SBX_DEFER_CANCELLED,
    SBX_DEFER_SOURCE_LOST,
    SBX_DEFER_HOST_FULL,
    /* excluded */
    SBX_EXCLUDE_PATTERN,
    SBX_REASONS /* how many there are */
};

/* What a pass puts up with, told once each. */
enum sbx_warning {
    SBX_WARN_FIND_ERRORS = 0, /* find could not look everywhere; what it listed is whole */
    SBX_WARN_DUPLICATE,       /* a path was listed twice with the same facts */
    SBX_WARN_UNCONFIRMED,     /* confirmation was switched off */
    SBX_WARN_CTIME_MOVED,     /* only a ctime moved, and a second read was equal */
    SBX_WARN_NO_LOCK,         /* the destination's file system cannot lock; nothing was swept */
    SBX_WARN_MANIFEST,        /* the manifest was damaged, too new or too large: full pass */
    SBX_WARN_MANIFEST_WRITE,  /* the manifest could not be written: costs a later download */
    SBX_WARN_TIMES,           /* the host would not set a modification time */
    SBX_WARN_MODE,            /* the host would not carry permission bits over */
    SBX_WARN_DIR_SYNC,        /* the host cannot sync a directory */
    SBX_WARN_UNSYNCED,        /* too little time was left for syncfs */
    SBX_WARN_NO_NOREPLACE,    /* the file system has neither RENAME_NOREPLACE nor links */
    SBX_WARN_SWEEP,           /* a leftover of an earlier pass could not be removed */
    SBX_WARN_PLAIN_HTTP,      /* http to a host that is not this one: anyone between can read it */
    SBX_WARN_LEASE,           /* the sandbox may end before the pass: no more time was given */
    SBX_WARNINGS              /* how many there are */
};

/* Names as the report spells them, such as "refused", "alias-local", "find-errors"; "" for NONE and
 * for values out of range. */
SBX_API const char *sbx_outcome_name(enum sbx_outcome outcome);
SBX_API const char *sbx_reason_name(enum sbx_reason reason);
SBX_API const char *sbx_warning_name(enum sbx_warning warning);

#ifdef __cplusplus
}
#endif

#endif
