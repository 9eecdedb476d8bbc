/* The two lines of a listing script that are no data come in, as the sandbox chose to send them and
 * trusted with nothing. Out goes what they say, if it is something that the script can say. */
#include "listing/frame.h"

#include <string.h>

#include "base/attr.h"
#include "base/quote.h"
#include "listing/record.h"

#define NOT_FOUND "127" /* what a shell reports for a command that is not there */
#define XARGS_SOME_FAILED 123

/* The stages of the remote pipeline, in the order of their keys in the end line. */
enum stage { STAGE_FIND, STAGE_WALK, STAGE_CAP, STAGE_PACK, STAGE_ENCODE, N_STAGES };

struct word {
    const char *s;
    size_t n;
};

static bool word_is(struct word w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.s, text, w.n) == 0;
}

/* Cuts the text before `sep`, or all, off *rest. */
static struct word cut(struct word *rest, char sep)
{
    const char *at = rest->n ? memchr(rest->s, sep, rest->n) : NULL;
    struct word head = {rest->s, at ? (size_t)(at - rest->s) : rest->n};
    size_t used = head.n + (at ? 1 : 0);

    rest->s += used;
    rest->n -= used;
    return head;
}

/* The next "key=value" of a line; several blanks count as one. False at its end. */
static bool next_pair(struct word *line, struct word *ret_key, struct word *ret_value)
{
    struct word w = {NULL, 0};

    while (line->n > 0 && w.n == 0)
        w = cut(line, ' ');
    if (w.n == 0)
        return false;
    *ret_key = cut(&w, '=');
    *ret_value = w;
    return true;
}

/* ret_values[i] is the value of keys[i]; its s stays NULL where the key does not occur. */
static enum sbx_status parse_pairs(struct word line, const char *const *keys, size_t n_keys,
                                   struct word *ret_values, struct sbx_error *err)
{
    struct word key, value;

    while (next_pair(&line, &key, &value)) {
        size_t i = 0;

        while (i < n_keys && !word_is(key, keys[i]))
            i++;
        if (i == n_keys || ret_values[i].s)
            return sbx_err_set(err, SBX_E_REMOTE, 0, "'%s' is not expected in a line of the script",
                               SBX_QUOTE_N(key.s, key.n));
        ret_values[i] = value;
    }
    return SBX_OK;
}

static enum sbx_status tool_missing(const char *name, struct sbx_error *err)
{
    return sbx_err_set(err, SBX_E_REMOTE, 0, "remote tool missing: %s", name);
}

static enum sbx_status set_tools(struct sbx_list_frame *frame, struct word tools,
                                 struct sbx_error *err)
{
    struct word rest = tools;
    struct word walk = cut(&rest, ','), pack = cut(&rest, ','), coding = rest;

    if ((!word_is(walk, "printf") && !word_is(walk, "stat")) ||
        (!word_is(pack, "gzip") && !word_is(pack, "plain")) ||
        (!word_is(coding, "base64") && !word_is(coding, "hex")))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "unknown remote tools: '%s'",
                           SBX_QUOTE_N(tools.s, tools.n));
    memcpy(frame->tools, tools.s, tools.n);
    frame->tools[tools.n] = '\0';
    frame->by_stat = word_is(walk, "stat");
    frame->packed = word_is(pack, "gzip");
    frame->hex = word_is(coding, "hex");
    return SBX_OK;
}

static enum sbx_status set_now(struct sbx_list_frame *frame, struct word now, struct sbx_error *err)
{
    bool minus = now.n > 0 && now.s[0] == '-';
    uint64_t value;

    if (now.n == 0)
        return tool_missing("date", err);
    if (!sbx_list_number(now.s + minus, now.n - minus, &value) || value > INT64_MAX)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "no time: '%s'", SBX_QUOTE_N(now.s, now.n));
    frame->now = minus ? -(int64_t)value : (int64_t)value;
    return SBX_OK;
}

static enum sbx_status set_root(struct sbx_list_frame *frame, struct word root,
                                struct sbx_error *err)
{
    static const char *const names[] = {
        [SBX_ROOT_OK] = "ok",
        [SBX_ROOT_MISSING] = "missing",
        [SBX_ROOT_NOTDIR] = "notdir",
        [SBX_ROOT_DENIED] = "denied",
    };

    for (size_t i = SBX_ROOT_OK; i < N_ELEMENTS(names); i++) {
        if (word_is(root, names[i])) {
            frame->root = (enum sbx_list_root)i;
            return SBX_OK;
        }
    }
    return sbx_err_set(err, SBX_E_REMOTE, 0, "unknown state of the root: '%s'",
                       SBX_QUOTE_N(root.s, root.n));
}

enum sbx_status sbx_list_frame_begin(struct sbx_list_frame *frame, const char *text, size_t n,
                                     struct sbx_error *err)
{
    static const char *const keys[] = {"v", "root", "now", "tools"};
    struct word values[N_ELEMENTS(keys)] = {{NULL, 0}};
    struct sbx_list_frame made = {0};
    enum sbx_status st = parse_pairs((struct word){text, n}, keys, N_ELEMENTS(keys), values, err);

    if (st)
        return st;
    for (size_t i = 0; i < N_ELEMENTS(keys); i++)
        if (!values[i].s)
            return sbx_err_set(err, SBX_E_REMOTE, 0, "begin line without '%s='", keys[i]);
    if (!word_is(values[0], "1"))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "begin line of an unknown version");
    st = set_root(&made, values[1], err);
    if (!st)
        st = set_now(&made, values[2], err);
    if (!st)
        st = set_tools(&made, values[3], err);
    if (st)
        return st;
    *frame = made;
    return SBX_OK;
}

static bool is_accepted(const struct sbx_list_frame *frame, enum stage stage, uint64_t status)
{
    if (status == 0)
        return true;
    if (stage == STAGE_FIND)
        return status == (frame->by_stat ? XARGS_SOME_FAILED : 1);
    return stage == STAGE_WALK && status == 1;
}

/* The script reports a missing stat as if xargs were missing, which hides the status of what it
 * runs. */
static const char *tool_of(const struct sbx_list_frame *frame, enum stage stage)
{
    switch (stage) {
    case STAGE_FIND:
        return frame->by_stat ? "xargs or stat" : "find";
    case STAGE_WALK:
        return "find";
    case STAGE_CAP:
        return "head";
    case STAGE_PACK:
        return frame->packed ? "gzip" : "cat";
    default:
        return frame->hex ? "od" : "base64";
    }
}

static enum sbx_status stage_status(const struct sbx_list_frame *frame, enum stage stage,
                                    struct word value, int *ret, struct sbx_error *err)
{
    uint64_t status;

    if (!sbx_list_number(value.s, value.n, &status))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "no exit status: '%s'",
                           SBX_QUOTE_N(value.s, value.n));
    if (!is_accepted(frame, stage, status))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "remote %s ended with status %llu",
                           tool_of(frame, stage), (unsigned long long)status);
    *ret = (int)status;
    return SBX_OK;
}

/* Missing tools before all others: the stages around one fail only because of it. */
static enum sbx_status stage_statuses(const struct sbx_list_frame *frame, const struct word *values,
                                      int *ret, struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    for (size_t i = 0; i < N_STAGES; i++)
        if (values[i].s && word_is(values[i], NOT_FOUND))
            return tool_missing(tool_of(frame, (enum stage)i), err);
    for (size_t i = 0; i < N_STAGES && !st; i++)
        if (values[i].s)
            st = stage_status(frame, (enum stage)i, values[i], &ret[i], err);
    return st;
}

enum sbx_status sbx_list_frame_end(struct sbx_list_frame *frame, const char *text, size_t n,
                                   struct sbx_error *err)
{
    static const char *const keys[] = {"find", "walk", "cap", "pack", "encode", "skipped"};
    struct word values[N_ELEMENTS(keys)] = {{NULL, 0}}, skipped;
    int status[N_STAGES] = {0};
    uint64_t n_skipped = 0;
    enum sbx_status st = parse_pairs((struct word){text, n}, keys, N_ELEMENTS(keys), values, err);

    /* Statuses first: where a tool is missing, others of the line may be too. */
    if (!st)
        st = stage_statuses(frame, values, status, err);
    for (size_t i = 0; i < N_STAGES && !st; i++) {
        bool wanted = i != STAGE_WALK || frame->by_stat, there = values[i].s;

        if (wanted != there)
            st = sbx_err_set(err, SBX_E_REMOTE, 0, "end line with%s '%s='", there ? "" : "out",
                             keys[i]);
    }
    skipped = values[N_STAGES];
    if (!st && skipped.s && !sbx_list_number(skipped.s, skipped.n, &n_skipped))
        st = sbx_err_set(err, SBX_E_REMOTE, 0, "end line with a bad 'skipped='");
    if (st)
        return st;
    frame->find = status[STAGE_FIND];
    frame->walk = status[STAGE_WALK];
    frame->skipped = n_skipped;
    return SBX_OK;
}
