#include "cli/number.h"

#include <stddef.h>
#include <string.h>

#include "cli/array.h"

static const struct suffix {
    const char *text;
    uint64_t factor;
} suffixes[] = {
    {"", 1},
    {"k", 1024},
    {"K", 1024},
    {"M", 1024 * 1024},
    {"G", 1024 * 1024 * 1024},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
};

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* The n digits at text; n may be any number of them, leading zeros included. */
static enum sbx_cli_number whole(const char *text, size_t n, uint64_t *ret)
{
    uint64_t value = 0;

    if (n == 0)
        return SBX_CLI_NUMBER_JUNK;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return SBX_CLI_NUMBER_LARGE;
    *ret = value;
    return SBX_CLI_NUMBER_OK;
}

enum sbx_cli_number sbx_cli_count(const char *text, uint64_t *ret)
{
    size_t n = digits(text);

    return text[n] ? SBX_CLI_NUMBER_JUNK : whole(text, n, ret);
}

enum sbx_cli_number sbx_cli_size(const char *text, uint64_t *ret)
{
    size_t n = digits(text);
    uint64_t value;

    for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
        enum sbx_cli_number res;

        if (strcmp(text + n, suffixes[i].text) != 0)
            continue;
        res = whole(text, n, &value);
        if (res)
            return res;
        if (__builtin_mul_overflow(value, suffixes[i].factor, &value))
            return SBX_CLI_NUMBER_LARGE;
        *ret = value;
        return SBX_CLI_NUMBER_OK;
    }
    return SBX_CLI_NUMBER_JUNK;
}

enum sbx_cli_number sbx_cli_seconds(const char *text, double *ret)
{
    size_t n = digits(text);
    const char *fraction = text[n] == '.' ? text + n + 1 : text + n;
    size_t more = digits(fraction);
    enum sbx_cli_number res;
    double value, unit = 0.1;
    uint64_t seconds;

    if (fraction[more] || (text[n] == '.' && more == 0))
        return SBX_CLI_NUMBER_JUNK;
    res = whole(text, n, &seconds);
    if (res)
        return res;
    value = (double)seconds;
    for (size_t i = 0; i < more; i++, unit /= 10)
        value += unit * (fraction[i] - '0');
    *ret = value;
    return SBX_CLI_NUMBER_OK;
}
