#include "transport/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/quote.h"

/* How long a queue that says "wait" is left alone if its descriptor stays silent: the descriptor is
 * what wakes us, this only bounds what a lost wake-up costs. */
#define WAIT_MS 1000

static void destroy(const struct sbx_transport_ops *ops, void *self)
{
    if (ops && ops->destroy)
        ops->destroy(self);
}

enum sbx_status sbx_transport_new(const struct sbx_transport_ops *ops, void *self, const char *root,
                                  const char *identity, struct sbx_transport **ret,
                                  struct sbx_error *err)
{
    struct sbx_transport *t;

    if (!ops || ops->version != SBX_TRANSPORT_OPS_VERSION || !ops->run || !ops->fetch || !root ||
        !identity) {
        destroy(ops, self);
        return sbx_err_set(err, SBX_E_USAGE, 0, "transport: wrong version, or a member is missing");
    }
    t = calloc(1, sizeof(*t));
    if (!t) {
        destroy(ops, self);
        return sbx_err_nomem(err);
    }
    t->ops = *ops;
    t->self = self;
    t->root = strdup(root);
    t->identity = strdup(identity);
    if (!t->root || !t->identity) {
        sbx_transport_free(t);
        return sbx_err_nomem(err);
    }
    *ret = t;
    return SBX_OK;
}

void sbx_transport_free(struct sbx_transport *transport)
{
    if (!transport)
        return;
    destroy(&transport->ops, transport->self);
    free(transport->root);
    free(transport->identity);
    free(transport);
}

enum sbx_status sbx_transport_check(const struct sbx_call *call, struct sbx_error *err)
{
    struct pollfd cancel = {.fd = call->cancel_fd, .events = POLLIN};

    if (poll(&cancel, 1, 0) > 0 && (cancel.revents & POLLIN))
        return sbx_err_set(err, SBX_E_CANCELLED, 0, "cancelled");
    if (sbx_clock_now() >= call->deadline_ns)
        return sbx_err_set(err, SBX_E_DEADLINE, 0, "deadline passed");
    return SBX_OK;
}

enum sbx_status sbx_transport_next(const struct sbx_call *call, const struct sbx_queue *queue,
                                   bool wait, enum sbx_next *ret_next,
                                   const struct sbx_wanted **ret_file, struct sbx_error *err)
{
    while (true) {
        struct pollfd fds[] = {
            {.fd = queue->ready_fd, .events = POLLIN},
            {.fd = call->cancel_fd, .events = POLLIN},
        };
        enum sbx_status st = sbx_transport_check(call, err);
        enum sbx_next next;

        if (st)
            return st;
        next = queue->next(queue->ctx, ret_file);
        if (next != SBX_NEXT_WAIT || !wait) {
            *ret_next = next;
            return SBX_OK;
        }
        if (poll(fds, N_ELEMENTS(fds), sbx_clock_poll_ms(call->deadline_ns, WAIT_MS)) < 0 &&
            errno != EINTR)
            return sbx_err_host(err, errno, "poll", "wait for wanted files");
    }
}
