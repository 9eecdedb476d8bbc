/* In: the answer to a command, from whoever answers on execd's port; trusted with nothing. Events
 * are read by execd_events, their text by the caller's sinks. Out: requests to the same origin; the
 * one path in them that the peer has told is sent back to it and used for nothing else. */
#include "transport/execd_command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/execd_events.h"
#include "transport/marked.h"

#define MAX_BODY (2 * SBX_MIB) /* a script, each byte an escape of six at worst */
#define STATUS_SIGPIPE (128 + SIGPIPE)

/* What goes before each script. Its standard output is a regular file that execd keeps for good and
 * that may lie below the root: its name is told to us, for its removal, and to the script, which
 * does not list it. Descriptor 9, since within $( ) descriptor 1 is another one. */
static const char prologue[] =
    "\ntrap '' PIPE\n"
    "{ sbx_o=$(readlink /proc/self/fd/9 2>/dev/null); } 9>&1\n"
    "printf '\\n%%s out %%s\\n' %s \"$sbx_o\"\n"
    "sbx_own=${sbx_o##*/}\n"
    "case $sbx_own in *.stdout) sbx_own=${sbx_own%%stdout}std* ;; *) sbx_own= ;; esac\n";

struct command {
    struct sbx_http *http;
    const struct sbx_secrets *secrets;
    struct sbx_execd_events events;
    struct sbx_marked lines;
    char nonce[SBX_MARKED_NONCE + 1];
    struct sbx_buf file;  /* owned; the output file as the script told it */
    struct sbx_buf error; /* owned; body of another answer than 200 */
    struct sbx_sink out;
    bool any;     /* out was given something */
    bool refused; /* out has failed: `failure` is its own */
    bool broken;  /* the events have: likewise */
    struct sbx_error failure;
    int status;        /* of the answer; 0: none yet */
    uint64_t heard_ns; /* when output came last */
    bool done;
    enum sbx_http_end end;
    struct sbx_error why;
};

static enum sbx_status on_bytes(void *ctx, const char *bytes, size_t n, struct sbx_error *err)
{
    struct command *c = ctx;
    enum sbx_status st;

    /* The newlines around our own line are nobody's output. */
    if (!c->any && n == 1 && bytes[0] == '\n')
        return SBX_OK;
    if (c->refused || !c->out.write)
        return SBX_OK;
    c->any = true;
    st = c->out.write(c->out.ctx, bytes, n, &c->failure);
    if (st) {
        c->refused = true;
        c->failure.status = st;
        return sbx_err_set(err, st, 0, "%s", c->failure.msg);
    }
    return SBX_OK;
}

static enum sbx_status on_line(void *ctx, const char *text, bool *ret_taken, struct sbx_error *err)
{
    struct command *c = ctx;

    *ret_taken = strncmp(text, "out ", 4) == 0;
    if (!*ret_taken)
        return SBX_OK;
    sbx_buf_clear(&c->file);
    return sbx_buf_str(&c->file, text + 4, err);
}

static enum sbx_status on_output(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct command *c = ctx;

    c->heard_ns = sbx_clock_now();
    return sbx_marked_push(&c->lines, bytes, n, err);
}

static enum sbx_http_go on_head(void *ctx, const struct sbx_http_head *head)
{
    struct command *c = ctx;

    c->status = head->status;
    return SBX_HTTP_GO;
}

/* The stream is followed to its terminal event and no further: execd waits a second before it ends
 * the body. After a refusal it is still followed, for that event. */
static enum sbx_http_go on_body(void *ctx, const char *bytes, size_t n)
{
    struct command *c = ctx;
    struct sbx_error why = {.status = SBX_OK};
    enum sbx_status st;

    if (c->status != 200) {
        size_t room = c->error.max - c->error.len;

        (void)!sbx_buf_add(&c->error, bytes, n < room ? n : room, NULL);
        return c->error.len < SBX_HTTP_ERROR_KEPT ? SBX_HTTP_GO : SBX_HTTP_STOP;
    }
    st = sbx_execd_events_write(&c->events, bytes, n, &why);
    if (st && !c->refused) {
        c->broken = true;
        c->failure = why;
    }
    return c->broken || c->events.ended ? SBX_HTTP_STOP : SBX_HTTP_GO;
}

static void on_done(void *ctx, enum sbx_http_end end, const struct sbx_http_head *head,
                    const struct sbx_error *why)
{
    struct command *c = ctx;

    (void)head;
    c->done = true;
    c->end = end;
    c->why = *why;
}

static enum sbx_http_go drop_body(void *ctx, const char *bytes, size_t n)
{
    (void)ctx;
    (void)bytes;
    (void)n;
    return SBX_HTTP_GO;
}

static void drop_done(void *ctx, enum sbx_http_end end, const struct sbx_http_head *head,
                      const struct sbx_error *why)
{
    (void)ctx;
    (void)end;
    (void)head;
    (void)why;
}

/* Asks execd to end the command, and leaves the stream, which then ends soon. Without an id there
 * is only the time limit that execd was given. */
static void abandon(struct command *c)
{
    uint64_t until = sbx_clock_now() + SBX_NS_PER_S;
    char target[sizeof("/command?id=") + SBX_EXECD_ID] = "/command?id=";
    const struct sbx_http_request request = {.method = "DELETE",
                                             .target = target,
                                             .max_body = SBX_HTTP_ERROR,
                                             .first_ns = SBX_NS_PER_S,
                                             .idle_ns = SBX_NS_PER_S,
                                             .on_body = drop_body,
                                             .on_done = drop_done};

    if (c->events.id[0] && !c->events.ended) {
        memcpy(target + strlen(target), c->events.id, sizeof(c->events.id));
        (void)!sbx_http_begin(c->http, until, &request, NULL);
    }
    sbx_http_leave(c->http, until);
}

/* Whether the path is what execd names its file of this very command; nothing else is ever deleted.
 * execd expands '$' in paths. */
static bool is_own_file(const struct command *c)
{
    static const char end[] = ".stdout";
    const size_t n = SBX_EXECD_ID + sizeof(end) - 1;
    const char *path = c->file.data, *name;

    if (!c->events.id[0] || c->file.len <= n || path[0] != '/' || strchr(path, '$'))
        return false;
    name = path + c->file.len - n;
    return name[-1] == '/' && memcmp(name, c->events.id, SBX_EXECD_ID) == 0 &&
           strcmp(name + SBX_EXECD_ID, end) == 0;
}

/* Both outputs of a command that has ended; a failure costs the sandbox some disk, no more. */
static void remove_outputs(struct command *c, uint64_t deadline_ns)
{
    SBX_BUF_AUTO struct sbx_buf target = SBX_BUF_INIT(8 * SBX_MAX_PATH);
    SBX_BUF_AUTO struct sbx_buf body = SBX_BUF_INIT(SBX_HTTP_ERROR);
    const struct sbx_call call = {
        .version = SBX_CALL_VERSION, .deadline_ns = deadline_ns, .cancel_fd = -1};
    struct sbx_http_request request = {.method = "DELETE",
                                       .max_body = SBX_HTTP_ERROR,
                                       .first_ns = 5 * (uint64_t)SBX_NS_PER_S,
                                       .idle_ns = 5 * (uint64_t)SBX_NS_PER_S};
    struct sbx_http_answer answer;
    size_t stem = c->file.len - strlen("stdout");

    if (!is_own_file(c) || sbx_buf_str(&target, "/files?path=", NULL) ||
        sbx_url_encode(&target, c->file.data, c->file.len, NULL) ||
        sbx_buf_str(&target, "&path=", NULL) || sbx_url_encode(&target, c->file.data, stem, NULL) ||
        sbx_buf_str(&target, "stderr", NULL))
        return;
    request.target = target.data;
    (void)!sbx_http_ask(c->http, &call, &request, &body, &answer, NULL);
}

static enum sbx_status make_body(const struct command *c, const struct sbx_call *call,
                                 const char *script, size_t script_len, struct sbx_buf *out,
                                 struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf text = SBX_BUF_INIT(MAX_BODY);
    SBX_JSON_AUTO struct sbx_json *json = sbx_json_object();
    SBX_JSON_AUTO struct sbx_json *envs = sbx_json_object();
    uint64_t now = sbx_clock_now();
    uint64_t ms = call->deadline_ns > now ? (call->deadline_ns - now) / SBX_NS_PER_MS + 1 : 1;
    enum sbx_status st = sbx_buf_printf(&text, err, prologue, c->nonce);

    if (!st)
        st = sbx_buf_add(&text, script, script_len, err);
    if (st)
        return st;
    /* The server's own shell would read start-up files, and print in its user's language. */
    sbx_json_add_str(envs, "BASH_ENV", "");
    sbx_json_add_str(envs, "ENV", "");
    sbx_json_add_str(envs, "LC_ALL", "C");
    sbx_json_add_bytes(json, "command", text.data, text.len);
    sbx_json_add_uint(json, "timeout", ms);
    sbx_json_add(json, "envs", &envs);
    return sbx_json_write(json, out, err);
}

/* Another answer than 200: nothing was run. */
static enum sbx_status refused_by_server(const struct command *c, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf text = SBX_BUF_INIT(2 * SBX_HTTP_ERROR_KEPT);
    bool credentials = c->status == 401 || c->status == 403;

    (void)!sbx_secrets_redact(c->secrets, c->error.data, c->error.len, &text, NULL);
    return sbx_err_set(err, credentials ? SBX_E_UNAUTHORISED : SBX_E_UNREACHABLE, 0,
                       "execd answered a command with status %d%s%s", c->status,
                       text.len ? ": " : "", SBX_QUOTE_N(text.len ? text.data : "", text.len));
}

static enum sbx_status result(const struct command *c, struct sbx_exit *ret_exit,
                              struct sbx_error *err)
{
    if (c->refused || c->broken) {
        if (err)
            *err = c->failure;
        return c->failure.status;
    }
    if (c->events.ended && c->events.exit.kind == SBX_EXIT_UNKNOWN && c->events.why[0])
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "the command did not start: %s",
                           c->events.why);
    if (c->events.ended) {
        *ret_exit = c->events.exit;
        return SBX_OK;
    }
    if (c->status && c->status != 200)
        return refused_by_server(c, err);
    if (c->end == SBX_HTTP_OK || c->end == SBX_HTTP_UNFRAMED || c->end == SBX_HTTP_CUT ||
        c->end == SBX_HTTP_RESET)
        return sbx_err_set(err, SBX_E_UNREACHABLE, 0,
                           "execd's answer ended before the command did");
    if (err)
        *err = c->why;
    return sbx_http_status(c->end);
}

static enum sbx_status follow(struct command *c, const struct sbx_call *call, uint64_t quiet_ns,
                              struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    while (!st && !c->done && !c->refused) {
        uint64_t until = call->deadline_ns;

        if (quiet_ns && c->heard_ns + quiet_ns < until)
            until = c->heard_ns + quiet_ns;
        st = sbx_http_step(c->http, call, -1, until, err);
        if (!st && !c->done && quiet_ns && sbx_clock_now() >= c->heard_ns + quiet_ns)
            st = sbx_err_set(err, SBX_E_LIMIT, 0, "no output came for %.1f s",
                             (double)quiet_ns / SBX_NS_PER_S);
    }
    return st;
}

static enum sbx_status run_once(struct command *c, const struct sbx_call *call, const char *body,
                                size_t body_len, uint64_t quiet_ns, struct sbx_exit *ret_exit,
                                struct sbx_error *err)
{
    const uint64_t idle = call->idle_ns ? call->idle_ns : SBX_NEVER;
    const struct sbx_http_request request = {.method = "POST",
                                             .target = "/command",
                                             .send = body,
                                             .send_len = body_len,
                                             .accept = "text/event-stream",
                                             .max_body = UINT64_MAX,
                                             .fresh = true,
                                             .first_ns = idle,
                                             .idle_ns = idle,
                                             .ctx = c,
                                             .on_head = on_head,
                                             .on_body = on_body,
                                             .on_done = on_done};
    enum sbx_status st;

    c->heard_ns = sbx_clock_now();
    st = sbx_http_begin(c->http, call->deadline_ns, &request, err);
    if (!st)
        st = follow(c, call, quiet_ns, err);
    /* What broke its rules was closed at once; the command behind it may still run. */
    if (!c->done || (c->broken && !c->events.ended))
        abandon(c);
    if (!st && c->events.ended && !c->refused)
        (void)!sbx_marked_end(&c->lines, NULL); /* a failure is remembered by on_bytes */
    if (c->events.ended)
        /* Whoever drips an answer to this must not hold the pass up. */
        remove_outputs(c, sbx_clock_now() + (st ? SBX_NS_PER_S / 4 : SBX_NS_PER_S));
    return st ? st : result(c, ret_exit, err);
}

/* Whether another client of the same execd killed the command by hanging up: execd sends on the
 * SIGPIPE that it gets. It happens before the script's own first line if at all. */
static bool was_bystander(const struct command *c, enum sbx_status st, const struct sbx_exit *exit)
{
    if (st || c->any)
        return false;
    return (exit->kind == SBX_EXIT_SIGNALLED && exit->code == SIGPIPE) ||
           (exit->kind == SBX_EXIT_EXITED && exit->code == STATUS_SIGPIPE);
}

static enum sbx_status attempt(struct command *c, const struct sbx_call *call, const char *script,
                               size_t script_len, uint64_t quiet_ns, struct sbx_sink diag,
                               struct sbx_exit *ret_exit, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf body = SBX_BUF_INIT(MAX_BODY);
    enum sbx_status st;

    sbx_random_hex(c->nonce, SBX_MARKED_NONCE / 2);
    c->lines = (struct sbx_marked){.nonce = c->nonce, .ctx = c, .bytes = on_bytes, .line = on_line};
    c->file = SBX_BUF_INIT(SBX_MARKED_MAX);
    c->error = SBX_BUF_INIT(SBX_HTTP_ERROR_KEPT);
    sbx_execd_events_init(&c->events, (struct sbx_sink){on_output, c}, diag, c->secrets);
    st = make_body(c, call, script, script_len, &body, err);
    if (!st)
        st = run_once(c, call, body.data, body.len, quiet_ns, ret_exit, err);
    sbx_execd_events_done(&c->events);
    sbx_buf_done(&c->file);
    sbx_buf_done(&c->error);
    return st;
}

enum sbx_status sbx_execd_command(struct sbx_http *http, const struct sbx_secrets *secrets,
                                  const struct sbx_call *call, const char *script,
                                  size_t script_len, uint64_t quiet_ns, struct sbx_sink out,
                                  struct sbx_sink diag, struct sbx_exit *ret_exit,
                                  struct sbx_error *err)
{
    const struct command fresh = {.http = http, .secrets = secrets, .out = out};
    struct command c = fresh;
    enum sbx_status st;

    st = attempt(&c, call, script, script_len, quiet_ns, diag, ret_exit, err);
    if (was_bystander(&c, st, ret_exit)) {
        c = fresh;
        st = attempt(&c, call, script, script_len, quiet_ns, diag, ret_exit, err);
    }
    return st;
}
