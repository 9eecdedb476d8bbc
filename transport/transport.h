/* What a struct sbx_transport is inside. */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include "sbx/transport.h"

struct sbx_transport {
    struct sbx_transport_ops ops;
    void *self;            /* owned; ops.destroy frees it */
    char *root;            /* owned; remote directory, bytes */
    char *identity;        /* owned */
    bool wants_shell;      /* `exec`: a COMMAND that may be no shell */
    const char *local_dir; /* borrowed from self: the host directory of `local`, else NULL */
};

#endif
