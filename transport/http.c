/* The event loop: which exchanges have a connection, what has ended, how the rest is left. What the
 * peer sends is looked at in http_easy and http_head. */
#include "transport/http.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "transport/http_easy.h"
#include "transport/transport.h"

#define WAIT_MS 1000 /* what a missed wake-up costs at most */
#define MAX_FIELD (8 * SBX_KIB)

struct sbx_http {
    struct sbx_http_origin origin;
    CURLM *multi; /* owned */
    CURL **spare; /* owned, each owned: handles without an exchange */
    size_t n_spare, cap_spare;
    struct sbx_http_exchange *busy;    /* owned; with a handle */
    struct sbx_http_exchange *waiting; /* owned; oldest first */
    size_t n_busy, n_waiting;
    unsigned connections;
    bool gentle;
};

/* libcurl sends with MSG_NOSIGNAL, but OpenSSL below it writes: SIGPIPE is held back in this thread
 * meanwhile, and one that came is taken away. */
struct quiet {
    sigset_t before;
    bool pending; /* one that is not ours */
};

static struct quiet quiet_begin(void)
{
    struct quiet q;
    sigset_t pipe, pending;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)sigemptyset(&pending);
    (void)sigpending(&pending);
    q.pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &q.before);
    return q;
}

static void quiet_end(const struct quiet *q)
{
    const struct timespec now = {0};
    sigset_t pipe;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    if (!q->pending)
        (void)sigtimedwait(&pipe, NULL, &now);
    (void)pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

enum sbx_status sbx_http_init(struct sbx_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return sbx_err_set(err, SBX_E_HOST, 0, "libcurl cannot be used here");
    return SBX_OK;
}

static enum sbx_status make_origin(struct sbx_http *http, const struct sbx_http_options *o,
                                   struct sbx_error *err)
{
    struct sbx_http_origin *origin = &http->origin;
    SBX_BUF_AUTO struct sbx_buf name = SBX_BUF_INIT(sizeof(origin->name) - 1);
    enum sbx_status st;

    origin->url = SBX_BUF_INIT(MAX_FIELD);
    origin->secrets = o->secrets;
    origin->direct = sbx_url_is_private(&o->authority);
    st = sbx_url_add_authority(&name, &o->authority, err);
    if (!st)
        st = sbx_buf_printf(&origin->url, err, "http%s://%s%s", o->tls ? "s" : "", name.data,
                            o->prefix ? o->prefix : "");
    if (st)
        return st;
    memcpy(origin->name, name.data, name.len + 1);
    if (o->cacert) {
        origin->cacert = strdup(o->cacert);
        if (!origin->cacert)
            return sbx_err_nomem(err);
    }
    return SBX_OK;
}

static bool add_field(struct sbx_http *http, const char *field)
{
    struct curl_slist *longer = curl_slist_append(http->origin.fields, field);

    if (longer)
        http->origin.fields = longer;
    return longer != NULL;
}

/* "Expect:" without a value keeps libcurl from sending that field. */
static enum sbx_status make_fields(struct sbx_http *http, const struct sbx_http_options *o,
                                   struct sbx_error *err)
{
    bool ok = add_field(http, "Accept-Encoding: identity") && add_field(http, "Expect:");

    for (size_t i = 0; i < o->n_headers && ok; i++)
        ok = add_field(http, o->headers[i]);
    return ok ? SBX_OK : sbx_err_nomem(err);
}

static enum sbx_status make_multi(struct sbx_http *http, struct sbx_error *err)
{
    long most = (long)http->connections;

    http->multi = curl_multi_init();
    if (!http->multi || curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, most) ||
        curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, most) ||
        curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING))
        return sbx_err_nomem(err);
    return SBX_OK;
}

enum sbx_status sbx_http_new(const struct sbx_http_options *options, struct sbx_http **ret,
                             struct sbx_error *err)
{
    struct sbx_http *http = calloc(1, sizeof(*http));
    enum sbx_status st;

    if (!http)
        return sbx_err_nomem(err);
    http->connections = options->connections ? options->connections : 1;
    http->gentle = options->gentle;
    st = make_origin(http, options, err);
    if (!st)
        st = make_fields(http, options, err);
    if (!st)
        st = make_multi(http, err);
    if (st) {
        sbx_http_free(http);
        return st;
    }
    *ret = http;
    return SBX_OK;
}

static void exchange_free(struct sbx_http_exchange *x)
{
    curl_slist_free_all(x->fields);
    sbx_buf_done(&x->target);
    free(x);
}

static struct sbx_http_exchange *exchange_new(const struct sbx_http_request *request,
                                              uint64_t deadline_ns)
{
    struct sbx_http_exchange *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->request = *request;
    x->deadline_ns = deadline_ns;
    x->target = SBX_BUF_INIT(SBX_HTTP_HEAD);
    if (sbx_buf_str(&x->target, request->target, NULL)) {
        exchange_free(x);
        return NULL;
    }
    x->request.target = x->target.data;
    return x;
}

enum sbx_status sbx_http_begin(struct sbx_http *http, uint64_t deadline_ns,
                               const struct sbx_http_request *request, struct sbx_error *err)
{
    struct sbx_http_exchange *x = exchange_new(request, deadline_ns), **at = &http->waiting;

    if (!x)
        return sbx_err_nomem(err);
    while (*at)
        at = &(*at)->next;
    *at = x;
    http->n_waiting++;
    return SBX_OK;
}

size_t sbx_http_active(const struct sbx_http *http)
{
    return http->n_busy + http->n_waiting;
}

/* Takes an exchange that was taken off its list to its end. */
static void finish(struct sbx_http_exchange *x)
{
    const struct sbx_http_head *head = x->reader.done ? &x->reader.head : NULL;

    x->request.on_done(x->request.ctx, x->end, head, &x->why);
    exchange_free(x);
}

/* Takes the handle of an exchange out of the loop; in mid-answer that closes its connection. A
 * handle that finds no room among the spare ones is not kept. */
static void let_go(struct sbx_http *http, struct sbx_http_exchange *x)
{
    struct sbx_http_exchange **at = &http->busy;
    void *array = http->spare;

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    http->n_busy--;
    (void)curl_multi_remove_handle(http->multi, x->easy);
    (void)curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, NULL);
    (void)curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, NULL);
    if (sbx_array_grow(&array, &http->cap_spare, http->n_spare + 1, http->connections,
                       sizeof(CURL *), NULL)) {
        curl_easy_cleanup(x->easy);
    } else {
        http->spare = array;
        http->spare[http->n_spare++] = x->easy;
    }
    x->easy = NULL;
}

static bool start(struct sbx_http *http, struct sbx_http_exchange *x)
{
    x->easy = http->n_spare > 0 ? http->spare[--http->n_spare] : sbx_http_easy_new(&http->origin);
    if (!x->easy)
        return false;
    x->next = http->busy;
    http->busy = x;
    http->n_busy++;
    if (!sbx_http_easy_aim(&http->origin, x, NULL) && !curl_multi_add_handle(http->multi, x->easy))
        return true;
    let_go(http, x);
    return false;
}

/* Gives handles to those that wait, as far as there may be connections. */
static void start_waiting(struct sbx_http *http)
{
    while (http->waiting && http->n_busy < http->connections) {
        struct sbx_http_exchange *x = http->waiting;

        http->waiting = x->next;
        http->n_waiting--;
        if (!start(http, x)) {
            sbx_http_easy_fail(&http->origin, x, SBX_HTTP_FAILED, "no memory for a request");
            finish(x);
        }
    }
}

/* Ends what libcurl says has ended. Returns whether there was any. */
static bool finish_ended(struct sbx_http *http)
{
    bool any = false;
    CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(http->multi, &left))) {
        struct sbx_http_exchange *x = NULL;
        CURLcode rc = msg->data.result;

        if (msg->msg != CURLMSG_DONE ||
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&x))
            continue;
        any = true;
        sbx_http_easy_judge(&http->origin, x, rc);
        let_go(http, x);
        finish(x);
    }
    return any;
}

/* Ends those whose clock has run out. *ret_ns: when the next one will. */
static bool finish_stuck(struct sbx_http *http, uint64_t *ret_ns)
{
    uint64_t now = sbx_clock_now();
    struct sbx_http_exchange *next;
    bool any = false;

    *ret_ns = SBX_NEVER;
    for (struct sbx_http_exchange *x = http->busy; x; x = next) {
        uint64_t at;

        next = x->next;
        if (!sbx_http_easy_stuck(x, now, &at)) {
            *ret_ns = at < *ret_ns ? at : *ret_ns;
            continue;
        }
        any = true;
        sbx_http_easy_fail(&http->origin, x, SBX_HTTP_STUCK,
                           x->reader.done ? "nothing more came of the answer"
                                          : "no answer came in time");
        let_go(http, x);
        finish(x);
        next = http->busy; /* the callback may have changed the list */
    }
    return any;
}

/* One round without waiting. Returns whether an exchange has ended. */
static bool turn(struct sbx_http *http, uint64_t *ret_ns)
{
    int running;
    bool any;

    start_waiting(http);
    (void)curl_multi_perform(http->multi, &running);
    any = finish_ended(http);
    return finish_stuck(http, ret_ns) || any;
}

static void wait(struct sbx_http *http, int cancel_fd, int wake_fd, uint64_t until_ns)
{
    struct curl_waitfd fds[2];
    unsigned n = 0;

    if (cancel_fd >= 0)
        fds[n++] = (struct curl_waitfd){.fd = cancel_fd, .events = CURL_WAIT_POLLIN};
    if (wake_fd >= 0)
        fds[n++] = (struct curl_waitfd){.fd = wake_fd, .events = CURL_WAIT_POLLIN};
    (void)curl_multi_poll(http->multi, fds, n, sbx_clock_poll_ms(until_ns, WAIT_MS), NULL);
}

enum sbx_status sbx_http_step(struct sbx_http *http, const struct sbx_call *call, int wake_fd,
                              uint64_t until_ns, struct sbx_error *err)
{
    enum sbx_status st = sbx_transport_check(call, err);
    struct quiet quiet;
    uint64_t next_ns;

    if (st)
        return st;
    quiet = quiet_begin();
    if (!turn(http, &next_ns)) {
        if (next_ns < until_ns)
            until_ns = next_ns;
        if (call->deadline_ns < until_ns)
            until_ns = call->deadline_ns;
        wait(http, call->cancel_fd, wake_fd, until_ns);
    }
    quiet_end(&quiet);
    return SBX_OK;
}

/* What is still to be said when a client is left: that something shall end. */
static bool is_last_word(const struct sbx_http_exchange *x)
{
    return strcmp(x->request.method, "DELETE") == 0;
}

static void cancel(struct sbx_http *http, struct sbx_http_exchange *x)
{
    sbx_http_easy_fail(&http->origin, x, SBX_HTTP_CANCELLED, "cancelled");
    if (x->easy)
        let_go(http, x);
    finish(x);
}

/* Ends those that wait for their turn; `all`: last words too. */
static void drop_waiting(struct sbx_http *http, bool all)
{
    struct sbx_http_exchange **at = &http->waiting, *x;

    while ((x = *at)) {
        if (!all && is_last_word(x)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        http->n_waiting--;
        cancel(http, x);
    }
}

/* Ends those that have a handle; unless `all`, those only whose request was not sent yet. */
static void drop_busy(struct sbx_http *http, bool all)
{
    struct sbx_http_exchange *next;

    for (struct sbx_http_exchange *x = http->busy; x; x = next) {
        next = x->next;
        if (all || (!x->asked && !is_last_word(x)))
            cancel(http, x);
    }
}

static void sleep_until(uint64_t until_ns)
{
    int ms;

    while ((ms = sbx_clock_poll_ms(until_ns, WAIT_MS)) > 0)
        (void)poll(NULL, 0, ms);
}

/* The earlier one of the deadline and ms milliseconds from now. */
static uint64_t within(uint64_t deadline_ns, uint64_t ms)
{
    uint64_t until = sbx_clock_now() + ms * SBX_NS_PER_MS;

    return until < deadline_ns ? until : deadline_ns;
}

/* Nothing new is asked for meanwhile, also nothing that a callback begins. */
static void leave_gently(struct sbx_http *http, uint64_t deadline_ns)
{
    uint64_t until = within(deadline_ns, SBX_LEAVE_READ_MS), ignored;

    drop_waiting(http, false);
    drop_busy(http, false);
    while (sbx_http_active(http) > 0 && sbx_clock_now() < until) {
        if (!turn(http, &ignored))
            wait(http, -1, -1, until);
        drop_waiting(http, false);
    }
    if (http->n_busy > 0)
        sleep_until(within(deadline_ns, SBX_LEAVE_QUIET_MS));
}

void sbx_http_leave(struct sbx_http *http, uint64_t deadline_ns)
{
    struct quiet quiet = quiet_begin();

    if (http->gentle)
        leave_gently(http, deadline_ns);
    while (sbx_http_active(http) > 0) { /* a callback may begin another */
        drop_waiting(http, true);
        drop_busy(http, true);
    }
    quiet_end(&quiet);
}

void sbx_http_free(struct sbx_http *http)
{
    struct quiet quiet;

    if (!http)
        return;
    http->gentle = false;
    sbx_http_leave(http, 0);
    quiet = quiet_begin();
    while (http->n_spare > 0)
        curl_easy_cleanup(http->spare[--http->n_spare]);
    (void)curl_multi_cleanup(http->multi);
    quiet_end(&quiet);
    free(http->spare);
    curl_slist_free_all(http->origin.fields);
    sbx_buf_done(&http->origin.url);
    free(http->origin.cacert);
    free(http);
}

struct asking {
    struct sbx_buf *body;
    struct sbx_http_answer *answer;
    struct sbx_error *err;
    bool done;
    enum sbx_status st;
};

static enum sbx_http_go on_answer(void *ctx, const char *bytes, size_t n)
{
    struct asking *a = ctx;

    a->st = sbx_buf_add(a->body, bytes, n, a->err);
    return a->st ? SBX_HTTP_STOP : SBX_HTTP_GO;
}

static void on_answered(void *ctx, enum sbx_http_end end, const struct sbx_http_head *head,
                        const struct sbx_error *why)
{
    struct asking *a = ctx;

    a->done = true;
    a->answer->end = end;
    a->answer->head = head ? *head : (struct sbx_http_head){.status = 0};
    if (a->st || end == SBX_HTTP_OK || end == SBX_HTTP_UNFRAMED || end == SBX_HTTP_STOPPED)
        return;
    a->st = sbx_http_status(end);
    if (a->err)
        *a->err = *why;
}

enum sbx_status sbx_http_ask(struct sbx_http *http, const struct sbx_call *call,
                             const struct sbx_http_request *request, struct sbx_buf *body,
                             struct sbx_http_answer *ret, struct sbx_error *err)
{
    struct sbx_http_answer answer = {.end = SBX_HTTP_FAILED};
    struct asking asking = {.body = body, .answer = &answer, .err = err};
    struct sbx_http_request own = *request;
    enum sbx_status st;

    own.ctx = &asking;
    own.on_head = NULL;
    own.on_body = on_answer;
    own.on_done = on_answered;
    st = sbx_http_begin(http, call->deadline_ns, &own, err);
    while (!st && !asking.done)
        st = sbx_http_step(http, call, -1, SBX_NEVER, err);
    asking.err = NULL; /* of the call's end, `err` tells already */
    if (!asking.done)
        sbx_http_leave(http, sbx_clock_now() + SBX_NS_PER_S);
    if (!st)
        st = asking.st;
    if (!st)
        *ret = answer;
    return st;
}

enum sbx_status sbx_http_status(enum sbx_http_end end)
{
    switch (end) {
    case SBX_HTTP_OK:
    case SBX_HTTP_STOPPED:
        return SBX_OK;
    case SBX_HTTP_CONNECT:
    case SBX_HTTP_TLS:
    case SBX_HTTP_NO_HEAD:
    case SBX_HTTP_CUT:
    case SBX_HTTP_RESET:
    case SBX_HTTP_UNFRAMED:
    case SBX_HTTP_STUCK:
        return SBX_E_UNREACHABLE;
    case SBX_HTTP_PROTOCOL:
        return SBX_E_REMOTE;
    case SBX_HTTP_LIMIT:
        return SBX_E_LIMIT;
    case SBX_HTTP_CANCELLED:
        return SBX_E_CANCELLED;
    case SBX_HTTP_FAILED:
        break;
    }
    return SBX_E_NOMEM;
}
