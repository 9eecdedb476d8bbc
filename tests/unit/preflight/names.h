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
    static const char *const all[SBX_REASONS] = {
        [SBX_REASON_NONE] = "ok",
        [SBX_REFUSE_ENCODING] = "encoding",
        [SBX_REFUSE_TRAVERSAL] = "traversal",
        [SBX_REFUSE_TOO_LONG] = "too-long",
        [SBX_REFUSE_TOO_DEEP] = "too-deep",
        [SBX_REFUSE_RESERVED_NAME] = "reserved-name",
        [SBX_REFUSE_SEPARATOR] = "separator",
        [SBX_REFUSE_CONTROL] = "control",
        [SBX_REFUSE_RESERVED_CHAR] = "reserved-char",
        [SBX_REFUSE_TRAILING] = "trailing",
        [SBX_REFUSE_BAD_TIME] = "bad-time",
        [SBX_REFUSE_ALIAS] = "alias",
        [SBX_EXCLUDE_PATTERN] = "excluded",
    };
    int reason = 0;

    while (reason < SBX_REASONS && (!all[reason] || strcmp(all[reason], text) != 0))
        reason++;
    return (enum sbx_reason)reason;
}

#endif
