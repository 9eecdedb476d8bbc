/* What a struct sbx_transport is inside, and what the built-in ones share. */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include "base/error.h"
#include "sbx/transport.h"

struct sbx_transport {
    struct sbx_transport_ops ops;
    void *self;            /* owned; ops.destroy frees it */
    char *root;            /* owned; remote directory, bytes */
    char *identity;        /* owned */
    const char *local_dir; /* borrowed from self: the host directory of `local`, else NULL */
    unsigned warnings;     /* 1u << enum sbx_warning; set before the first `run` has returned */
};

/* SBX_E_CANCELLED or SBX_E_DEADLINE once the call has to end. Does not wait. */
SBX_MUST_CHECK enum sbx_status sbx_transport_check(const struct sbx_call *call,
                                                   struct sbx_error *err);

/* The next wanted file. `wait`: waits until there is one or there are no more, so that the answer
 * is never SBX_NEXT_WAIT. Fails as sbx_transport_check() does; then no file was taken. */
SBX_MUST_CHECK enum sbx_status sbx_transport_next(const struct sbx_call *call,
                                                  const struct sbx_queue *queue, bool wait,
                                                  enum sbx_next *ret_next,
                                                  const struct sbx_wanted **ret_file,
                                                  struct sbx_error *err);

#endif
