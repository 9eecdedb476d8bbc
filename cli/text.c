/* In come arguments, and names as the library has escaped or (other spellings) not escaped them;
 * they may have been chosen to confuse a terminal. Out goes printable ASCII of bounded length. */
#include "cli/text.h"

#include <stdio.h>
#include <string.h>

#include "cli/array.h"

#define ELLIPSIS "..."

/* Bytes of the escape or character at p, which is one that the library or sbx_cli_quote wrote. */
static size_t unit(const char *p)
{
    size_t want = p[0] != '\\' ? 1 : p[1] == 'x' ? 4 : 2;
    size_t have = strnlen(p, want);

    return have;
}

const char *sbx_cli_quote(char out[SBX_CLI_NAME_MAX], const char *text)
{
    const size_t room = SBX_CLI_NAME_MAX - sizeof(ELLIPSIS);
    size_t n = 0;

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char escape[8];
        size_t len;

        if (c == '\\')
            len = (size_t)snprintf(escape, sizeof(escape), "\\\\");
        else if (c < 0x20 || c > 0x7e)
            len = (size_t)snprintf(escape, sizeof(escape), "\\x%02x", c);
        else
            len = (size_t)snprintf(escape, sizeof(escape), "%c", c);
        if (len > room - n) {
            memcpy(out + n, ELLIPSIS, sizeof(ELLIPSIS));
            return out;
        }
        memcpy(out + n, escape, len);
        n += len;
    }
    out[n] = '\0';
    return out;
}

const char *sbx_cli_shorten(char out[SBX_CLI_NAME_MAX], const char *escaped)
{
    const size_t part = (SBX_CLI_NAME_MAX - sizeof(ELLIPSIS)) / 2;
    size_t len = strlen(escaped), head = 0, tail;

    if (len < SBX_CLI_NAME_MAX) {
        memcpy(out, escaped, len + 1);
        return out;
    }
    while (head + unit(escaped + head) <= part)
        head += unit(escaped + head);
    for (tail = head; len - tail > part;)
        tail += unit(escaped + tail);
    (void)snprintf(out, SBX_CLI_NAME_MAX, "%.*s" ELLIPSIS "%s", (int)head, escaped, escaped + tail);
    return out;
}

const char *sbx_cli_bytes(char out[SBX_CLI_SIZE_MAX], uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t i = 0;

    if (bytes < 1000) {
        (void)snprintf(out, SBX_CLI_SIZE_MAX, "%u B", (unsigned)bytes);
        return out;
    }
    /* 999.95 would be rounded to a fourth digit before the point. */
    for (; value >= 999.95 && i + 1 < N_ELEMENTS(units); i++)
        value /= 1000;
    (void)snprintf(out, SBX_CLI_SIZE_MAX, "%.1f %s", value, units[i]);
    return out;
}

const char *sbx_cli_duration(char out[SBX_CLI_SIZE_MAX], uint64_t seconds)
{
    uint64_t hours = seconds / 3600;
    unsigned min = (unsigned)(seconds / 60 % 60), s = (unsigned)(seconds % 60);

    if (hours > 99)
        (void)snprintf(out, SBX_CLI_SIZE_MAX, "days");
    else if (hours)
        (void)snprintf(out, SBX_CLI_SIZE_MAX, "%u:%02u:%02u", (unsigned)hours, min, s);
    else
        (void)snprintf(out, SBX_CLI_SIZE_MAX, "%u:%02u", min, s);
    return out;
}
