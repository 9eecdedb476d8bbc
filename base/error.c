#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MSG_MAX (sizeof(((struct sbx_error *)0)->msg) - 1)
/* What a context may take of a message that gets too long: the inner message says more. */
#define CONTEXT_MAX 160u

const char *sbx_status_name(enum sbx_status status)
{
    static const char *const names[] = {
        [SBX_OK] = "ok",
        [SBX_E_NOMEM] = "nomem",
        [SBX_E_USAGE] = "usage",
        [SBX_E_REMOTE] = "remote",
        [SBX_E_LIMIT] = "limit",
        [SBX_E_DEADLINE] = "deadline",
        [SBX_E_CANCELLED] = "cancelled",
        [SBX_E_HOST] = "host",
        [SBX_E_BUSY] = "busy",
        [SBX_E_UNREACHABLE] = "unreachable",
        [SBX_E_UNAUTHORISED] = "unauthorised",
        [SBX_E_GONE] = "gone",
    };

    return (size_t)status < N_ELEMENTS(names) ? names[status] : "unknown";
}

const char *sbx_errno_name(int os_errno)
{
    const char *name = strerrorname_np(os_errno);

    return name ? name : "E?";
}

/* The length of what stands at text: an escape as sbx_quote() writes it, or one character. */
static size_t unit(const char *text)
{
    if (text[0] != '\\')
        return 1;
    if (text[1] == '\\')
        return 2;
    return text[1] == 'x' && text[2] && text[3] ? 4 : 1;
}

/* Shortens text to `most` characters, with "..." in place of its end, and never inside an escape;
 * and makes sure that nothing but printable ASCII is left. Returns its length. */
static size_t tidy(char *text, size_t most)
{
    size_t n = strlen(text), at = 0;

    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    if (n <= most)
        return n;
    if (most < 3)
        most = 3;
    while (at + unit(text + at) <= most - 3)
        at += unit(text + at);
    memcpy(text + at, "...", 4);
    return at + 3;
}

/* Text is made beside err and copied, since an argument may be the very message it replaces. One
 * byte more than fits, so that tidy() sees that something was cut. */
struct text {
    char s[MSG_MAX + 2];
};

static void put(struct sbx_error *err, enum sbx_status status, int os_errno, struct text *text)
{
    char tail[128] = "";
    size_t n, n_tail;

    if (os_errno != 0) {
        const char *desc = strerrordesc_np(os_errno);

        (void)snprintf(tail, sizeof(tail), ": %s (%s)", sbx_errno_name(os_errno),
                       desc ? desc : "unknown error");
    }
    n_tail = strlen(tail);
    n = tidy(text->s, MSG_MAX - n_tail);
    memcpy(err->msg, text->s, n);
    memcpy(err->msg + n, tail, n_tail + 1);
    err->status = status;
    err->os_errno = os_errno;
}

enum sbx_status sbx_err_set(struct sbx_error *err, enum sbx_status status, int os_errno,
                            const char *fmt, ...)
{
    struct text text;
    va_list args;

    if (!err)
        return status;
    va_start(args, fmt);
    (void)vsnprintf(text.s, sizeof(text.s), fmt, args);
    va_end(args);
    put(err, status, os_errno, &text);
    err->step[0] = '\0';
    return status;
}

enum sbx_status sbx_err_host(struct sbx_error *err, int os_errno, const char *call, const char *fmt,
                             ...)
{
    enum sbx_status status = os_errno == ENOMEM ? SBX_E_NOMEM : SBX_E_HOST;
    struct text text;
    va_list args;
    size_t n;

    if (!err)
        return status;
    (void)snprintf(text.s, sizeof(err->step), "%s", call);
    n = strlen(text.s);
    memcpy(text.s + n, ": ", 3);
    va_start(args, fmt);
    (void)vsnprintf(text.s + n + 2, sizeof(text.s) - n - 2, fmt, args);
    va_end(args);
    if (text.s[n + 2] == '\0')
        text.s[n] = '\0';
    put(err, status, os_errno, &text);
    (void)snprintf(err->step, sizeof(err->step), "%s", call);
    return status;
}

enum sbx_status sbx_err_wrap(struct sbx_error *err, enum sbx_status status, const char *fmt, ...)
{
    size_t n_inner, room, n;
    struct text text;
    va_list args;

    if (!err)
        return status;
    va_start(args, fmt);
    (void)vsnprintf(text.s, sizeof(text.s), fmt, args);
    va_end(args);
    n_inner = strlen(err->msg);
    room = n_inner + 2 + CONTEXT_MAX > MSG_MAX ? CONTEXT_MAX : MSG_MAX - 2 - n_inner;
    n = tidy(text.s, n_inner ? room : MSG_MAX);
    if (n_inner)
        (void)snprintf(text.s + n, sizeof(text.s) - n, ": %s", err->msg);
    n = tidy(text.s, MSG_MAX);
    memcpy(err->msg, text.s, n + 1);
    err->status = status;
    return status;
}

enum sbx_status sbx_err_nomem(struct sbx_error *err)
{
    return sbx_err_set(err, SBX_E_NOMEM, 0, "out of memory");
}
