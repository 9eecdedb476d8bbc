/* Components of remote paths come in, any valid UTF-8, chosen to be slow or to collide; out come
 * their keys. No memory is taken but the stack: what is longer than a name can be is not folded. */
#include "preflight/fold.h"

#include <string.h>
#include <utf8proc.h>

#include "base/limits.h"
#include "base/utf8.h"

/* No character has more than three code points in NFD and folded for two bytes of UTF-8. */
#define MAX_CPS (SBX_MAX_KEYED / 2 * 3)

#define NFD (UTF8PROC_STABLE | UTF8PROC_DECOMPOSE)
#define FOLD (UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD)
#define NFC (UTF8PROC_STABLE | UTF8PROC_COMPOSE)

struct range {
    uint32_t first, last;
};

/* DerivedCoreProperties.txt of Unicode 15.0, neighbours merged. utf8proc's flag lacks those that
 * are not assigned yet, which file systems ignore today all the same. */
static const struct range ignorable[] = {
    {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c}, {0x115f, 0x1160}, {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

/* Characters of everyday names that are their own key whatever stands beside them: no folding, not
 * ignorable, combining class 0, NFC_Quick_Check=Yes. A text of these and ASCII needs no tables.
 * Where capitals alternate with small letters, every other character is meant. */
static const struct run {
    struct range range;
    uint32_t step;
} inert[] = {
    {{0x00e0, 0x00ff}, 1},   {{0x0101, 0x0137}, 2},   {{0x013a, 0x0148}, 2},
    {{0x014b, 0x0177}, 2},   {{0x017a, 0x017e}, 2},   {{0x03ac, 0x03c1}, 1},
    {{0x03c3, 0x03ce}, 1},   {{0x0430, 0x045f}, 1},   {{0x05d0, 0x05ea}, 1},
    {{0x061d, 0x064a}, 1},   {{0x0671, 0x06d5}, 1},   {{0x0904, 0x0939}, 1},
    {{0x0e01, 0x0e37}, 1},   {{0x1e01, 0x1e95}, 2},   {{0x1ea1, 0x1eff}, 2},
    {{0x2010, 0x2029}, 1},   {{0x3001, 0x3029}, 1},   {{0x3041, 0x3096}, 1},
    {{0x309b, 0x30ff}, 1},   {{0x3105, 0x312f}, 1},   {{0x3400, 0xa48c}, 1},
    {{0xac00, 0xd7a3}, 1},   {{0xff01, 0xff20}, 1},   {{0x1f300, 0x1f6d7}, 1},
    {{0x1f900, 0x1fa53}, 1}, {{0x20000, 0x2a6df}, 1},
};

static bool within(const struct range *range, uint32_t cp)
{
    return cp >= range->first && cp <= range->last;
}

bool sbx_pre_ignorable(uint32_t cp)
{
    size_t low = 0, high = N_ELEMENTS(ignorable);

    if (cp < ignorable[0].first)
        return false;
    while (low < high) {
        size_t half = (low + high) / 2;

        if (within(&ignorable[half], cp))
            return true;
        if (cp > ignorable[half].last)
            low = half + 1;
        else
            high = half;
    }
    return false;
}

/* *run is the one that held the last character: names rarely change their script. */
static bool is_inert(uint32_t cp, const struct run **run)
{
    if (!within(&(*run)->range, cp)) {
        size_t i = 0;

        while (i < N_ELEMENTS(inert) && cp > inert[i].range.last)
            i++;
        if (i == N_ELEMENTS(inert) || cp < inert[i].range.first)
            return false;
        *run = &inert[i];
    }
    return (cp - (*run)->range.first) % (*run)->step == 0;
}

static char lower(char c)
{
    return (char)(c + ((unsigned char)(c - 'A') < 26 ? 'a' - 'A' : 0));
}

/* Writes the key of a text of ASCII and inert characters, of the same length, and says whether it
 * was one. */
static bool key_inert(const char *in, size_t n, char *out)
{
    const struct run *run = inert;
    size_t i = 0;

    while (i < n) {
        uint32_t cp = 0;
        size_t len;

        if (!((unsigned char)in[i] & 0x80)) {
            out[i] = lower(in[i]);
            i++;
            continue;
        }
        len = sbx_utf8_decode(in + i, n - i, &cp);
        if (!is_inert(cp, &run))
            return false;
        for (; len > 0; len--, i++)
            out[i] = in[i];
    }
    return true;
}

/* Appends what cp becomes under the options, and returns the new length. */
static size_t put(int32_t *cps, size_t n, uint32_t cp, int options)
{
    utf8proc_ssize_t added;
    int boundary = 0;

    if (n == MAX_CPS)
        return n;
    if (cp < 0x80) {
        cps[n] = options & UTF8PROC_CASEFOLD ? lower((char)cp) : (char)cp;
        return n + 1;
    }
    added = utf8proc_decompose_char((int32_t)cp, cps + n, (utf8proc_ssize_t)(MAX_CPS - n),
                                    (utf8proc_option_t)options, &boundary);
    if (added <= 0)
        return n;
    return (size_t)added < MAX_CPS - n ? n + (size_t)added : MAX_CPS;
}

static int32_t combining_class(int32_t cp)
{
    return cp < 0x300 ? 0 : (int32_t)utf8proc_get_property(cp)->combining_class;
}

/* Puts a run of marks in the order of their classes, and those of one class in theirs. By counting,
 * since a peer chooses how many there are and in which order. */
static void reorder_run(int32_t *cps, size_t n)
{
    unsigned char classes[MAX_CPS];
    int32_t ordered[MAX_CPS];
    size_t place[256 + 1] = {0};

    for (size_t i = 0; i < n; i++) {
        classes[i] = (unsigned char)combining_class(cps[i]);
        place[classes[i] + 1]++;
    }
    for (size_t class = 1; class <= 256; class ++)
        place[class] += place[class - 1];
    for (size_t i = 0; i < n; i++)
        ordered[place[classes[i]]++] = cps[i];
    memcpy(cps, ordered, n * sizeof(*cps));
}

/* Canonical ordering: what has no class stays where it is. */
static void reorder(int32_t *cps, size_t n)
{
    size_t from = 0;

    for (size_t i = 0; i <= n; i++) {
        if (i < n && combining_class(cps[i]) > 0)
            continue;
        if (i - from > 1)
            reorder_run(cps + from, i - from);
        from = i + 1;
    }
}

/* Composes what is decomposed and ordered. utf8proc 2.8 lets U+11A7, which stands just below the
 * final consonants of Hangul, vanish behind a syllable. It composes with nothing, so that the text
 * may be cut around it. */
static size_t compose(int32_t *cps, size_t n)
{
    size_t from = 0, len = 0;

    while (from < n) {
        size_t to = from, composed;

        while (to < n && cps[to] != 0x11a7)
            to++;
        composed = (size_t)utf8proc_normalize_utf32(cps + from, (utf8proc_ssize_t)(to - from),
                                                    (utf8proc_option_t)NFC);
        memmove(cps + len, cps + from, composed * sizeof(*cps));
        len += composed;
        if (to < n)
            cps[len++] = cps[to++];
        from = to;
    }
    return len;
}

/* Decomposing and reordering before folding matters: U+0345 has a class of its own, but folds to a
 * letter, behind which nothing is reordered. One round is enough: what is composed at its end would
 * decompose to the same text again, of which nothing folds (foldings fold to themselves) and
 * nothing is ignorable. A test asks every code point and many texts whether a key is its own. */
size_t sbx_pre_key_at(const char *bytes, size_t n, char *out)
{
    int32_t a[MAX_CPS], b[MAX_CPS];
    size_t n_a = 0, n_b = 0, len = 0;

    if (key_inert(bytes, n, out))
        return n;
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0xfffd;
        size_t used = sbx_utf8_decode(bytes + i, n - i, &cp);

        n_a = put(a, n_a, cp, NFD);
        i += used ? used : 1;
    }
    reorder(a, n_a);
    for (size_t i = 0; i < n_a; i++) {
        if (!sbx_pre_ignorable((uint32_t)a[i]))
            n_b = put(b, n_b, (uint32_t)a[i], FOLD);
    }
    reorder(b, n_b);
    n_b = compose(b, n_b);
    for (size_t i = 0; i < n_b && len + 4 <= SBX_PRE_KEY_ROOM(n); i++)
        len += (size_t)utf8proc_encode_char(b[i], (utf8proc_uint8_t *)out + len);
    return len;
}

enum sbx_status sbx_pre_key(const char *bytes, size_t n, struct sbx_buf *out, struct sbx_error *err)
{
    char key[SBX_PRE_KEY_ROOM(SBX_MAX_KEYED)];
    enum sbx_status st;

    sbx_buf_clear(out);
    if (n > SBX_MAX_KEYED)
        return sbx_buf_add(out, bytes, n, err);
    st = sbx_buf_reserve(out, n, err);
    if (st)
        return st;
    if (!key_inert(bytes, n, out->data))
        return sbx_buf_add(out, key, sbx_pre_key_at(bytes, n, key), err);
    out->len = n;
    out->data[n] = '\0';
    return SBX_OK;
}
