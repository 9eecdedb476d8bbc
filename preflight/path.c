/* A listed path comes in, any bytes of a hostile sandbox; out comes the first rule that refuses it.
 * All rules look at all components before one is named, since the order is that of the rules. */
#include "preflight/path.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "preflight/fold.h"

/* What bytes there are in a path. */
#define HIGH 1u
#define NUL 2u
#define BACKSLASH 4u
#define CONTROL 8u
#define RESERVED 16u

/* clang-format off */
static const unsigned char class_of[256] = {
    [0] = NUL | CONTROL,
    [1] = CONTROL,  [2] = CONTROL,  [3] = CONTROL,  [4] = CONTROL,  [5] = CONTROL,  [6] = CONTROL,
    [7] = CONTROL,  [8] = CONTROL,  [9] = CONTROL,  [10] = CONTROL, [11] = CONTROL, [12] = CONTROL,
    [13] = CONTROL, [14] = CONTROL, [15] = CONTROL, [16] = CONTROL, [17] = CONTROL, [18] = CONTROL,
    [19] = CONTROL, [20] = CONTROL, [21] = CONTROL, [22] = CONTROL, [23] = CONTROL, [24] = CONTROL,
    [25] = CONTROL, [26] = CONTROL, [27] = CONTROL, [28] = CONTROL, [29] = CONTROL, [30] = CONTROL,
    [31] = CONTROL, [127] = CONTROL,
    ['\\'] = BACKSLASH,
    ['<'] = RESERVED, ['>'] = RESERVED, [':'] = RESERVED, ['"'] = RESERVED, ['|'] = RESERVED,
    ['?'] = RESERVED, ['*'] = RESERVED,
    [128 ... 255] = HIGH,
};
/* clang-format on */

#define OURS_LEN (sizeof(SBX_PRE_OURS) - 1)

/* What was found anywhere in a path. */
struct facts {
    unsigned classes;
    size_t components;
    bool traversal, too_long, ours, c1, trailing, device;
};

static unsigned classes_of(const char *bytes, size_t n)
{
    unsigned classes = 0;

    for (size_t i = 0; i < n; i++)
        classes |= class_of[(unsigned char)bytes[i]];
    return classes;
}

/* Compares ASCII without case; lower_case is in lower case. */
static bool same_folded(const char *bytes, const char *lower_case, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != lower_case[i])
            return false;
    }
    return true;
}

/* COM or LPT and a digit, of which Windows knows three superscript ones. */
static bool is_port(const char *c, size_t n)
{
    if (n < 4 || (!same_folded(c, "com", 3) && !same_folded(c, "lpt", 3)))
        return false;
    if (n == 4)
        return c[3] >= '0' && c[3] <= '9';
    return n == 5 && c[3] == '\xc2' && (c[4] == '\xb9' || c[4] == '\xb2' || c[4] == '\xb3');
}

/* The device names that Windows finds in any directory and with any extension. */
static bool is_device(const char *c, size_t n)
{
    static const char *const names[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    const char *dot = memchr(c, '.', n);

    n = dot ? (size_t)(dot - c) : n;
    while (n > 0 && c[n - 1] == ' ')
        n--;
    if (n < 3 || n > strlen("conout$"))
        return false;
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        if (strlen(names[i]) == n && same_folded(c, names[i], n))
            return true;
    }
    return is_port(c, n);
}

/* Whether the key of a component is empty, "." or "..". Only ignorable code points vanish from a
 * key, and only U+002E gives a full stop (a test asks every code point), so that a component of any
 * length is decided without its key. */
static bool is_dots(const char *c, size_t n)
{
    size_t dots = 0, i = 0;

    while (i < n) {
        uint32_t cp = 0;

        i += sbx_utf8_decode(c + i, n - i, &cp);
        if (sbx_pre_ignorable(cp))
            continue;
        if (cp != '.' || ++dots > 2)
            return false;
    }
    return true;
}

/* Whether the key begins with our own prefix; n <= SBX_MAX_COMPONENT. For the same reasons as above
 * a full stop must come first, so that hardly any component needs its key. */
static bool is_ours(const char *c, size_t n)
{
    char key[SBX_PRE_KEY_ROOM(SBX_MAX_COMPONENT)];
    uint32_t cp = 0;
    size_t i = 0;

    do
        i += sbx_utf8_decode(c + i, n - i, &cp);
    while (i < n && sbx_pre_ignorable(cp));
    return cp == '.' && sbx_pre_key_at(c, n, key) >= OURS_LEN &&
           memcmp(key, SBX_PRE_OURS, OURS_LEN) == 0;
}

/* U+0080 to U+009F. */
static bool has_c1(const char *bytes, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (bytes[i] == '\xc2' && (unsigned char)bytes[i + 1] < 0xa0)
            return true;
    }
    return false;
}

/* A component needs at least as many bytes as UTF-16 units, so that the limit of 255 units is kept
 * by that of 255 bytes. */
static void look_at(const char *c, size_t n, bool ascii, struct facts *f)
{
    f->components++;
    if (n == 0 || (c[0] == '.' && (n == 1 || (n == 2 && c[1] == '.')))) {
        f->traversal = true;
        return;
    }
    if (n > SBX_MAX_COMPONENT)
        f->too_long = true;
    if (!ascii && is_dots(c, n))
        f->traversal = true;
    else if (!ascii && n <= SBX_MAX_COMPONENT)
        f->ours |= is_ours(c, n);
    else if (c[0] == '.' && n >= OURS_LEN)
        f->ours |= same_folded(c, SBX_PRE_OURS, OURS_LEN);
    f->trailing |= c[n - 1] == '.' || c[n - 1] == ' ';
    f->device |= is_device(c, n);
}

static enum sbx_reason posix_reason(const struct facts *f, size_t n)
{
    if (f->traversal)
        return SBX_REFUSE_TRAVERSAL;
    if (f->too_long || n > SBX_MAX_PATH)
        return SBX_REFUSE_TOO_LONG;
    if (f->components > SBX_MAX_DEPTH)
        return SBX_REFUSE_TOO_DEEP;
    if (f->ours)
        return SBX_REFUSE_RESERVED_NAME;
    return f->classes & NUL ? SBX_REFUSE_CONTROL : SBX_REASON_NONE;
}

static enum sbx_reason portable_reason(const struct facts *f)
{
    if (f->classes & BACKSLASH)
        return SBX_REFUSE_SEPARATOR;
    if (f->classes & CONTROL || f->c1)
        return SBX_REFUSE_CONTROL;
    if (f->classes & RESERVED)
        return SBX_REFUSE_RESERVED_CHAR;
    if (f->trailing)
        return SBX_REFUSE_TRAILING;
    return f->device ? SBX_REFUSE_RESERVED_NAME : SBX_REASON_NONE;
}

struct sbx_pre_path_reasons sbx_pre_path_reasons(const char *bytes, size_t n)
{
    struct sbx_pre_path_reasons both = {SBX_REFUSE_ENCODING, SBX_REFUSE_ENCODING};
    struct facts f = {.classes = classes_of(bytes, n)};
    bool ascii = !(f.classes & HIGH);
    size_t at = 0;

    if (!ascii && !sbx_utf8_valid(bytes, n))
        return both;
    for (;;) {
        const char *slash = n > at ? memchr(bytes + at, '/', n - at) : NULL;
        size_t end = slash ? (size_t)(slash - bytes) : n;

        look_at(bytes + at, end - at, ascii, &f);
        if (!slash)
            break;
        at = end + 1;
    }
    f.c1 = !ascii && has_c1(bytes, n);
    both.posix = both.portable = posix_reason(&f, n);
    if (both.posix == SBX_REASON_NONE || both.posix == SBX_REFUSE_CONTROL)
        both.portable = portable_reason(&f);
    return both;
}

enum sbx_reason sbx_pre_path(const char *bytes, size_t n, enum sbx_names names)
{
    struct sbx_pre_path_reasons both = sbx_pre_path_reasons(bytes, n);

    return names == SBX_NAMES_POSIX ? both.posix : both.portable;
}
