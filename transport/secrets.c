/* In: text of a peer that was sent a secret. Out: the same without it. */
#include "transport/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static const char mask[] = "***";

enum sbx_status sbx_secrets_add(struct sbx_secrets *secrets, const char *text,
                                struct sbx_error *err)
{
    void *array = secrets->texts;
    enum sbx_status st;
    char *copy;
    size_t at;

    if (!text[0])
        return SBX_OK;
    st =
        sbx_array_grow(&array, &secrets->cap, secrets->n + 1, SBX_MAX_SECRETS, sizeof(char *), err);
    if (st)
        return st;
    secrets->texts = array;
    copy = strdup(text);
    if (!copy)
        return sbx_err_nomem(err);
    for (at = secrets->n; at > 0 && strlen(secrets->texts[at - 1]) < strlen(copy); at--)
        secrets->texts[at] = secrets->texts[at - 1];
    secrets->texts[at] = copy;
    secrets->n++;
    return SBX_OK;
}

/* The longest secret that stands at bytes; 0: none. */
static size_t secret_at(const struct sbx_secrets *secrets, const char *bytes, size_t n)
{
    for (size_t i = 0; i < secrets->n; i++) {
        size_t len = strlen(secrets->texts[i]);

        if (len <= n && memcmp(bytes, secrets->texts[i], len) == 0)
            return len;
    }
    return 0;
}

/* The bytes that a secret at their start hides, and with it the secrets that begin inside it: what
 * is left of one would tell most of it. 0: none. */
static size_t hidden(const struct sbx_secrets *secrets, const char *bytes, size_t n)
{
    size_t end = secret_at(secrets, bytes, n);

    for (size_t at = 1; at < end; at++) {
        size_t len = secret_at(secrets, bytes + at, n - at);

        end = at + len > end ? at + len : end;
    }
    return end;
}

enum sbx_status sbx_secrets_redact(const struct sbx_secrets *secrets, const char *bytes, size_t n,
                                   struct sbx_buf *out, struct sbx_error *err)
{
    size_t from = 0, at = 0;
    enum sbx_status st = SBX_OK;

    while (secrets && at < n && !st) {
        size_t len = hidden(secrets, bytes + at, n - at);

        if (len == 0) {
            at++;
            continue;
        }
        st = sbx_buf_add(out, bytes + from, at - from, err);
        if (!st)
            st = sbx_buf_str(out, mask, err);
        at += len;
        from = at;
    }
    return st || from == n ? st : sbx_buf_add(out, bytes + from, n - from, err);
}

void sbx_secrets_done(struct sbx_secrets *secrets)
{
    for (size_t i = 0; i < secrets->n; i++) {
        explicit_bzero(secrets->texts[i], strlen(secrets->texts[i]));
        free(secrets->texts[i]);
    }
    free(secrets->texts);
    *secrets = (struct sbx_secrets){.texts = NULL};
}
