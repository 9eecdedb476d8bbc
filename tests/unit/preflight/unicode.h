/* Alias keys by the letter of the definition, from the files of the Unicode Character Database and
 * nothing else: slow, plain, and sharing no code or table with what it is compared to. */
#ifndef TESTS_UNIT_PREFLIGHT_UNICODE_H
#define TESTS_UNIT_PREFLIGHT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UCD "/usr/share/unicode/"
#define N_CPS 0x110000u
#define TEXT_MAX 4096u

struct text {
    uint32_t cps[TEXT_MAX];
    size_t n;
};

static struct {
    unsigned char ccc[N_CPS];
    bool assigned[N_CPS], ignorable[N_CPS], excluded[N_CPS];
    bool second[N_CPS];            /* of some pair */
    uint32_t decomposed[N_CPS][2]; /* canonical, one level */
    uint32_t folded[N_CPS][3];     /* C and F */
    struct {
        uint32_t a, b, whole;
    } pairs[4096];
    size_t n_pairs;
} ucd;

/* Parses "XXXX", "XXXX YYYY", ... up to max; returns how many. */
static size_t hex_list(const char *at, uint32_t *ret, size_t max)
{
    size_t n = 0;
    char *end;

    while (n < max) {
        unsigned long cp = strtoul(at, &end, 16); /* banned-ok: trusted tables of a test */

        if (end == at)
            break;
        ret[n++] = (uint32_t)cp;
        at = end;
    }
    return n;
}

/* Parses "XXXX" or "XXXX..YYYY" and returns what stands behind the first semicolon, or NULL. */
static const char *line_range(const char *line, uint32_t *first, uint32_t *last)
{
    const char *rest = strchr(line, ';');

    if (line[0] == '#' || !rest || hex_list(line, first, 1) != 1)
        return NULL;
    *last = *first;
    line = strstr(line, "..");
    if (line && line < rest)
        (void)hex_list(line + 2, last, 1);
    return rest + 1;
}

static bool ucd_property(const char *file, const char *property, bool *flags)
{
    FILE *f = fopen(file, "re");
    char line[512];

    if (!f)
        return false;
    while (fgets(line, sizeof(line), f)) {
        uint32_t first, last;
        const char *rest = line_range(line, &first, &last);

        while (rest && *rest == ' ')
            rest++;
        if (!rest || strncmp(rest, property, strlen(property)) != 0)
            continue;
        for (; first <= last; first++)
            flags[first] = true;
    }
    (void)fclose(f);
    return true;
}

static bool ucd_data(void)
{
    FILE *f = fopen(UCD "UnicodeData.txt", "re");
    uint32_t range_first = 0;
    char line[1024];

    if (!f)
        return false;
    while (fgets(line, sizeof(line), f)) {
        const char *field[6];
        uint32_t cp = 0, d[2];
        size_t n;

        field[0] = line;
        for (size_t i = 1; i < 6; i++)
            field[i] = strchr(field[i - 1], ';') + 1;
        (void)hex_list(line, &cp, 1);
        if (strstr(line, ", First>"))
            range_first = cp;
        for (uint32_t c = strstr(line, ", Last>") ? range_first : cp; c <= cp; c++)
            ucd.assigned[c] = true;
        ucd.ccc[cp] = (unsigned char)strtoul(field[3], NULL, 10); /* banned-ok: trusted table */
        n = hex_list(field[5], d, 2);
        memcpy(ucd.decomposed[cp], d, n * sizeof(d[0]));
        if (n == 2) {
            ucd.second[d[1]] = true;
            ucd.pairs[ucd.n_pairs].a = d[0];
            ucd.pairs[ucd.n_pairs].b = d[1];
            ucd.pairs[ucd.n_pairs++].whole = cp;
        }
    }
    (void)fclose(f);
    return true;
}

static bool ucd_folding(void)
{
    FILE *f = fopen(UCD "CaseFolding.txt", "re");
    char line[512];

    if (!f)
        return false;
    while (fgets(line, sizeof(line), f)) {
        uint32_t cp, last;
        const char *rest = line_range(line, &cp, &last);

        if (rest && (rest[1] == 'C' || rest[1] == 'F'))
            (void)hex_list(rest + 3, ucd.folded[cp], 3);
    }
    (void)fclose(f);
    return true;
}

/* False where the database is not installed. */
static bool ucd_load(void)
{
    return ucd_data() && ucd_folding() &&
           ucd_property(UCD "DerivedCoreProperties.txt", "Default_Ignorable_Code_Point",
                        ucd.ignorable) &&
           ucd_property(UCD "DerivedNormalizationProps.txt", "Full_Composition_Exclusion",
                        ucd.excluded);
}

static void text_add(struct text *to, uint32_t cp)
{
    if (to->n < TEXT_MAX)
        to->cps[to->n++] = cp;
}

static void text_copy(struct text *to, const struct text *from)
{
    to->n = from->n;
    memcpy(to->cps, from->cps, from->n * sizeof(from->cps[0]));
}

static void add_decomposed(struct text *to, uint32_t cp)
{
    if (cp >= 0xac00 && cp <= 0xd7a3) {
        text_add(to, 0x1100 + (cp - 0xac00) / 588);
        text_add(to, 0x1161 + (cp - 0xac00) % 588 / 28);
        if ((cp - 0xac00) % 28)
            text_add(to, 0x11a7 + (cp - 0xac00) % 28);
    } else if (ucd.decomposed[cp][0]) {
        add_decomposed(to, ucd.decomposed[cp][0]);
        if (ucd.decomposed[cp][1])
            add_decomposed(to, ucd.decomposed[cp][1]);
    } else {
        text_add(to, cp);
    }
}

static void to_nfd(struct text *t)
{
    static struct text out;

    out.n = 0;
    for (size_t i = 0; i < t->n; i++)
        add_decomposed(&out, t->cps[i]);
    for (size_t i = 1; i < out.n; i++) {
        for (size_t j = i;
             j > 0 && ucd.ccc[out.cps[j]] && ucd.ccc[out.cps[j - 1]] > ucd.ccc[out.cps[j]]; j--) {
            uint32_t swap = out.cps[j];

            out.cps[j] = out.cps[j - 1];
            out.cps[j - 1] = swap;
        }
    }
    text_copy(t, &out);
}

static uint32_t composed(uint32_t a, uint32_t b)
{
    if (a >= 0x1100 && a < 0x1113 && b >= 0x1161 && b < 0x1176)
        return 0xac00 + ((a - 0x1100) * 21 + b - 0x1161) * 28;
    if (a >= 0xac00 && a <= 0xd7a3 && (a - 0xac00) % 28 == 0 && b > 0x11a7 && b < 0x11c3)
        return a + b - 0x11a7;
    for (size_t i = 0; ucd.second[b] && i < ucd.n_pairs; i++) {
        if (ucd.pairs[i].a == a && ucd.pairs[i].b == b && !ucd.excluded[ucd.pairs[i].whole])
            return ucd.pairs[i].whole;
    }
    return 0;
}

/* Composes what is in NFD (UAX #15, D117). */
static void compose(struct text *t)
{
    static struct text out;
    size_t starter = SIZE_MAX;
    int last = -1;

    out.n = 0;
    for (size_t i = 0; i < t->n; i++) {
        uint32_t cp = t->cps[i], whole = 0;
        int ccc = ucd.ccc[cp];

        if (starter != SIZE_MAX && last < ccc)
            whole = composed(out.cps[starter], cp);
        if (whole) {
            out.cps[starter] = whole;
            continue;
        }
        if (ccc == 0)
            starter = out.n;
        last = ccc == 0 ? -1 : ccc;
        text_add(&out, cp);
    }
    text_copy(t, &out);
}

static void reference_key(struct text *t)
{
    static struct text before, folded;

    do {
        text_copy(&before, t);
        to_nfd(t);
        folded.n = 0;
        for (size_t i = 0; i < t->n; i++) {
            const uint32_t *f = ucd.folded[t->cps[i]];

            if (!f[0])
                text_add(&folded, t->cps[i]);
            for (size_t k = 0; k < 3 && f[k]; k++)
                text_add(&folded, f[k]);
        }
        t->n = 0;
        for (size_t i = 0; i < folded.n; i++) {
            if (!ucd.ignorable[folded.cps[i]])
                text_add(t, folded.cps[i]);
        }
        to_nfd(t);
        compose(t);
    } while (before.n != t->n || memcmp(before.cps, t->cps, t->n * sizeof(t->cps[0])) != 0);
}

/* UTF-8; returns its length. */
static size_t text_utf8(const struct text *t, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        uint32_t cp = t->cps[i];

        if (cp < 0x80) {
            out[n++] = (char)cp;
        } else if (cp < 0x800) {
            out[n++] = (char)(0xc0 | cp >> 6);
            out[n++] = (char)(0x80 | (cp & 0x3f));
        } else if (cp < 0x10000) {
            out[n++] = (char)(0xe0 | cp >> 12);
            out[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (cp & 0x3f));
        } else {
            out[n++] = (char)(0xf0 | cp >> 18);
            out[n++] = (char)(0x80 | (cp >> 12 & 0x3f));
            out[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (cp & 0x3f));
        }
    }
    return n;
}

#endif
