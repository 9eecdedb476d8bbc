/* Reading fixtures/names: see the README there. */
#ifndef TESTS_UNIT_PREFLIGHT_NAMES_H
#define TESTS_UNIT_PREFLIGHT_NAMES_H

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sbx/verdict.h"

#define NAMES_MAX (16u << 20)

/* Appends the bytes that `text` spells, such as "2e+61*3"; false if it spells none. */
static inline bool names_bytes(const char *text, struct sbx_buf *out)
{
    if (strcmp(text, "-") == 0)
        return sbx_buf_reserve(out, 0, NULL) == SBX_OK;
    while (*text) {
        size_t from = out->len, n = 0, times = 1;

        while (isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1])) {
            char digits[3] = {text[0], text[1], '\0'};
            char c = (char)strtoul(digits, NULL, 16); /* banned-ok: trusted fixture */

            if (sbx_buf_add(out, &c, 1, NULL))
                return false;
            text += 2;
            n++;
        }
        if (*text == '*')
            times = strtoul(text + 1, (char **)&text, 10); /* banned-ok: trusted fixture */
        if (n == 0 || times == 0 || (*text && *text != '+') ||
            sbx_buf_reserve(out, n * times, NULL))
            return false;
        while (--times > 0) {
            memcpy(out->data + out->len, out->data + from, n);
            out->len += n;
        }
        out->data[out->len] = '\0';
        text += *text == '+';
    }
    return true;
}

/* The reason that the report spells so, NONE for "ok"; SBX_REASONS for anything else. */
static inline enum sbx_reason names_reason(const char *text)
{
    int reason = SBX_REASON_NONE;

    if (strcmp(text, "ok") == 0)
        return SBX_REASON_NONE;
    do
        reason++;
    while (reason < SBX_REASONS && strcmp(sbx_reason_name((enum sbx_reason)reason), text) != 0);
    return (enum sbx_reason)reason;
}

#endif
