/* Text that may come from a peer or from a file that someone else may have touched comes in,
 * trusted with nothing; out come values of the types asked for. */
#include "base/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"

/* Bytes that a first attempt at writing reserves: most lines fit. */
#define WRITE_FIRST 512u
/* What DEL becomes: jansson leaves this one control of ASCII as it is. */
#define DEL_ESCAPE "\\u007f"

struct sbx_json {
    json_t *value; /* owned */
    bool failed;   /* something could not be added */
};

/* Takes the value over, also on failure. */
static struct sbx_json *wrap(json_t *value)
{
    struct sbx_json *json = value ? calloc(1, sizeof(*json)) : NULL;

    if (!json) {
        json_decref(value);
        return NULL;
    }
    json->value = value;
    return json;
}

struct sbx_json *sbx_json_object(void)
{
    return wrap(json_object());
}

struct sbx_json *sbx_json_array(void)
{
    return wrap(json_array());
}

void sbx_json_freep(struct sbx_json **json)
{
    if (!*json)
        return;
    json_decref((*json)->value);
    free(*json);
    *json = NULL;
}

/* Takes the value over; NULL and whatever jansson refuses are failures. */
static void add(struct sbx_json *to, const char *key, json_t *value)
{
    int rc;

    if (!to) {
        json_decref(value);
        return;
    }
    rc = key ? json_object_set_new(to->value, key, value) : json_array_append_new(to->value, value);
    if (rc < 0)
        to->failed = true;
}

void sbx_json_add_str(struct sbx_json *to, const char *key, const char *text)
{
    add(to, key, json_string(text));
}

void sbx_json_add_bytes(struct sbx_json *to, const char *key, const char *bytes, size_t n)
{
    add(to, key, json_stringn(n ? bytes : "", n));
}

void sbx_json_add_uint(struct sbx_json *to, const char *key, uint64_t value)
{
    add(to, key, value <= INT64_MAX ? json_integer((json_int_t)value) : NULL);
}

void sbx_json_add_bool(struct sbx_json *to, const char *key, bool value)
{
    add(to, key, json_boolean(value));
}

void sbx_json_add_null(struct sbx_json *to, const char *key)
{
    add(to, key, json_null());
}

void sbx_json_add(struct sbx_json *to, const char *key, struct sbx_json **take_child)
{
    struct sbx_json *child = *take_child;
    bool failed = !child || child->failed;

    add(to, key, child ? json_incref(child->value) : NULL);
    if (to && failed)
        to->failed = true;
    sbx_json_freep(take_child);
}

/* Appends the value's text, which json_dumpb() writes as far as there is room and measures. */
static enum sbx_status dump(const json_t *value, struct sbx_buf *out, struct sbx_error *err)
{
    const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY;
    size_t room = out->max - out->len < WRITE_FIRST ? out->max - out->len : WRITE_FIRST, need;
    enum sbx_status st = sbx_buf_reserve(out, room, err);

    if (st)
        return st;
    room = out->cap - 1 < out->max ? out->cap - 1 - out->len : out->max - out->len;
    need = json_dumpb(value, out->data + out->len, room, flags);
    if (need > room) {
        st = sbx_buf_reserve(out, need, err);
        if (st)
            return st;
        need = json_dumpb(value, out->data + out->len, need, flags);
    }
    if (need == 0)
        return sbx_err_nomem(err);
    out->len += need;
    return SBX_OK;
}

/* Replaces each DEL from `from` on, from the end, so that every byte is moved once. */
static enum sbx_status escape_del(struct sbx_buf *out, size_t from, struct sbx_error *err)
{
    const size_t n_escape = sizeof(DEL_ESCAPE) - 1;
    size_t dels = 0, r = out->len, w;
    enum sbx_status st;

    for (size_t i = from; i < out->len; i++)
        dels += out->data[i] == 0x7f;
    if (dels == 0)
        return SBX_OK;
    st = sbx_buf_reserve(out, dels * (n_escape - 1), err);
    if (st)
        return st;
    w = out->len += dels * (n_escape - 1);
    while (w > r) {
        char c = out->data[--r];

        if (c != 0x7f) {
            out->data[--w] = c;
            continue;
        }
        w -= n_escape;
        memcpy(out->data + w, DEL_ESCAPE, n_escape);
    }
    return SBX_OK;
}

enum sbx_status sbx_json_write(const struct sbx_json *json, struct sbx_buf *out,
                               struct sbx_error *err)
{
    size_t len = out->len;
    enum sbx_status st;

    if (!json || json->failed)
        return sbx_err_set(err, SBX_E_NOMEM, 0, "JSON could not be built");
    st = dump(json->value, out, err);
    if (!st)
        st = escape_del(out, len, err);
    if (st)
        out->len = len;
    if (out->data)
        out->data[out->len] = '\0';
    return st;
}

/* jansson recurses, so the depth is known before it begins. What is no JSON at all may count
 * wrongly here; jansson refuses it. */
static bool too_deep(const char *text, size_t n)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (in_string)
            continue;
        else if ((c == '[' || c == '{') && ++depth > SBX_JSON_DEPTH)
            return true;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
    }
    return false;
}

enum sbx_status sbx_json_parse(const char *text, size_t n, struct sbx_json **ret,
                               struct sbx_error *err)
{
    struct sbx_json *json;
    json_error_t why;
    json_t *value;

    if (too_deep(text, n))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "JSON is nested deeper than %u", SBX_JSON_DEPTH);
    value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (!value && json_error_code(&why) == json_error_out_of_memory)
        return sbx_err_nomem(err);
    if (!value)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "no JSON: %s", SBX_QUOTE(why.text));
    json = wrap(value);
    if (!json)
        return sbx_err_nomem(err);
    *ret = json;
    return SBX_OK;
}

static const json_t *member(const struct sbx_json *json, const char *key)
{
    return json ? json_object_get(json->value, key) : NULL;
}

static bool get_str(const json_t *value, const char **ret, size_t *ret_n)
{
    if (!json_is_string(value))
        return false;
    *ret = json_string_value(value);
    *ret_n = json_string_length(value);
    return true;
}

bool sbx_json_get_str(const struct sbx_json *json, const char *key, const char **ret, size_t *ret_n)
{
    return get_str(member(json, key), ret, ret_n);
}

bool sbx_json_get_uint(const struct sbx_json *json, const char *key, uint64_t *ret)
{
    const json_t *value = member(json, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

bool sbx_json_get_bool(const struct sbx_json *json, const char *key, bool *ret)
{
    const json_t *value = member(json, key);

    if (!json_is_boolean(value))
        return false;
    *ret = json_is_true(value);
    return true;
}

bool sbx_json_get_object(const struct sbx_json *json, const char *key, struct sbx_json **ret)
{
    json_t *value = json ? json_object_get(json->value, key) : NULL;
    struct sbx_json *object = json_is_object(value) ? wrap(json_incref(value)) : NULL;

    if (!object)
        return false;
    *ret = object;
    return true;
}

bool sbx_json_get_element_str(const struct sbx_json *json, const char *key, size_t i,
                              const char **ret, size_t *ret_n)
{
    return get_str(json_array_get(member(json, key), i), ret, ret_n);
}

bool sbx_json_get_member_str(const struct sbx_json *json, size_t i, const char **ret_key,
                             const char **ret, size_t *ret_n)
{
    void *at = json ? json_object_iter(json->value) : NULL;

    while (at && i-- > 0)
        at = json_object_iter_next(json->value, at);
    if (!at || !get_str(json_object_iter_value(at), ret, ret_n))
        return false;
    *ret_key = json_object_iter_key(at);
    return true;
}

size_t sbx_json_members(const struct sbx_json *json)
{
    return json ? json_object_size(json->value) : 0;
}

bool sbx_json_has(const struct sbx_json *json, const char *key)
{
    return member(json, key) != NULL;
}
