/* What stopped a step, and the caller-owned message that says where. */
#ifndef SBX_ERROR_H
#define SBX_ERROR_H

#include "sbx/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A step that did not happen. A refused entry is not an error: see <sbx/verdict.h>.
 * Values are stable; new ones are added at the end. */
enum sbx_status {
    SBX_OK = 0,
    SBX_E_NOMEM,       /* allocation refused */
    SBX_E_USAGE,       /* the caller broke this interface's contract, or an option makes no sense */
    SBX_E_REMOTE,      /* the peer sent something malformed */
    SBX_E_LIMIT,       /* a byte, count or depth limit ran out */
    SBX_E_DEADLINE,    /* the pass's deadline passed */
    SBX_E_CANCELLED,   /* sbx_cancel() was called */
    SBX_E_HOST,        /* the host refused; os_errno says why */
    SBX_E_BUSY,        /* another pass holds the destination */
    SBX_E_UNREACHABLE, /* no connection, COMMAND did not start, or the channel was lost */
    SBX_E_UNAUTHORISED, /* the peer refused our credentials */
    SBX_E_GONE,         /* the sandbox does not exist any more */
};

/* Owned by the caller, usually on its stack, and zeroed before first use; never allocates, so it
 * also reports SBX_E_NOMEM. A function that takes one accepts NULL. */
struct sbx_error {
    enum sbx_status status;
    int os_errno;  /* 0 unless a system call failed */
    char step[32]; /* the call or stage that failed, such as "renameat"; "" if none is named */
    char msg[512]; /* "outer: inner", terminated, printable ASCII: text of a peer is escaped */
};

/* The name of a status in lower case, such as "unreachable"; "unknown" for any other value. */
SBX_API const char *sbx_status_name(enum sbx_status status);

#ifdef __cplusplus
}
#endif

#endif
