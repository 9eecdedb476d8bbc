/* In: what a command of the sandbox prints; exec_stream makes something of it. */
#include "transport/stream_fetch.h"

#include <string.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/exec_script.h"
#include "transport/exec_stream.h"

/* Names, a line's rest for each, the snippet with the root, what stands around them. */
#define MAX_SCRIPT (SBX_STREAM_NAMES + SBX_STREAM_FILES * 64 + 8 * SBX_MAX_PATH + 32 * SBX_KIB)

struct stream {
    const struct sbx_queue *queue;
    const struct sbx_wanted *const *files;
    size_t n, ended;
};

static void end_rest(struct stream *s, enum sbx_fetch_result result, const struct sbx_error *why)
{
    while (s->ended < s->n)
        s->queue->end(s->queue->ctx, s->files[s->ended++], result, NULL, 0, why);
}

static enum sbx_coding coding_of(const char *tools)
{
    size_t n = strlen(tools);

    return n >= 4 && strcmp(tools + n - 4, ",hex") == 0 ? SBX_CODING_HEX : SBX_CODING_BASE64;
}

/* Asks once for what is not ended. SBX_OK: at least one file more was ended. */
static enum sbx_status ask(sbx_stream_run_fn *run, void *ctx, const struct sbx_call *call,
                           struct stream *s, struct sbx_sink diag, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf script = SBX_BUF_INIT(MAX_SCRIPT);
    const struct sbx_wanted *const *files = s->files + s->ended;
    size_t n = s->n - s->ended;
    char nonce[SBX_MARKED_NONCE + 1];
    struct sbx_exec_stream stream;
    struct sbx_exit exit = {.kind = SBX_EXIT_UNKNOWN};
    enum sbx_status st;

    sbx_random_hex(nonce, SBX_MARKED_NONCE / 2);
    st = sbx_exec_script(nonce, call->snippet, files, n, n, &script, err);
    if (st)
        return st;
    sbx_exec_stream_init(&stream, s->queue, files, n, nonce, coding_of(call->tools));
    stream.singles = n; /* no group, so nothing is ever put off */
    st = run(ctx, call, script.data, script.len, (struct sbx_sink){sbx_exec_stream_write, &stream},
             diag, &exit, err);
    if (stream.broken)
        (void)sbx_exec_stream_blame(&stream, false, SBX_FETCH_PROTOCOL, err);
    else if (st == SBX_E_LIMIT) /* nothing came for too long: whose turn it is holds it up */
        (void)sbx_exec_stream_blame(&stream, true, SBX_FETCH_SERVER, err);
    s->ended += stream.ended;
    sbx_exec_stream_done(&stream);
    if (stream.ended == n || (stream.ended > 0 && (st == SBX_E_REMOTE || st == SBX_E_LIMIT)))
        return SBX_OK;
    return st ? st : sbx_err_set(err, SBX_E_UNREACHABLE, 0, "the fetch script ended too early");
}

enum sbx_status sbx_stream_fetch(sbx_stream_run_fn *run, void *ctx, const struct sbx_call *call,
                                 const struct sbx_queue *queue,
                                 const struct sbx_wanted *const files[], size_t n,
                                 struct sbx_sink diag, struct sbx_error *err)
{
    struct stream s = {.queue = queue, .files = files, .n = n};
    struct sbx_error why = {.status = SBX_OK};
    enum sbx_status st = SBX_OK;

    if (!call->tools || !call->snippet)
        st = sbx_err_set(&why, SBX_E_USAGE, 0, "fetch: no listing tools");
    while (!st && s.ended < s.n)
        st = ask(run, ctx, call, &s, diag, &why);
    if (!st)
        return SBX_OK;
    end_rest(&s,
             st == SBX_E_CANCELLED || st == SBX_E_DEADLINE ? SBX_FETCH_CANCELLED : SBX_FETCH_LOST,
             &why);
    if (err)
        *err = why;
    return st;
}
