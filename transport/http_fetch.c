/* In: answers to requests for files, trusted with nothing: a status, a length and a range are
 * compared with what was listed, and bytes go to the queue, which charges them. Out: what became of
 * each file. */
#include "transport/http_fetch.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/transport.h"

#define MAX_TARGET (8 * SBX_MAX_PATH)

/* What the body of the answer under way is. */
enum mode {
    MODE_NONE = 0, /* no head yet */
    MODE_DATA,     /* bytes of the file */
    MODE_DROP,     /* of another version: an honest server is not hung up on, but nothing is kept */
    MODE_ERROR,    /* says what is wrong */
};

struct fetcher;

/* A file under way. */
struct slot {
    struct fetcher *f;
    const struct sbx_wanted *file; /* NULL: free */
    uint64_t got;                  /* bytes of the file that are here */
    uint64_t first, last;          /* asked for */
    enum mode mode;
    enum sbx_fetch_result result; /* unless the answer ends in another way */
    struct sbx_error why;
    bool asked, begun, refused, retried, whole, no_second;
    int status;
    uint64_t again_ns; /* when to ask once more; 0: not to */
    size_t n_text;
    char text[SBX_HTTP_FETCH_KEPT];
};

struct fetcher {
    const struct sbx_http_fetch *fetch;
    const struct sbx_call *call;
    const struct sbx_queue *queue;
    unsigned in_a_row;    /* files without an answer */
    enum sbx_status over; /* the source is lost, and `why` says how */
    struct sbx_error why;
    bool leaving, none, waiting;
    size_t n_slots, n_used;
    struct slot slots[SBX_MAX_JOBS];
};

static void end_file(struct slot *s, enum sbx_fetch_result result, const struct sbx_error *why)
{
    const struct sbx_wanted *file = s->file;
    const struct sbx_queue *queue = s->f->queue;

    s->file = NULL;
    s->f->n_used--;
    queue->end(queue->ctx, file, result, NULL, 0, result == SBX_FETCH_OK ? NULL : why);
}

static enum sbx_http_go set(struct slot *s, enum mode mode, enum sbx_fetch_result result,
                            enum sbx_http_go go, const char *what)
{
    s->mode = mode;
    s->result = result;
    (void)sbx_err_set(&s->why, SBX_E_REMOTE, 0, "%s", what);
    return go;
}

/* The whole body will be of the file. */
static enum sbx_http_go take(struct slot *s, bool whole)
{
    struct sbx_error ignored;

    s->mode = MODE_DATA;
    s->result = SBX_FETCH_OK;
    s->whole = whole;
    if (!s->begun) {
        s->begun = true;
        s->refused = s->f->queue->begin(s->f->queue->ctx, s->file, &ignored) != SBX_OK;
    }
    return SBX_HTTP_GO;
}

static enum sbx_http_go on_partial(struct slot *s, const struct sbx_http_head *h)
{
    if (!h->has_range || h->unsatisfied)
        return set(s, MODE_DROP, SBX_FETCH_PROTOCOL, SBX_HTTP_STOP, "status 206 without a range");
    if (s->file->size == 0 || !h->total_known || h->total != s->file->size)
        return set(s, MODE_DROP, SBX_FETCH_CHANGED, SBX_HTTP_GO, "has another size now");
    if (h->first != s->first || h->last != s->last ||
        (h->has_length && h->length != s->last - s->first + 1))
        return set(s, MODE_DROP, SBX_FETCH_PROTOCOL, SBX_HTTP_STOP, "another range than asked for");
    return take(s, false);
}

/* A server that knows no ranges, or an empty file. What is more than asked for is not waited for.
 */
static enum sbx_http_go on_whole(struct slot *s, const struct sbx_http_head *h)
{
    if (s->first > 0)
        return set(s, MODE_DROP, SBX_FETCH_PROTOCOL, SBX_HTTP_STOP,
                   "status 200 for a part of a file");
    if (h->has_length && h->length > s->file->size)
        return set(s, MODE_DROP, SBX_FETCH_CHANGED, SBX_HTTP_STOP, "has another size now");
    if (h->has_length && h->length < s->file->size)
        return set(s, MODE_DROP, SBX_FETCH_CHANGED, SBX_HTTP_GO, "has another size now");
    return take(s, true);
}

/* Servers before Go 1.20 answer 416 to any range of an empty file, and some give a length that does
 * not come: it is not waited for. */
static enum sbx_http_go on_unsatisfied(struct slot *s, const struct sbx_http_head *h)
{
    if (s->file->size == 0 && h->unsatisfied && h->total_known && h->total == 0) {
        (void)take(s, true);
        return SBX_HTTP_STOP;
    }
    return set(s, MODE_ERROR, SBX_FETCH_CHANGED, SBX_HTTP_STOP, "has another size now");
}

static bool may_pass(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static enum sbx_fetch_result result_of_status(int status)
{
    switch (status) {
    case 404:
    case 410:
        return SBX_FETCH_VANISHED;
    case 403:
        return SBX_FETCH_DENIED;
    case 401:
        return SBX_FETCH_UNAUTHORISED;
    default:
        return status >= 300 && status < 400 ? SBX_FETCH_PROTOCOL : SBX_FETCH_SERVER;
    }
}

static enum sbx_http_go on_head(void *ctx, const struct sbx_http_head *h)
{
    struct slot *s = ctx;
    bool redirect = h->status >= 300 && h->status < 400;
    bool endless = h->has_length && h->length > SBX_HTTP_ERROR;

    s->status = h->status;
    if (h->status == 206)
        return on_partial(s, h);
    if (h->status == 200)
        return on_whole(s, h);
    if (h->status == 416)
        return on_unsatisfied(s, h);
    /* A wish to wait for longer than we would is no invitation to ask again. */
    s->no_second = h->retry_after_s > SBX_RETRY_AFTER_S;
    s->again_ns = h->retry_after_s * (uint64_t)SBX_NS_PER_S;
    return set(s, MODE_ERROR, result_of_status(h->status),
               redirect || endless ? SBX_HTTP_STOP : SBX_HTTP_GO, "");
}

/* Pays, and keeps what is kept. */
static void pay(struct slot *s, const char *bytes, size_t n)
{
    struct sbx_error ignored;

    if (s->f->queue->write(s->f->queue->ctx, s->file, bytes, n, &ignored))
        s->refused = true;
}

static enum sbx_http_go on_body(void *ctx, const char *bytes, size_t n)
{
    struct slot *s = ctx;
    uint64_t room = (s->whole ? s->file->size : s->last + 1) - s->got;

    if (s->mode == MODE_ERROR) {
        size_t left = sizeof(s->text) - s->n_text, kept = n < left ? n : left;

        memcpy(s->text + s->n_text, bytes, kept);
        s->n_text += kept;
        return SBX_HTTP_GO;
    }
    if (s->mode == MODE_DROP) {
        pay(s, bytes, n);
        return SBX_HTTP_GO;
    }
    if (n > room) {
        pay(s, bytes, (size_t)room);
        pay(s, bytes + room, n - (size_t)room);
        return set(s, MODE_DROP, SBX_FETCH_CHANGED, SBX_HTTP_STOP, "more bytes than were listed");
    }
    pay(s, bytes, n);
    s->got += n;
    return SBX_HTTP_GO;
}

/* "status 500: text of the server" */
static void explain_status(struct slot *s)
{
    SBX_BUF_AUTO struct sbx_buf text = SBX_BUF_INIT(4 * SBX_HTTP_FETCH_KEPT);

    (void)!sbx_secrets_redact(s->f->fetch->secrets, s->text, s->n_text, &text, NULL);
    (void)sbx_err_set(&s->why, SBX_E_REMOTE, 0, "status %d%s%s", s->status, text.len ? ": " : "",
                      SBX_QUOTE_N(text.len ? text.data : "", text.len));
}

/* What an answer that ended in `end` makes of the file. SBX_FETCH_OK: its bytes are here. */
static enum sbx_fetch_result judge(struct slot *s, enum sbx_http_end end,
                                   const struct sbx_error *why)
{
    bool told = s->mode == MODE_DROP || s->mode == MODE_ERROR;

    if (s->mode == MODE_ERROR && s->status != 416)
        explain_status(s);
    if (told || end == SBX_HTTP_STOPPED)
        return end == SBX_HTTP_CANCELLED ? SBX_FETCH_CANCELLED : s->result;
    s->why = *why;
    switch (end) {
    case SBX_HTTP_OK:
        if (s->got == (s->whole ? s->file->size : s->last + 1) || s->file->size == 0)
            return SBX_FETCH_OK;
        (void)sbx_err_set(&s->why, SBX_E_REMOTE, 0, "the answer was short");
        return SBX_FETCH_SHORT;
    case SBX_HTTP_UNFRAMED:
    case SBX_HTTP_CUT:
    case SBX_HTTP_RESET:
        return SBX_FETCH_SHORT;
    case SBX_HTTP_CONNECT:
    case SBX_HTTP_TLS:
        return SBX_FETCH_LOST;
    case SBX_HTTP_PROTOCOL:
        return SBX_FETCH_PROTOCOL;
    case SBX_HTTP_LIMIT:
        return SBX_FETCH_LIMIT;
    case SBX_HTTP_CANCELLED:
        return SBX_FETCH_CANCELLED;
    default:
        return SBX_FETCH_SERVER;
    }
}

/* Counts files that nothing was heard of, one after another. */
static void count_silence(struct slot *s, enum sbx_http_end end)
{
    struct fetcher *f = s->f;
    bool gateway = s->status == 502 || s->status == 503 || s->status == 504;

    if (end == SBX_HTTP_CANCELLED || end == SBX_HTTP_FAILED)
        return;
    if (s->status && !gateway && end != SBX_HTTP_RESET) {
        f->in_a_row = 0;
        return;
    }
    if (++f->in_a_row < SBX_HTTP_IN_A_ROW || f->over)
        return;
    f->over = SBX_E_UNREACHABLE;
    (void)sbx_err_set(&f->why, f->over, 0, "%u files in a row without an answer; the last: %s",
                      SBX_HTTP_IN_A_ROW, s->why.msg);
}

static void ask(struct slot *s);

/* Whether the file is asked for once more, on a connection of its own. */
static bool tries_again(struct slot *s, enum sbx_http_end end)
{
    bool silent = end == SBX_HTTP_CONNECT || end == SBX_HTTP_NO_HEAD;

    if (s->retried || s->no_second || s->f->leaving || s->f->over || s->refused ||
        !(silent || (s->mode == MODE_ERROR && may_pass(s->status))))
        return false;
    s->retried = true;
    s->asked = false;
    s->again_ns += sbx_clock_now();
    return true;
}

static void on_done(void *ctx, enum sbx_http_end end, const struct sbx_http_head *head,
                    const struct sbx_error *why)
{
    struct slot *s = ctx;
    enum sbx_fetch_result result = judge(s, end, why);

    (void)head;
    if (tries_again(s, end))
        return;
    count_silence(s, end);
    if (result == SBX_FETCH_OK && s->got < s->file->size && !s->refused) {
        if (!s->f->leaving && !s->f->over) {
            ask(s);
            return;
        }
        result = s->f->over ? SBX_FETCH_LOST : SBX_FETCH_CANCELLED;
    }
    if (result == SBX_FETCH_UNAUTHORISED && !s->f->over) {
        s->f->over = SBX_E_UNAUTHORISED;
        (void)sbx_err_set(&s->f->why, s->f->over, 0, "%s", s->why.msg);
    }
    end_file(s, result, &s->why);
}

/* Asks for the next block of the file. */
static void ask(struct slot *s)
{
    SBX_BUF_AUTO struct sbx_buf target = SBX_BUF_INIT(MAX_TARGET);
    const struct fetcher *f = s->f;
    uint64_t size = s->file->size, idle = f->call->idle_ns ? f->call->idle_ns : SBX_NEVER;
    struct sbx_http_request request = {.method = "GET",
                                       .has_range = true,
                                       .max_body = size > SBX_HTTP_ERROR ? size : SBX_HTTP_ERROR,
                                       .fresh = s->retried,
                                       .first_ns = idle,
                                       .idle_ns = idle,
                                       .ctx = s,
                                       .on_head = on_head,
                                       .on_body = on_body,
                                       .on_done = on_done};
    enum sbx_status st;

    s->first = s->last = s->got;
    if (size - s->got > 1)
        s->last = size - s->got < SBX_HTTP_BLOCK ? size - 1 : s->got + SBX_HTTP_BLOCK - 1;
    s->mode = MODE_NONE;
    s->status = 0;
    s->n_text = 0;
    s->again_ns = 0;
    s->asked = true;
    request.first = s->first;
    request.last = s->last;
    st = f->fetch->target(f->fetch->ctx, s->file, &target, &s->why);
    request.target = target.data;
    if (!st)
        st = sbx_http_begin(f->fetch->http, f->call->deadline_ns, &request, &s->why);
    if (st)
        end_file(s, SBX_FETCH_SERVER, &s->why);
}

static void begin_file(struct slot *s, struct fetcher *f, const struct sbx_wanted *file)
{
    *s = (struct slot){.f = f, .file = file};
    f->n_used++;
    ask(s);
}

/* Takes files while there are free slots. */
static void fill(struct fetcher *f)
{
    f->waiting = false;
    for (size_t i = 0; i < f->n_slots && !f->none && !f->waiting; i++) {
        const struct sbx_wanted *file = NULL;

        if (f->slots[i].file)
            continue;
        switch (f->queue->next(f->queue->ctx, &file)) {
        case SBX_NEXT_FILE:
            begin_file(&f->slots[i], f, file);
            break;
        case SBX_NEXT_WAIT:
            f->waiting = true;
            break;
        case SBX_NEXT_NONE:
            f->none = true;
            break;
        }
    }
}

/* Asks again where it is time. Returns when the next such time is. */
static uint64_t ask_again(struct fetcher *f)
{
    uint64_t now = sbx_clock_now(), next = SBX_NEVER;

    for (size_t i = 0; i < f->n_slots; i++) {
        struct slot *s = &f->slots[i];

        if (!s->file || s->asked)
            continue;
        if (now >= s->again_ns)
            ask(s);
        else if (s->again_ns < next)
            next = s->again_ns;
    }
    return next;
}

static enum sbx_status fetch_all(struct fetcher *f, struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    while (!st) {
        uint64_t next;

        st = sbx_transport_check(f->call, err);
        if (st)
            break;
        if (f->over) {
            if (err)
                *err = f->why;
            return f->over;
        }
        fill(f);
        next = ask_again(f);
        if (f->n_used == 0 && f->none)
            break;
        st =
            sbx_http_step(f->fetch->http, f->call, f->waiting ? f->queue->ready_fd : -1, next, err);
    }
    return st;
}

enum sbx_status sbx_http_fetch(const struct sbx_http_fetch *fetch, const struct sbx_call *call,
                               const struct sbx_queue *queue, struct sbx_error *err)
{
    struct fetcher f = {.fetch = fetch, .call = call, .queue = queue};
    enum sbx_fetch_result rest;
    struct sbx_error why = {.status = SBX_OK};
    enum sbx_status st;

    f.n_slots = call->jobs < 1 ? 1 : call->jobs < SBX_MAX_JOBS ? call->jobs : SBX_MAX_JOBS;
    st = fetch_all(&f, &why);
    if (!st)
        return SBX_OK;
    f.leaving = true;
    sbx_http_leave(fetch->http, sbx_clock_now() + SBX_NS_PER_S);
    rest = st == SBX_E_CANCELLED || st == SBX_E_DEADLINE ? SBX_FETCH_CANCELLED : SBX_FETCH_LOST;
    for (size_t i = 0; i < f.n_slots; i++)
        if (f.slots[i].file)
            end_file(&f.slots[i], rest, &why);
    if (err)
        *err = why;
    return st;
}
