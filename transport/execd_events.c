/* In: bytes of an answer that anybody in the sandbox may have written, trusted with nothing. Lines,
 * their nesting and their sum are bounded. Out: texts, which mean what their reader makes of them,
 * and one claim about how the command ended. */
#include "transport/execd_events.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/quote.h"

#define DEADLINE_CODE 124 /* what timeout(1) gives */
#define MAX_CODE 255
#define MAX_SIGNAL 64

void sbx_execd_events_init(struct sbx_execd_events *e, struct sbx_sink out, struct sbx_sink diag,
                           const struct sbx_secrets *secrets)
{
    *e = (struct sbx_execd_events){
        .out = out, .diag = diag, .secrets = secrets, .line = SBX_BUF_INIT(SBX_EVENT_LINE)};
}

void sbx_execd_events_done(struct sbx_execd_events *e)
{
    sbx_buf_done(&e->line);
}

static enum sbx_status malformed(struct sbx_error *err, const char *what)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "the command's events: %s", what);
}

static void keep_id(struct sbx_execd_events *e, const char *text, size_t n)
{
    if (!e->any_init && n == SBX_EXECD_ID && strspn(text, "0123456789abcdef") == n)
        memcpy(e->id, text, n);
    e->any_init = true;
}

static bool ends_in_lf(const char *text, size_t n)
{
    return n > 0 && text[n - 1] == '\n';
}

/* The terminator of a line is not sent, and an empty line is sent as the text "\n". */
static enum sbx_status on_out(struct sbx_execd_events *e, const char *text, size_t n,
                              struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    e->useful += n;
    if (!e->out.write)
        return SBX_OK;
    if (n > 0)
        st = e->out.write(e->out.ctx, text, n, err);
    if (!st && !ends_in_lf(text, n))
        st = e->out.write(e->out.ctx, "\n", 1, err);
    return st;
}

static void on_diag(struct sbx_execd_events *e, const char *text, size_t n)
{
    SBX_BUF_AUTO struct sbx_buf shown = SBX_BUF_INIT(4 * SBX_EVENT_LINE);

    if (!e->diag.write || sbx_secrets_redact(e->secrets, text, n, &shown, NULL))
        return;
    if (!ends_in_lf(shown.data, shown.len) && sbx_buf_str(&shown, "\n", NULL))
        return;
    (void)e->diag.write(e->diag.ctx, shown.data, shown.len, NULL);
}

/* Text of the peer for a message. */
static void explain(const struct sbx_execd_events *e, const char *text, size_t n, char *out,
                    size_t cap)
{
    SBX_BUF_AUTO struct sbx_buf shown = SBX_BUF_INIT(4 * SBX_EVENT_LINE);

    (void)!sbx_secrets_redact(e->secrets, text, n, &shown, NULL);
    (void)sbx_quote_ascii(out, cap, shown.len ? shown.data : "", shown.len);
}

/* A decimal number up to `most`, all of text[0..n). */
static bool number(const char *text, size_t n, int most, int *ret)
{
    int value = 0;

    if (n == 0 || n > 5)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = 10 * value + (text[i] - '0');
    }
    if (value > most)
        return false;
    *ret = value;
    return true;
}

/* The names that Go gives to signals. */
static const struct signal_name {
    const char *text;
    int number;
} signals[] = {
    {"hangup", SIGHUP},
    {"interrupt", SIGINT},
    {"quit", SIGQUIT},
    {"illegal instruction", SIGILL},
    {"trace/breakpoint trap", SIGTRAP},
    {"aborted", SIGABRT},
    {"bus error", SIGBUS},
    {"floating point exception", SIGFPE},
    {"killed", SIGKILL},
    {"user defined signal 1", SIGUSR1},
    {"segmentation fault", SIGSEGV},
    {"user defined signal 2", SIGUSR2},
    {"broken pipe", SIGPIPE},
    {"alarm clock", SIGALRM},
    {"terminated", SIGTERM},
};

static bool is(const char *text, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(text, name, n) == 0;
}

static bool begins(const char *text, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* "signal: killed", "signal: aborted (core dumped)", or "signal: signal 24" for those that have no
 * name. 0: no such text. */
static int signal_of(const char *text, size_t n)
{
    static const char before[] = "signal: ", after[] = " (core dumped)", unnamed[] = "signal ";
    const size_t n_after = sizeof(after) - 1, n_unnamed = sizeof(unnamed) - 1;
    int value;

    if (!begins(text, n, before))
        return 0;
    text += sizeof(before) - 1;
    n -= sizeof(before) - 1;
    if (n > n_after && is(text + n - n_after, n_after, after))
        n -= n_after;
    for (size_t i = 0; i < N_ELEMENTS(signals); i++)
        if (is(text, n, signals[i].text))
            return signals[i].number;
    if (begins(text, n, unnamed) && number(text + n_unnamed, n - n_unnamed, MAX_SIGNAL, &value))
        return value;
    return 0;
}

static bool names_deadline(const char *text, size_t n)
{
    static const char name[] = "context deadline exceeded";

    return memmem(text, n, name, sizeof(name) - 1) != NULL;
}

/* What evalue says; SBX_EXIT_UNKNOWN if that is neither a status nor a deadline. */
static struct sbx_exit exit_of(const struct sbx_json *error, const char *value, size_t n)
{
    struct sbx_exit ended = {.kind = SBX_EXIT_UNKNOWN};
    const char *trace;
    size_t n_trace;

    if (number(value, n, MAX_CODE, &ended.code)) {
        ended.kind = SBX_EXIT_EXITED;
    } else if (is(value, n, "-1")) {
        ended.kind = SBX_EXIT_SIGNALLED;
        if (sbx_json_get_element_str(error, "traceback", 0, &trace, &n_trace))
            ended.code = signal_of(trace, n_trace);
    } else if (names_deadline(value, n)) {
        ended = (struct sbx_exit){SBX_EXIT_DEADLINE, DEADLINE_CODE};
    }
    return ended;
}

static void on_error(struct sbx_execd_events *e, const struct sbx_json *json)
{
    SBX_JSON_AUTO struct sbx_json *error = NULL;
    const char *value = "";
    size_t n = 0;

    e->ended = true;
    if (sbx_json_get_object(json, "error", &error) && sbx_json_get_str(error, "evalue", &value, &n))
        e->exit = exit_of(error, value, n);
    if (e->exit.kind == SBX_EXIT_UNKNOWN && n > 0)
        explain(e, value, n, e->why, sizeof(e->why));
    else if (e->exit.kind == SBX_EXIT_UNKNOWN)
        (void)snprintf(e->why, sizeof(e->why), "no reason was given");
}

/* An object without a type: execd's own error, sent in place of an event. */
static enum sbx_status on_bare_error(const struct sbx_execd_events *e, const struct sbx_json *json,
                                     struct sbx_error *err)
{
    const char *text;
    char shown[256];
    size_t n;

    if (!sbx_json_get_str(json, "code", &text, &n))
        return malformed(err, "an object without a type");
    if (!sbx_json_get_str(json, "message", &text, &n))
        (void)sbx_json_get_str(json, "code", &text, &n);
    explain(e, text, n, shown, sizeof(shown));
    return sbx_err_set(err, SBX_E_REMOTE, 0, "execd: %s", shown);
}

static enum sbx_status on_event(struct sbx_execd_events *e, const struct sbx_json *json,
                                struct sbx_error *err)
{
    const char *type, *text = "";
    size_t n, n_text = 0;

    if (!sbx_json_get_str(json, "type", &type, &n))
        return on_bare_error(e, json, err);
    (void)sbx_json_get_str(json, "text", &text, &n_text);
    if (is(type, n, "stdout"))
        return on_out(e, text, n_text, err);
    if (is(type, n, "stderr")) {
        on_diag(e, text, n_text);
    } else if (is(type, n, "init")) {
        keep_id(e, text, n_text);
    } else if (is(type, n, "execution_complete")) {
        e->ended = true;
        e->exit = (struct sbx_exit){SBX_EXIT_EXITED, 0};
    } else if (is(type, n, "error")) {
        on_error(e, json);
    }
    return SBX_OK; /* pings, and whatever later versions add */
}

/* The other fields of Server-Sent Events, and comments. */
static bool means_nothing(const char *line, size_t n)
{
    return n == 0 || line[0] == ':' || begins(line, n, "event:") || begins(line, n, "id:") ||
           begins(line, n, "retry:");
}

static enum sbx_status on_line(struct sbx_execd_events *e, const char *line, size_t n,
                               struct sbx_error *err)
{
    SBX_JSON_AUTO struct sbx_json *json = NULL;
    enum sbx_status st;

    if (n > 0 && line[n - 1] == '\r')
        n--;
    if (means_nothing(line, n))
        return SBX_OK;
    if (begins(line, n, "data:")) {
        line += 5;
        n -= 5;
        if (n > 0 && *line == ' ') {
            line++;
            n--;
        }
        if (n == 0)
            return SBX_OK;
    }
    st = sbx_json_parse(line, n, &json, NULL);
    if (st == SBX_E_NOMEM)
        return sbx_err_nomem(err);
    return st ? malformed(err, "a line that is no JSON") : on_event(e, json, err);
}

/* What stands around the output is bounded too: pings, empty events and standard error, of which no
 * sink ever has enough, would else go on for ever. */
static enum sbx_status count(struct sbx_execd_events *e, size_t n, struct sbx_error *err)
{
    e->raw += n;
    if (e->raw > SBX_EVENT_SLACK && (e->raw - SBX_EVENT_SLACK) / SBX_EVENT_FACTOR > e->useful)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "the command's events: too much that says nothing");
    return SBX_OK;
}

static enum sbx_status keep(struct sbx_execd_events *e, const char *bytes, size_t n,
                            struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_add(&e->line, bytes, n, err);

    if (st == SBX_E_LIMIT)
        return sbx_err_set(err, st, 0, "the command's events: a line of more than %llu bytes",
                           (unsigned long long)SBX_EVENT_LINE);
    return st;
}

enum sbx_status sbx_execd_events_write(struct sbx_execd_events *e, const char *bytes, size_t n,
                                       struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    while (n > 0 && !e->ended && !st) {
        const char *lf = memchr(bytes, '\n', n);
        size_t part = lf ? (size_t)(lf - bytes) + 1 : n;

        st = count(e, part, err);
        if (!st)
            st = keep(e, bytes, lf ? part - 1 : part, err);
        if (!st && lf) {
            st = on_line(e, e->line.len ? e->line.data : "", e->line.len, err);
            sbx_buf_clear(&e->line);
        }
        bytes += part;
        n -= part;
    }
    return st;
}
