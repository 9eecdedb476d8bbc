/* Any bytes come in, trusted with nothing; out comes whether they are UTF-8, and what it says. */
#include "base/utf8.h"

/* How many bytes the lead byte announces, and the range of the second one (which alone rules out
 * overlong forms, surrogates and what is above U+10FFFF); 0 for what cannot lead. */
static size_t lead(unsigned char c, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (c < 0x80)
        return 1;
    if (c < 0xc2)
        return 0;
    if (c < 0xe0)
        return 2;
    if (c < 0xf0) {
        *ret_low = c == 0xe0 ? 0xa0 : 0x80;
        *ret_high = c == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (c > 0xf4)
        return 0;
    *ret_low = c == 0xf0 ? 0x90 : 0x80;
    *ret_high = c == 0xf4 ? 0x8f : 0xbf;
    return 4;
}

size_t sbx_utf8_decode(const char *bytes, size_t n, uint32_t *ret_cp)
{
    const unsigned char *b = (const unsigned char *)bytes;
    unsigned char low, high;
    uint32_t cp;
    size_t len;

    if (n == 0)
        return 0;
    len = lead(b[0], &low, &high);
    if (len == 0 || len > n)
        return 0;
    cp = len == 1 ? b[0] : b[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (b[i] < low || b[i] > high)
            return 0;
        cp = cp << 6 | (b[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    *ret_cp = cp;
    return len;
}

bool sbx_utf8_valid(const char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n) {
        uint32_t cp;
        size_t len;

        if (!((unsigned char)bytes[i] & 0x80)) {
            i++;
            continue;
        }
        len = sbx_utf8_decode(bytes + i, n - i, &cp);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}
