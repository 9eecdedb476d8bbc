/* COMMAND as a transport: one shell for everything, scripts one after another. In: what that shell
 * prints, trusted with nothing; exec_stream and the caller's sinks make something of it. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/quote.h"
#include "transport/exec_script.h"
#include "transport/exec_stream.h"
#include "transport/shell.h"
#include "transport/transport.h"

#define STARTS 2u /* of COMMAND: a first one, and one more if it ends early */

/* Script of a batch: names, a line's rest for each, the snippet, what stands around it. */
#define MAX_SCRIPT (SBX_BATCH_NAMES + 4 * (SBX_MAX_PATH + 1) + SBX_BATCH_FILES * 64 + 64 * SBX_KIB)

/* The files of one script, taken from the queue and not all ended yet. */
struct batch {
    const struct sbx_wanted *files[SBX_BATCH_FILES];
    const struct sbx_wanted *again[SBX_BATCH_FILES]; /* to be asked for one by one */
    size_t n, ended;
    size_t singles; /* files[0..singles) go one by one */
    bool forgiven;  /* a group has had its new start */
    uint64_t bytes, names;
};

struct exec {
    struct sbx_shell shell;
    char **argv; /* owned, NULL-terminated, each owned */
    struct batch batch;
};

/* A script that was run to its end shows that COMMAND works: what ends it later is a new trouble
 * and has a new start of its own. */
static void renew_starts(struct exec *exec)
{
    if (exec->shell.child.pid)
        exec->shell.starts_left = STARTS - 1;
}

struct counted {
    struct sbx_sink next;
    bool any;
};

static enum sbx_status count_write(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct counted *counted = ctx;

    counted->any = true;
    return counted->next.write ? counted->next.write(counted->next.ctx, bytes, n, err) : SBX_OK;
}

static enum sbx_status exec_run(void *self, const struct sbx_call *call, const char *script,
                                size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                                struct sbx_exit *ret_exit, struct sbx_error *err)
{
    struct exec *exec = self;
    struct counted counted = {.next = out};
    struct sbx_sink sink = {count_write, &counted};
    bool used = exec->shell.child.pid != 0;
    enum sbx_status st;

    /* No idle limit: a walk through many directories without a file is silent for long. */
    st = sbx_shell_run(&exec->shell, call, script, script_len, 0, sink, diag, ret_exit, err);
    /* A shell that was lost after an earlier script shows it only now: nothing of this one was
     * answered, so it can be given to a new shell. */
    if (st == SBX_E_UNREACHABLE && used && !counted.any && exec->shell.starts_left > 0)
        st = sbx_shell_run(&exec->shell, call, script, script_len, 0, sink, diag, ret_exit, err);
    if (!st)
        renew_starts(exec);
    return st;
}

/* Takes files until a limit is reached or the queue has none just now. The file that reaches a
 * limit is in, since it cannot be given back. Waits only while there is nothing to do. */
static enum sbx_status gather(const struct sbx_call *call, const struct sbx_queue *queue,
                              struct batch *batch, struct sbx_error *err)
{
    batch->n = batch->ended = batch->singles = 0;
    batch->forgiven = false;
    batch->bytes = batch->names = 0;
    while (batch->n < SBX_BATCH_FILES && batch->bytes < SBX_BATCH_BYTES &&
           batch->names < SBX_BATCH_NAMES) {
        const struct sbx_wanted *file = NULL;
        enum sbx_next next;
        enum sbx_status st = sbx_transport_next(call, queue, batch->n == 0, &next, &file, err);

        if (st)
            return st;
        if (next != SBX_NEXT_FILE)
            break;
        batch->files[batch->n++] = file;
        batch->names += sbx_quote_octal_len(file->path, file->path_len);
        if (__builtin_add_overflow(batch->bytes, file->size, &batch->bytes))
            batch->bytes = UINT64_MAX;
    }
    return SBX_OK;
}

static void end_rest(const struct sbx_queue *queue, struct batch *batch,
                     enum sbx_fetch_result result, const struct sbx_error *why)
{
    while (batch->ended < batch->n)
        queue->end(queue->ctx, batch->files[batch->ended++], result, NULL, 0, why);
}

/* Whether the file under way is what ended the stream: it broke its rules in it, or nothing more
 * came of it. A channel that was lost, and a first byte that never came, are no file's fault. In a
 * group nobody can tell whose fault it is: its files go one by one, and have a new start for it. */
static void blame(struct exec *exec, struct sbx_exec_stream *stream, enum sbx_status st,
                  const struct sbx_error *why)
{
    bool in_group = stream->state == SBX_EXEC_GROUP && (stream->broken || st == SBX_E_LIMIT);

    if (stream->broken)
        (void)sbx_exec_stream_blame(stream, false, SBX_FETCH_PROTOCOL, why);
    else if (st == SBX_E_LIMIT)
        (void)sbx_exec_stream_blame(stream, true, SBX_FETCH_SERVER, why);
    if (in_group && !exec->batch.forgiven) {
        exec->batch.forgiven = true;
        exec->shell.starts_left++;
    }
}

/* What the batch has still to ask for: first those that go one by one. */
static void keep_rest(struct batch *batch, const struct sbx_exec_stream *stream)
{
    size_t ended = stream->ended, rest = batch->n - ended, again = stream->n_again;

    memmove(batch->files + again, batch->files + ended, rest * sizeof(*batch->files));
    memcpy(batch->files, batch->again, again * sizeof(*batch->files));
    batch->singles = again + (batch->singles > ended ? batch->singles - ended : 0);
    batch->n = again + rest;
    batch->ended = 0;
}

/* Asks once for what is not ended of the batch. */
static enum sbx_status ask(struct exec *exec, const struct sbx_call *call,
                           const struct sbx_queue *queue, struct batch *batch, struct sbx_sink diag,
                           struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf script = SBX_BUF_INIT(MAX_SCRIPT);
    size_t tools = strlen(call->tools);
    bool hex = tools >= 4 && strcmp(call->tools + tools - 4, ",hex") == 0;
    char nonce[SBX_MARKED_NONCE + 1];
    struct sbx_exec_stream stream;
    struct sbx_exit ended;
    enum sbx_status st;

    sbx_random_hex(nonce, SBX_MARKED_NONCE / 2);
    st =
        sbx_exec_script(nonce, call->snippet, batch->files, batch->n, batch->singles, &script, err);
    if (st)
        return st;
    sbx_exec_stream_init(&stream, queue, batch->files, batch->n, nonce,
                         hex ? SBX_CODING_HEX : SBX_CODING_BASE64);
    stream.singles = batch->singles;
    stream.again = batch->again;
    st = sbx_shell_run(&exec->shell, call, script.data, script.len, call->idle_ns,
                       (struct sbx_sink){sbx_exec_stream_write, &stream}, diag, &ended, err);
    if (!st && stream.ended < batch->n) {
        sbx_shell_end(&exec->shell);
        st = sbx_err_set(err, SBX_E_UNREACHABLE, 0,
                         "the fetch script ended with status %d before its end", ended.code);
    } else if (st) {
        blame(exec, &stream, st, err);
    }
    keep_rest(batch, &stream);
    sbx_exec_stream_done(&stream);
    return st;
}

/* Brings one batch, with the one new start if it is needed. SBX_OK: every file was ended, and a
 * trouble after that is of no interest here. */
static enum sbx_status bring(struct exec *exec, const struct sbx_call *call,
                             const struct sbx_queue *queue, struct batch *batch,
                             struct sbx_sink diag, struct sbx_error *err)
{
    while (batch->ended < batch->n) {
        struct sbx_error why = {0};
        enum sbx_status st = ask(exec, call, queue, batch, diag, &why);

        if (!st || batch->ended == batch->n)
            continue;
        if (st == SBX_E_CANCELLED || st == SBX_E_DEADLINE) {
            end_rest(queue, batch, SBX_FETCH_CANCELLED, &why);
            return sbx_err_set(err, st, 0, "%s", why.msg);
        }
        if (st != SBX_E_UNREACHABLE && st != SBX_E_REMOTE && st != SBX_E_LIMIT) {
            end_rest(queue, batch, SBX_FETCH_LOST, &why);
            return sbx_err_set(err, st, why.os_errno, "fetch: %s", why.msg);
        }
        if (!exec->shell.starts_left) {
            end_rest(queue, batch, SBX_FETCH_LOST, &why);
            return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "%s", why.msg);
        }
    }
    return SBX_OK;
}

static enum sbx_status exec_fetch(void *self, const struct sbx_call *call,
                                  const struct sbx_queue *queue, struct sbx_sink diag,
                                  struct sbx_error *err)
{
    struct exec *exec = self;
    struct batch *batch = &exec->batch;
    enum sbx_status st = SBX_OK;
    bool any;

    if (!call->tools || !call->snippet)
        return sbx_err_set(err, SBX_E_USAGE, 0, "fetch: no listing tools");
    do {
        /* Without a shell and a start left nothing more is taken from the queue. */
        if (!exec->shell.child.pid && !exec->shell.starts_left) {
            st = sbx_err_set(err, SBX_E_UNREACHABLE, 0, "COMMAND ended early once too often");
            break;
        }
        st = gather(call, queue, batch, err);
        any = batch->n > 0;
        if (st)
            end_rest(queue, batch, SBX_FETCH_CANCELLED, err);
        else
            st = bring(exec, call, queue, batch, diag, err);
    } while (!st && any);
    if (!st)
        renew_starts(exec);
    return st;
}

static void exec_destroy(void *self)
{
    struct exec *exec = self;
    size_t i;

    sbx_shell_end(&exec->shell);
    for (i = 0; exec->argv && exec->argv[i]; i++)
        free(exec->argv[i]);
    free(exec->argv);
    free(exec);
}

static enum sbx_status copy_argv(struct exec *exec, const char *const command[],
                                 struct sbx_error *err)
{
    void *array = NULL;
    size_t cap = 0, i, n = 0;
    enum sbx_status st;

    while (command[n])
        n++;
    st = sbx_array_grow(&array, &cap, n + 1, SIZE_MAX / sizeof(char *), sizeof(char *), err);
    if (st)
        return st;
    exec->argv = array;
    memset(exec->argv, 0, cap * sizeof(char *));
    for (i = 0; i < n; i++) {
        exec->argv[i] = strdup(command[i]);
        if (!exec->argv[i])
            return sbx_err_nomem(err);
    }
    exec->shell.argv = (const char *const *)exec->argv;
    return SBX_OK;
}

/* "exec:DIR -- DIGEST": the arguments tell sandboxes apart, and may hold a secret that must not
 * stand in a manifest which others can read. */
static enum sbx_status make_identity(const char *dir, const char *const command[],
                                     struct sbx_buf *out, struct sbx_error *err)
{
    unsigned char bytes[SBX_DIGEST_LEN];
    char text[2 * SBX_DIGEST_LEN + 1];
    struct sbx_digest digest;

    sbx_digest_init(&digest);
    for (size_t i = 0; command[i]; i++)
        sbx_digest_add(&digest, command[i], strlen(command[i]) + 1);
    sbx_digest_final(&digest, bytes);
    sbx_encode_hex(bytes, sizeof(bytes), text);
    return sbx_buf_printf(out, err, "exec:%s -- %s", dir, text);
}

enum sbx_status sbx_transport_exec_new(const char *dir, const char *const command[],
                                       struct sbx_transport **ret, struct sbx_error *err)
{
    static const struct sbx_transport_ops ops = {
        .version = SBX_TRANSPORT_OPS_VERSION,
        .serial = true,
        .run = exec_run,
        .fetch = exec_fetch,
        .destroy = exec_destroy,
    };
    SBX_BUF_AUTO struct sbx_buf identity = SBX_BUF_INIT(SBX_MIB);
    struct exec *exec;
    enum sbx_status st;

    if (dir[0] != '/')
        return sbx_err_set(err, SBX_E_USAGE, 0, "exec: needs an absolute directory, not '%s'",
                           SBX_QUOTE(dir));
    if (!command || !command[0])
        return sbx_err_set(err, SBX_E_USAGE, 0, "exec: needs a COMMAND");
    exec = calloc(1, sizeof(*exec));
    if (!exec)
        return sbx_err_nomem(err);
    exec->shell = SBX_SHELL_INIT;
    exec->shell.starts_left = STARTS;
    exec->shell.hint = "does it end in 'sh'?";
    st = copy_argv(exec, command, err);
    if (!st)
        st = make_identity(dir, command, &identity, err);
    if (st) {
        exec_destroy(exec);
        return st;
    }
    return sbx_transport_new(&ops, exec, dir, identity.data, ret, err);
}
