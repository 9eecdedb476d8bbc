/* A way to reach one directory of one sandbox: it runs scripts there and brings files from there.
 *
 * A transport knows neither `find` nor a path of the host. The built-in ones are made below; a
 * program may bring its own with sbx_transport_new(). */
#ifndef SBX_TRANSPORT_H
#define SBX_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sbx/error.h"
#include "sbx/export.h"
#include "sbx/sink.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sbx_transport;

/* What every call on a transport is bounded by, and what stream fetches need to know of the
 * listing. Everything is borrowed for the length of the call. */
struct sbx_call {
    uint32_t version;     /* SBX_CALL_VERSION; members are only ever added at the end */
    uint64_t deadline_ns; /* absolute, CLOCK_MONOTONIC; every wait ends by then */
    int cancel_fd;        /* readable once sbx_cancel() was called; never read from; -1: none */
    unsigned jobs;        /* files in flight at once, at most; connections too */
    uint64_t idle_ns;     /* nanoseconds without a byte after which a peer counts as stuck */
    /* For stream fetches; NULL in `run`. Opaque text: `tools` is the listing's tools= value, such
     * as "printf,gzip,base64"; `snippet` is shell text that sets R to the root and defines
     *
     *   rec PATH      prints the listing record of the regular file PATH = $R/name, ended by
     *                 NUL, or nothing
     *   recs NAME...  called in the root: the same for several names, in their order, or nothing
     *                 for some of them; no NAME may begin with one of - ! ( ) ,
     *   enc           encodes standard input as lines of base64, or of hex pairs where `tools`
     *                 ends in ",hex"
     *
     * A record begins with the size in decimal and a blank. */
    const char *tools;
    const char *snippet;
};
#define SBX_CALL_VERSION 1u

/* How a script ended. */
enum sbx_exit_kind {
    SBX_EXIT_UNKNOWN = 0, /* nothing said so: killed, or the channel was lost */
    SBX_EXIT_EXITED,      /* code is its exit status */
    SBX_EXIT_SIGNALLED,   /* code is the signal */
    SBX_EXIT_DEADLINE,    /* ended by the remote side at its time limit */
};

struct sbx_exit {
    enum sbx_exit_kind kind;
    int code;
};

/* How the fetching of one file ended. */
enum sbx_fetch_result {
    SBX_FETCH_OK = 0,       /* the transport's own framing says that the file is complete */
    SBX_FETCH_VANISHED,     /* no such file any more */
    SBX_FETCH_DENIED,       /* may not be read */
    SBX_FETCH_NOT_REGULAR,  /* a link, directory, FIFO, ... stands there now */
    SBX_FETCH_CHANGED,      /* another version than the listed one, as the framing tells */
    SBX_FETCH_SHORT,        /* ended before its framing said */
    SBX_FETCH_PROTOCOL,     /* the peer broke its protocol */
    SBX_FETCH_SERVER,       /* the remote side reported another error, or got stuck on this file */
    SBX_FETCH_LOST,         /* the connection or the sandbox was lost */
    SBX_FETCH_UNAUTHORISED, /* credentials refused */
    SBX_FETCH_LIMIT,        /* a limit on what a peer may send ran out */
    SBX_FETCH_CANCELLED,    /* cancelled, or the call's deadline passed */
};

/* A wanted file. Owned by the queue, valid until its `end` returns. */
struct sbx_wanted {
    const char *path; /* bytes relative to the root, not text, not terminated for sure */
    size_t path_len;
    uint64_t size; /* listed size in bytes: more is not wanted */
};

enum sbx_next {
    SBX_NEXT_FILE, /* *ret is the next wanted file */
    SBX_NEXT_WAIT, /* nothing now: ask again after an `end`, or when ready_fd is readable */
    SBX_NEXT_NONE, /* no more; asking again gives the same answer */
};

/* What a fetch takes its files from, and brings their bytes to. All of it is called from the thread
 * that called fetch.
 *
 *   next -> begin -> write* -> end       one file; several may be under way at once
 *   next -> end                          a file that could not even be asked for
 *   begin again before end               the file starts over: what was written is dropped
 *   next -> write* -> begin              what came and is of no use: paid for, and dropped
 *
 * Every file that `next` gave is ended exactly once before fetch returns. */
struct sbx_queue {
    void *ctx;
    int ready_fd; /* readable when `next` may answer other than SBX_NEXT_WAIT; never read from */
    enum sbx_next (*next)(void *ctx, const struct sbx_wanted **ret);
    /* A status other than SBX_OK from begin or write refuses the rest of this file: call `end` for
     * it (the result is then ignored), and leave its stream as suits the transport. */
    enum sbx_status (*begin)(void *ctx, const struct sbx_wanted *file, struct sbx_error *err);
    enum sbx_status (*write)(void *ctx, const struct sbx_wanted *file, const void *bytes, size_t n,
                             struct sbx_error *err);
    /* `record` is the raw listing record (as `rec` prints it, without the NUL) that was taken after
     * the last byte, or NULL if the file must be confirmed by `run`. It is never parsed by a
     * transport. `why` explains another result than SBX_FETCH_OK; may be NULL. */
    void (*end)(void *ctx, const struct sbx_wanted *file, enum sbx_fetch_result result,
                const char *record, size_t record_len, const struct sbx_error *why);
};

/* What a transport has to do. At most one run and one fetch are in progress at a time, possibly
 * from two threads (not if `serial`). Both return when the remote side has ended the stream, at the
 * deadline, or soon after cancel_fd became readable (SBX_E_DEADLINE, SBX_E_CANCELLED), and leave
 * nothing running. They change nothing of the process: no signal disposition, mask, umask, working
 * directory or locale. */
struct sbx_transport_ops {
    uint32_t version;  /* SBX_TRANSPORT_OPS_VERSION */
    bool serial;       /* run and fetch never at the same time */
    size_t max_script; /* bytes of a script at most; 0: no limit of its own */

    /* Runs script[0..script_len) with a POSIX shell in the sandbox. Standard output streams into
     * `out`, whose failure is returned unchanged; standard error into `diag`, whose failure is
     * ignored. SBX_OK: the stream ended, and *ret_exit says how, as far as known. A transport that
     * itself keeps files in the sandbox meanwhile may put an assignment to sbx_own before the
     * script: a pattern of find's -name; files that match it are not listed. */
    enum sbx_status (*run)(void *self, const struct sbx_call *call, const char *script,
                           size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                           struct sbx_exit *ret_exit, struct sbx_error *err);

    /* Brings the files of the queue until it has no more. SBX_OK: every file taken was ended,
     * whatever its result. SBX_E_UNREACHABLE, SBX_E_UNAUTHORISED, SBX_E_GONE: the source was lost,
     * files not taken stay in the queue. */
    enum sbx_status (*fetch)(void *self, const struct sbx_call *call, const struct sbx_queue *queue,
                             struct sbx_sink diag, struct sbx_error *err);

    void (*destroy)(void *self); /* called once; may be NULL */
};
#define SBX_TRANSPORT_OPS_VERSION 1u

/* Makes a transport of a program's own. `root` is the remote directory, as bytes; `identity` tells
 * this sandbox from others (files of another identity are never "unchanged"). Both are copied, and
 * so is *ops. Owns `self` from here on, also on failure. Free it with sbx_transport_free(). */
SBX_API SBX_MUST_CHECK enum sbx_status
sbx_transport_new(const struct sbx_transport_ops *ops, void *self, const char *root,
                  const char *identity, struct sbx_transport **ret, struct sbx_error *err);

/* A directory of this machine. Scripts run with the `sh` of PATH, files are opened below `dir`
 * component by component, following no link. */
SBX_API SBX_MUST_CHECK enum sbx_status
sbx_transport_local_new(const char *dir, struct sbx_transport **ret, struct sbx_error *err);

/* The absolute directory `dir` of whatever machine `command` (NULL-terminated, copied, looked up in
 * PATH) leads to: it must be a POSIX shell there that reads commands from its standard input. It is
 * started at the first use, once per pass, and a second time if it ends early. */
SBX_API SBX_MUST_CHECK enum sbx_status sbx_transport_exec_new(const char *dir,
                                                              const char *const command[],
                                                              struct sbx_transport **ret,
                                                              struct sbx_error *err);

/* An execd of OpenSandbox that can be reached directly. Strings are copied. */
struct sbx_execd_options {
    uint32_t version;   /* SBX_EXECD_OPTIONS_VERSION */
    bool tls;           /* https, with the server's certificate verified */
    const char *host;   /* a name, an IPv4 address, or an IPv6 address without brackets */
    unsigned port;      /* 0: 44772 */
    const char *dir;    /* absolute remote directory, UTF-8 */
    const char *token;  /* sent to this server only, as X-EXECD-ACCESS-TOKEN; NULL: none */
    const char *cacert; /* PEM file of certificates to trust instead of the system's; NULL */
};
#define SBX_EXECD_OPTIONS_VERSION 1u
#define SBX_EXECD_OPTIONS_INIT ((struct sbx_execd_options){.version = SBX_EXECD_OPTIONS_VERSION})

SBX_API SBX_MUST_CHECK enum sbx_status
sbx_transport_execd_new(const struct sbx_execd_options *options, struct sbx_transport **ret,
                        struct sbx_error *err);

/* A sandbox of an OpenSandbox lifecycle server, which is asked at the first use whether the sandbox
 * runs and where its execd is, and for more time if the sandbox would end before the pass. Nothing
 * is woken, paused or ended. Strings are copied. */
struct sbx_opensandbox_options {
    uint32_t version;      /* SBX_OPENSANDBOX_OPTIONS_VERSION */
    const char *id;        /* of the sandbox */
    const char *dir;       /* absolute remote directory, UTF-8 */
    const char *server;    /* [http://|https://]host[:port][/prefix]; NULL: localhost:8080. The
                              scheme, http if none is given, is that of the endpoint, too */
    const char *api_key;   /* sent to the lifecycle server only; NULL: none */
    const char *token;     /* of execd, sent to the endpoint only; NULL: none */
    bool use_server_proxy; /* reach execd through the lifecycle server */
    const char *cacert;    /* as for execd; for both servers */
};
#define SBX_OPENSANDBOX_OPTIONS_VERSION 1u
#define SBX_OPENSANDBOX_OPTIONS_INIT                                                               \
    ((struct sbx_opensandbox_options){.version = SBX_OPENSANDBOX_OPTIONS_VERSION})

SBX_API SBX_MUST_CHECK enum sbx_status
sbx_transport_opensandbox_new(const struct sbx_opensandbox_options *options,
                              struct sbx_transport **ret, struct sbx_error *err);

/* What a SOURCE of the command line does not say itself. Borrowed. */
struct sbx_source_options {
    uint32_t version;           /* SBX_SOURCE_OPTIONS_VERSION */
    const char *const *command; /* of exec:, NULL-terminated; NULL for all others */
    const char *cacert;         /* of https sources; or NULL */
};
#define SBX_SOURCE_OPTIONS_VERSION 1u
#define SBX_SOURCE_OPTIONS_INIT ((struct sbx_source_options){.version = SBX_SOURCE_OPTIONS_VERSION})

/* Makes the transport that a SOURCE of the command line names:
 *
 *   DIR, local:DIR               a directory of this machine
 *   exec:DIR                     through the command
 *   execd://HOST[:PORT]/DIR      and execds:// for TLS; EXECD_ACCESS_TOKEN
 *   opensandbox://ID/DIR         OPEN_SANDBOX_DOMAIN (the server), OPEN_SANDBOX_API_KEY,
 *                                OPEN_SANDBOX_USE_SERVER_PROXY (1 or true), EXECD_ACCESS_TOKEN
 *
 * The names in capitals are read from the environment; for a token or key NAME the file that
 * NAME_FILE names is read if NAME is not set. An unknown scheme, an exec: without a command and a
 * command without exec: are SBX_E_USAGE. `options` may be NULL. */
SBX_API SBX_MUST_CHECK enum sbx_status sbx_transport_open(const char *source,
                                                          const struct sbx_source_options *options,
                                                          struct sbx_transport **ret,
                                                          struct sbx_error *err);

/* Ends what is running and frees. NULL is fine. */
SBX_API void sbx_transport_free(struct sbx_transport *transport);

#ifdef __cplusplus
}
#endif

#endif
