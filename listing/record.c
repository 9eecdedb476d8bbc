/* One record of a listing: bytes that the sandbox chose, trusted with nothing. A size that is none
 * damages the listing, a time that is none costs only its entry; the path is not looked at. */
#include "listing/record.h"

#include <string.h>

#define FRACTION_DIGITS 9

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool sbx_list_number(const char *bytes, size_t n, uint64_t *ret)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_digit(bytes[i]) || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (unsigned)(bytes[i] - '0'), &value))
            return false;
    }
    if (n == 0)
        return false;
    *ret = value;
    return true;
}

/* Signed seconds. Values from 2^63 up are what toybox makes of negative ones. */
static bool parse_seconds(const char *bytes, size_t n, int64_t *ret)
{
    bool minus = n > 0 && bytes[0] == '-';
    uint64_t value;

    if (!sbx_list_number(bytes + minus, n - minus, &value))
        return false;
    if (minus && value > (uint64_t)INT64_MAX + 1)
        return false;
    *ret = (int64_t)(minus ? 0 - value : value);
    return true;
}

/* Digits beyond nanoseconds carry nothing: GNU find prints ten. */
static bool parse_fraction(const char *bytes, size_t n, uint32_t *ret)
{
    uint32_t nsec = 0;

    for (size_t i = 0; i < n; i++)
        if (!is_digit(bytes[i]))
            return false;
    for (size_t i = 0; i < FRACTION_DIGITS; i++)
        nsec = nsec * 10 + (i < n ? (uint32_t)(bytes[i] - '0') : 0);
    *ret = nsec;
    return n > 0;
}

/* The fraction counts forward also before 1970: -5.25 is a quarter of a second after -5. */
static bool parse_time(const char *bytes, size_t n, struct sbx_time *ret)
{
    const char *dot = memchr(bytes, '.', n);
    size_t whole = dot ? (size_t)(dot - bytes) : n;
    struct sbx_time time = {0};
    uint32_t nsec = 0;
    int64_t sec;

    if (!parse_seconds(bytes, whole, &sec))
        return false;
    if (dot && !parse_fraction(dot + 1, n - whole - 1, &nsec))
        return false;
    time.sec = sec;
    time.nsec = nsec;
    *ret = time;
    return true;
}

/* Cuts the bytes before the next space off *bytes; false if there is none. */
static bool next_field(const char **bytes, size_t *n, const char **ret, size_t *ret_n)
{
    const char *space = memchr(*bytes, ' ', *n);

    if (!space)
        return false;
    *ret = *bytes;
    *ret_n = (size_t)(space - *bytes);
    *n -= *ret_n + 1;
    *bytes = space + 1;
    return true;
}

enum sbx_status sbx_list_record_parse(const char *bytes, size_t n, struct sbx_record *ret,
                                      struct sbx_error *err)
{
    const char *size, *mtime, *ctime, *rest = bytes;
    size_t size_len, mtime_len, ctime_len, left = n;
    struct sbx_record record = {0};

    if (!next_field(&rest, &left, &size, &size_len) ||
        !next_field(&rest, &left, &mtime, &mtime_len) ||
        !next_field(&rest, &left, &ctime, &ctime_len))
        return sbx_err_set(err, SBX_E_REMOTE, 0, "record without a separator");
    if (!sbx_list_number(size, size_len, &record.size) || record.size > INT64_MAX)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "record with a bad size");
    if (left > UINT32_MAX)
        return sbx_err_set(err, SBX_E_REMOTE, 0, "record with an endless path");
    if (!parse_time(mtime, mtime_len, &record.mtime))
        record.flags |= SBX_RECORD_BAD_TIME;
    if (!parse_time(ctime, ctime_len, &record.ctime))
        record.flags |= SBX_RECORD_BAD_TIME;
    record.path = rest;
    record.path_len = (uint32_t)left;
    *ret = record;
    return SBX_OK;
}

int sbx_list_path_cmp(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : (a_len > b_len) - (a_len < b_len);
}
