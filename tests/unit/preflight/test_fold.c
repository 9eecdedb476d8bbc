#include "preflight/fold.h"

#include <string.h>
#include <utf8proc.h>

#include "base/limits.h"
#include "tests/support/rows.h"
#include "tests/unit/preflight/cpu.h"
#include "tests/unit/preflight/unicode.h"

static const struct pair {
    const char *why;
    const char *a, *b;
    bool same;
} pairs[] = {
    {"case of ASCII does not count", "ReadMe.TXT", "readme.txt", true},
    {"digits and signs stay apart", "a-1", "a_1", false},
    {"e-acute in one and in two code points", "caf\u00e9", "cafe\u0301", true},
    {"e-acute is not e", "caf\u00e9", "cafe", false},
    {"capital E-acute decomposed", "CAFE\u0301", "caf\u00e9", true},
    {"the Angstrom sign is A-ring", "\u212b.md", "\u00c5.md", true},
    {"A-ring decomposed is a-ring", "A\u030a.md", "\u00e5.md", true},
    {"the Kelvin sign is k", "\u212a", "k", true},
    {"the long s is s", ".\u017fbx", ".sbx", true},
    {"sharp s is ss", "stra\u00dfe", "STRASSE", true},
    {"capital sharp s is ss", "\u1e9e", "ss", true},
    {"the ligature fi folds in full", "\ufb01n", "FIN", true},
    {"the ligature ffi folds to three", "\ufb03", "ffi", true},
    {"final sigma is sigma", "\u03c2", "\u03a3", true},
    {"Cherokee small letters fold to capitals", "\uab70", "\u13a0", true},
    {"dotted capital I is i and a dot above", "\u0130", "i\u0307", true},
    {"dotless i is not i", "\u0131", "i", false},
    {"full-width letters are other letters", "\uff21", "A", false},
    {"full-width letters have case", "\uff21", "\uff41", true},
    {"a vulgar fraction is no text", "\u00bd", "1\u20442", false},
    {"no-break space is not space", "a\u00a0b", "a b", false},
    {"zero width joiner inside", ".gi\u200ct", ".git", true},
    {"byte order mark in front", "\ufeff.git", ".git", true},
    {"soft hyphen", "co\u00adop", "coop", true},
    {"variation selector", "\u2764\ufe0f", "\u2764", true},
    {"a tag character", "a\U000e0061", "a", true},
    {"an ignorable that is not assigned", "a\U000e0fff\u2065\ufff0", "a", true},
    {"behind the ignorables", "a\U000e1000", "a", false},
    {"Hangul filler", "a\u3164\uffa0\u115f\u1160", "a", true},
    {"Hangul of letters and of syllables", "\u1112\u1161\u11ab", "\ud55c", true},
    {"U+11A7 behind a Hangul syllable is no final consonant", "\uac00\u11a7", "\uac00", false},
    {"marks of different classes in any order", "q\u0323\u0307", "q\u0307\u0323", true},
    {"marks of one class keep their order", "q\u0301\u0307", "q\u0307\u0301", false},
    {"a joiner between letter and mark", "e\u034f\u0301", "\u00e9", true},
    {"ypogegrammeni before another mark", "\u03b1\u0345\u0301", "\u03b1\u0301\u0345", true},
    {"ypogegrammeni before a letter that looks like it", "\u1fb3", "\u03b1\u03b9", true},
    {"a character that composition leaves out", "\u0958", "\u0915\u093c", true},
    {"a CJK compatibility ideograph", "\uf900", "\u8c48", true},
    {"katakana with a voiced mark", "\u30ab\u3099", "\u30ac", true},
    {"hiragana is not katakana", "\u304b", "\u30ab", false},
    {"Cyrillic capitals", "\u041e\u0422\u0427\u0401\u0422", "\u043e\u0442\u0447\u0451\u0442", true},
    {"Cyrillic a is not Latin a", "\u0430", "a", false},
    {"Polish small and capital", "\u017b\u00d3\u0141\u0106", "\u017c\u00f3\u0142\u0107", true},
};

static struct fixture {
    struct sbx_buf a, b;
} fx;

static int teardown(void **state)
{
    (void)state;
    sbx_buf_done(&fx.a);
    sbx_buf_done(&fx.b);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    fx.a = SBX_BUF_INIT(1u << 16);
    fx.b = SBX_BUF_INIT(1u << 16);
    return 0;
}

static bool equal(const struct sbx_buf *key, const char *bytes, size_t n)
{
    return key->len == n && memcmp(key->data, bytes, n) == 0;
}

static void check_pair(void **state)
{
    const struct pair *p = *state;

    assert_int_equal(sbx_pre_key(p->a, strlen(p->a), &fx.a, NULL), SBX_OK);
    assert_int_equal(sbx_pre_key(p->b, strlen(p->b), &fx.b, NULL), SBX_OK);
    assert_int_equal(equal(&fx.a, fx.b.data, fx.b.len), p->same);
}

static char shown[64];

static const char *show(const struct text *t)
{
    size_t n = 0;

    shown[0] = '\0';
    for (size_t i = 0; i < t->n && n < sizeof(shown) - 12; i++)
        n += (size_t)snprintf(shown + n, sizeof(shown) - n, " %04X", t->cps[i]);
    return shown;
}

/* Fails unless the key of the text is the reference's, and its own key. */
static void check_text(const struct text *t)
{
    static struct text want;
    static char bytes[4 * TEXT_MAX], key[4 * TEXT_MAX];
    size_t n = text_utf8(t, bytes), n_key;

    text_copy(&want, t);
    reference_key(&want);
    n_key = text_utf8(&want, key);
    if (sbx_pre_key(bytes, n, &fx.a, NULL) || !equal(&fx.a, key, n_key))
        fail_msg("key of%s", show(t));
    if (sbx_pre_key(fx.a.data, fx.a.len, &fx.b, NULL) || !equal(&fx.b, key, n_key))
        fail_msg("key of the key of%s", show(t));
    if (n_key > 3 * n)
        fail_msg("key of%s does not fit", show(t));
}

static bool surrogate(uint32_t cp)
{
    return cp >= 0xd800 && cp <= 0xdfff;
}

/* Where utf8proc and Unicode's data are of two versions, neither is wrong: there is nothing to
 * compare. Debian 12, where all has to pass, has both of one. */
static void needs_ucd(void)
{
    FILE *f;
    char line[64] = "";

    f = fopen(UCD "CaseFolding.txt", "re");
    if (f) {
        (void)!fgets(line, sizeof(line), f);
        (void)fclose(f);
    }
    if (!strstr(line, utf8proc_unicode_version())) {
        print_message("SKIPPED: no Unicode data of version %s in " UCD "\n",
                      utf8proc_unicode_version());
        skip();
    }
    if (ucd.n_pairs == 0)
        assert_true(ucd_load());
}

static void every_code_point(void **state)
{
    static struct text t;

    (void)state;
    needs_ucd();
    for (uint32_t cp = 0; cp < N_CPS; cp++) {
        if (surrogate(cp) || cp == 0)
            continue;
        t.n = 1;
        t.cps[0] = cp;
        check_text(&t);
        if (sbx_pre_ignorable(cp) != ucd.ignorable[cp] || (fx.a.len == 0) != ucd.ignorable[cp])
            fail_msg("U+%04X: ignorable or not", cp);
        if (cp != '.' && memchr(fx.a.data, '.', fx.a.len))
            fail_msg("U+%04X gives a full stop", cp);
    }
}

/* A character is its own key in a text too: what composes with a neighbour does it here. */
static void every_code_point_between_others(void **state)
{
    static struct text t;

    (void)state;
    needs_ucd();
    for (uint32_t cp = 0x80; cp < N_CPS; cp++) {
        if (surrogate(cp) || !ucd.assigned[cp])
            continue;
        if (cp >= 0xac00 && cp <= 0xd7a3 && cp % 97)
            continue;
        t.n = 5;
        t.cps[0] = 'a';
        t.cps[1] = 0xe9;
        t.cps[2] = cp;
        t.cps[3] = cp % 2 ? 0x301 : 0x4e00;
        t.cps[4] = cp;
        check_text(&t);
    }
}

static void every_folding(void **state)
{
    (void)state;
    needs_ucd();
    for (uint32_t cp = 0; cp < N_CPS; cp++) {
        static struct text one, folded;
        static char bytes[64];

        if (!ucd.folded[cp][0])
            continue;
        one.n = 1;
        one.cps[0] = cp;
        folded.n = 0;
        for (size_t k = 0; k < 3 && ucd.folded[cp][k]; k++)
            text_add(&folded, ucd.folded[cp][k]);
        assert_int_equal(sbx_pre_key(bytes, text_utf8(&one, bytes), &fx.a, NULL), SBX_OK);
        assert_int_equal(sbx_pre_key(bytes, text_utf8(&folded, bytes), &fx.b, NULL), SBX_OK);
        if (!equal(&fx.a, fx.b.data, fx.b.len))
            fail_msg("U+%04X and its folding", cp);
    }
}

static FILE *normalization_test;

static int close_table(void **state)
{
    if (normalization_test)
        (void)pclose(normalization_test);
    normalization_test = NULL;
    return teardown(state);
}

/* NormalizationTest.txt: c1 to c3 of a line are canonically equivalent. Each column is also put
 * behind that of the line before. */
static void every_line_of_the_normalization_test(void **state)
{
    static struct text column[5], before, both;
    static char bytes[4 * TEXT_MAX], line[4096];
    size_t lines = 0;

    (void)state;
    needs_ucd();
    normalization_test = popen("bzcat " UCD "NormalizationTest.txt.bz2 2>&1", /* banned-ok: test */
                               "re");
    assert_non_null(normalization_test);
    while (fgets(line, sizeof(line), normalization_test)) {
        const char *at = line;

        if (line[0] == '#' || line[0] == '@' ||
            (strlen(line) > 5 && lines++ % 4 > 0 && strstr(line, "HANGUL SYLLABLE")))
            continue;
        for (size_t c = 0; c < 5; c++) {
            column[c].n = hex_list(at, column[c].cps, 32);
            at = strchr(at, ';');
            assert_non_null(at++);
            text_copy(&both, &before);
            for (size_t i = 0; i < column[c].n; i++)
                text_add(&both, column[c].cps[i]);
            check_text(&both);
            check_text(&column[c]);
            if (c == 1 || c == 2) {
                size_t n = text_utf8(&column[0], bytes);

                assert_int_equal(sbx_pre_key(bytes, n, &fx.b, NULL), SBX_OK);
                if (!equal(&fx.a, fx.b.data, fx.b.len))
                    fail_msg("column %zu of %s", c + 1, line);
            }
        }
        text_copy(&before, &column[0]);
    }
    assert_true(lines > 15000);
}

static uint32_t chance_state = 12345;

static uint32_t chance(uint32_t below)
{
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * below) >> 32);
}

static void random_ascii(void **state)
{
    static struct text t;

    (void)state;
    needs_ucd();
    for (int k = 0; k < 20000; k++) {
        t.n = chance(40);
        for (size_t i = 0; i < t.n; i++)
            t.cps[i] = 1 + chance(0x7f);
        check_text(&t);
    }
}

/* Letters, marks, Hangul parts, ignorables, scripts with and without case. */
static void random_mixtures(void **state)
{
    static const uint32_t from[][2] = {
        {0x20, 0x60},   {0xa0, 0xe0},     {0x300, 0x50},   {0x340, 0x10},  {0x390, 0x50},
        {0x1100, 0x13}, {0x1160, 0x16},   {0x11a7, 0x1c},  {0x1f00, 0xff}, {0x200b, 5},
        {0x3040, 0x60}, {0x4e00, 0x1000}, {0xac00, 11172}, {0x915, 0x3f},  {0x9be, 0x20},
    };
    static struct text t;

    (void)state;
    needs_ucd();
    for (int k = 0; k < 20000; k++) {
        t.n = chance(16);
        for (size_t i = 0; i < t.n; i++) {
            const uint32_t *range = from[chance(N_ELEMENTS(from))];

            t.cps[i] = range[0] + chance(range[1]);
        }
        check_text(&t);
    }
}

/* Characters of one script, or of two that are neighbours, and what stands beside any of them. */
static void random_words_of_each_script(void **state)
{
    static const uint32_t beside[] = {'a', 'Z', 0xe9, 0x301, 0x323, 0x34f, 0x4e00, 0xac00};
    static struct text t;

    (void)state;
    needs_ucd();
    for (uint32_t base = 0x80; base < 0x32400; base += 0x10) {
        for (int k = 0; k < (base < 0x3400 ? 150 : 1); k++) {
            t.n = 2 + chance(6);
            for (size_t i = 0; i < t.n; i++) {
                t.cps[i] = base + chance(0x20);
                if (surrogate(t.cps[i]) || chance(4) == 0)
                    t.cps[i] = beside[chance(k % 2 ? 3 : N_ELEMENTS(beside))];
            }
            check_text(&t);
        }
    }
}

static void marks_of_all_classes_in_a_long_run(void **state)
{
    static struct text t;

    (void)state;
    needs_ucd();
    for (int k = 0; k < 30; k++) {
        t.n = 1 + 15 * (1 + (size_t)k);
        t.cps[0] = 'e';
        for (size_t i = 1; i < t.n; i++)
            t.cps[i] = 0x300 + chance(0x6f);
        check_text(&t);
    }
}

static void the_longest_component_that_is_folded(void **state)
{
    char name[SBX_MAX_KEYED];

    (void)state;
    memset(name, 'A', sizeof(name));
    assert_int_equal(sbx_pre_key(name, sizeof(name), &fx.a, NULL), SBX_OK);
    assert_int_equal(fx.a.len, SBX_MAX_KEYED);
    assert_int_equal(fx.a.data[SBX_MAX_KEYED - 1], 'a');
}

static void a_longer_component_is_its_own_key(void **state)
{
    char name[SBX_MAX_KEYED + 1];

    (void)state;
    memset(name, 'A', sizeof(name));
    assert_int_equal(sbx_pre_key(name, sizeof(name), &fx.a, NULL), SBX_OK);
    assert_true(equal(&fx.a, name, sizeof(name)));
}

/* U+1D160 is the character whose key grows most: from 4 bytes to 12. */
static void the_key_that_grows_most(void **state)
{
    char name[SBX_MAX_KEYED];

    (void)state;
    for (size_t i = 0; i < sizeof(name); i += 4)
        memcpy(name + i, "\U0001d160", 4);
    name[sizeof(name) - 4] = name[sizeof(name) - 3] = 'A';
    name[sizeof(name) - 2] = name[sizeof(name) - 1] = 'B';
    assert_int_equal(sbx_pre_key(name, sizeof(name), &fx.a, NULL), SBX_OK);
    assert_int_equal(fx.a.len, 3 * (SBX_MAX_KEYED - 4) + 4);
    assert_memory_equal(fx.a.data + fx.a.len - 4, "aabb", 4);
}

static void a_buffer_that_is_too_small(void **state)
{
    (void)state;
    fx.b.max = 3;
    assert_int_equal(sbx_pre_key("ABCD", 4, &fx.b, NULL), SBX_E_LIMIT);
    assert_int_equal(sbx_pre_key("\u00c9\u00c9", 4, &fx.b, NULL), SBX_E_LIMIT);
    assert_int_equal(sbx_pre_key("ABC", 3, &fx.b, NULL), SBX_OK);
}

/* The best of some runs, in nanoseconds, of a component of n bytes of marks, worst order first. */
static uint64_t marks_cost(size_t n)
{
    char name[SBX_MAX_KEYED] = "e";
    uint64_t best = UINT64_MAX;

    for (size_t i = 2; i < n; i += 2)
        memcpy(name + i - 1, i < n / 2 ? "\u0345" : "\u0334", 2);
    for (int k = 0; k < 15; k++) {
        uint64_t from = cpu_ns(), took;

        for (int m = 0; m < 20; m++)
            assert_int_equal(sbx_pre_key(name, n - 1, &fx.a, NULL), SBX_OK);
        took = cpu_ns() - from;
        best = took < best ? took : best;
    }
    return best;
}

/* Eight times the marks, and 64 times the exchanges at worst: these must not be what it costs. */
static void many_marks_cost_no_square(void **state)
{
    uint64_t few, many;

    (void)state;
    few = marks_cost(SBX_MAX_KEYED / 8);
    many = marks_cost(SBX_MAX_KEYED);
    if (many > 32 * few)
        fail_msg("%llu ns, then %llu ns", (unsigned long long)few, (unsigned long long)many);
}

#define TEST(fn, teardown) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    static const struct CMUnitTest others[] = {
        TEST(every_code_point, teardown),
        TEST(every_code_point_between_others, teardown),
        TEST(every_folding, teardown),
        TEST(every_line_of_the_normalization_test, close_table),
        TEST(random_ascii, teardown),
        TEST(random_mixtures, teardown),
        TEST(random_words_of_each_script, teardown),
        TEST(marks_of_all_classes_in_a_long_run, teardown),
        TEST(the_longest_component_that_is_folded, teardown),
        TEST(a_longer_component_is_its_own_key, teardown),
        TEST(the_key_that_grows_most, teardown),
        TEST(a_buffer_that_is_too_small, teardown),
        TEST(many_marks_cost_no_square, teardown),
    };
    struct CMUnitTest tests[N_ELEMENTS(pairs) + N_ELEMENTS(others)];
    size_t n = rows_add(tests, 0, ROWS(pairs), check_pair);

    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = NULL;
        tests[i].teardown_func = teardown;
    }
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        tests[n++] = others[i];
    (void)setup(NULL);
    return rows_run("alias keys", tests, n);
}
