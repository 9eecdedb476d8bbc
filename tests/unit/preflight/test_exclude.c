#include "preflight/exclude.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "tests/support/rows.h"
#include "tests/unit/preflight/cpu.h"

static const struct row {
    const char *why;
    const char *pattern, *path;
    bool want;
} rows[] = {
    {"a plain name is the file", "a", "a", true},
    {"a plain name is any component", "a", "x/a/y", true},
    {"a plain name is no part of one", "a", "xa/ay", false},
    {"case counts", "A", "a", false},
    {"an empty pattern matches nothing", "", "a", false},
    {"a slash alone matches nothing", "/", "a", false},
    {"two slashes match nothing", "//", "a", false},
    {"an empty path matches nothing", "a", "", false},
    {"a star is a whole component", "*", "x", true},
    {"a star in front", "*.log", "logs/a.log", true},
    {"a star at the end", "tmp*", "x/tmp1/y", true},
    {"a star for nothing", "a*b", "ab", true},
    {"a star stops at a slash", "a*b", "a/b", false},
    {"two stars in one component", "a*b*c", "x/a1b2c", true},
    {"the first match of a star is not the last", "*ab", "aab", true},
    {"a question mark is one character", "a?c", "abc", true},
    {"a question mark is one character of three bytes", "a?c", "a\u8a9ec", true},
    {"a question mark is no half of a character", "a??c", "a\u00e9c", false},
    {"a question mark is not nothing", "a?", "a", false},
    {"a question mark stops at a slash", "a?b", "a/b", false},
    {"with a slash from the root", "a/b", "a/b", true},
    {"with a slash only from the root", "a/b", "x/a/b", false},
    {"with a slash all below", "a/b", "a/b/c/d", true},
    {"with a slash no longer name", "a/b", "a/bc", false},
    {"with a slash not what stands above", "a/b/c", "a/b", false},
    {"a leading slash anchors one name", "/a", "a/x", true},
    {"a leading slash anchors one name only at the root", "/a", "x/a", false},
    {"a leading slash and more", "/a/b", "a/b", true},
    {"a star in a rooted pattern", "a/*/c", "a/b/c", true},
    {"a star in a rooted pattern is one component", "a/*/c", "a/b/b/c", false},
    {"a rooted star matches the directory of anything deeper", "/*", "a/b", true},
    {"a trailing slash asks for a directory", "a/", "x/a/y", true},
    {"a trailing slash refuses a file", "a/", "x/a", false},
    {"a trailing slash does not anchor", "a/", "x/a/y", true},
    {"a trailing slash in a rooted pattern", "x/a/", "x/a/y", true},
    {"a trailing slash in a rooted pattern refuses a file", "x/a/", "x/a", false},
    {"two stars cross slashes", "a/**/z", "a/b/c/z", true},
    {"two stars as a component stand for none", "a/**/z", "a/z", true},
    {"two stars as a component begin one", "a/**/z", "a/bz", false},
    {"leading two stars find the top", "**/z", "z", true},
    {"leading two stars find the depth", "**/z", "a/b/z/y", true},
    {"leading two stars begin a component", "**/z", "a/bz", false},
    {"trailing two stars are all below", "a/**", "a/b/c", true},
    {"trailing two stars are not the directory's own name", "a/**", "a", false},
    {"two stars inside a rooted name", "/a**z", "ab/c/yz", true},
    {"two stars without a slash stay in a component", "a**z", "a/z", false},
    {"two stars and a star", "**/a*c/d", "x/abc/d", true},
    {"two stars come back behind a dead end", "**/a*b/d", "ab/c/ab/d", true},
    {"two stars come back into the same component", "/**a?c*d", "aabcd", true},
    {"two stars skip no later beginning", "/**a*b/c*d", "ab/cab/cd", true},
    {"three stars are two", "/a***z", "a/b/z", true},
    {"everything", "**", "a/b/c", true},
    {"a backslash is literal", "a\\b", "a\\b", true},
    {"brackets are literal", "[ab]", "a", false},
};

static void check_row(void **state)
{
    const struct row *r = *state;

    assert_int_equal(sbx_pre_exclude(r->pattern, r->path, strlen(r->path)), r->want);
}

static const struct plain_row {
    const char *why;
    const char *pattern;
    bool want;
} plain_rows[] = {
    {"a name is plain", "node_modules", true}, {"a name with blanks is plain", "a b", true},
    {"an empty pattern is not", "", false},    {"a slash is not", "a/b", false},
    {"a leading slash is not", "/a", false},   {"a trailing slash is not", "a/", false},
    {"a star is not", "*.o", false},           {"a question mark is not", "a?", false},
    {"find reads brackets", "[a]", false},     {"find reads backslashes", "a\\b", false},
};

static void check_plain(void **state)
{
    const struct plain_row *r = *state;

    assert_int_equal(sbx_pre_exclude_plain(r->pattern), r->want);
}

/* Only path_len bytes count, whatever follows. */
static void the_length_ends_the_path(void **state SBX_UNUSED)
{
    assert_true(sbx_pre_exclude("ab", "abc", 2));
    assert_true(sbx_pre_exclude("a?", "a\u00e9", 3));
    assert_false(sbx_pre_exclude("abc", "abc", 2));
}

#define SMALL 24

static bool can_match(const char *p, const char *pattern, const char *t);

/* Whether the rest p matches behind any number of the components that t begins with. */
static bool can_match_deeper(const char *p, const char *pattern, const char *t)
{
    while (t) {
        if (can_match(p, pattern, t))
            return true;
        t = strchr(t, '/');
        if (t)
            t++;
    }
    return false;
}

/* Whether the rest p of a pattern matches all of t, by trying everything. */
static bool can_match(const char *p, const char *pattern, const char *t)
{
    size_t stars = strspn(p, "*");

    if (*p == '\0')
        return *t == '\0';
    if (stars >= 2 && p[stars] == '/' && (p == pattern || p[-1] == '/'))
        return can_match_deeper(p + stars + 1, pattern, t);
    for (; stars > 0; t++) {
        if (can_match(p + stars, pattern, t))
            return true;
        if (*t == '\0' || (stars == 1 && *t == '/'))
            return false;
    }
    if (*t == '\0' || (*p == '?' ? *t == '/' : *t != *p))
        return false;
    return can_match(p + 1, pattern, t + 1);
}

static bool reference(const char *pattern, const char *path)
{
    char p[SMALL + 1];
    bool directory, rooted;

    strncpy(p, pattern, sizeof(p) - 1);
    p[sizeof(p) - 1] = '\0';
    directory = p[0] && p[strlen(p) - 1] == '/';
    if (directory)
        p[strlen(p) - 1] = '\0';
    rooted = strchr(p, '/') != NULL;
    if (p[0] == '/')
        memmove(p, p + 1, strlen(p));
    if (!p[0])
        return false;
    for (size_t end = 1; end <= strlen(path); end++) {
        char head[SMALL + 1] = "";
        const char *last;

        if (path[end] != '/' && path[end] != '\0')
            continue;
        if (directory && path[end] != '/')
            continue;
        memcpy(head, path, end);
        last = strrchr(head, '/') ? strrchr(head, '/') + 1 : head;
        if (can_match(p, p, rooted ? head : last))
            return true;
    }
    return false;
}

static uint32_t chance_state = 99;

static uint32_t chance(uint32_t below)
{
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * below) >> 32);
}

static void chance_pattern(char *out, const char *alphabet, uint32_t most)
{
    uint32_t n = 1 + chance(most);

    for (uint32_t i = 0; i < n; i++)
        out[i] = alphabet[chance((uint32_t)strlen(alphabet))];
    out[n] = '\0';
}

/* Paths without empty components, since preflight lets no other come so far. */
static void as_defined_on_chance(void **state SBX_UNUSED)
{
    size_t matched = 0;

    for (int k = 0; k < 300000; k++) {
        char pattern[SMALL + 1], path[SMALL + 1];

        chance_pattern(pattern, k % 2 ? "ab**/?" : "ab***//?", k % 3 ? 8 : 11);
        chance_pattern(path, "aaabb/", 14);
        if (path[0] == '/' || path[strlen(path) - 1] == '/' || strstr(path, "//"))
            continue;
        matched += reference(pattern, path);
        if (sbx_pre_exclude(pattern, path, strlen(path)) != reference(pattern, path))
            fail_msg("pattern \"%s\", path \"%s\"", pattern, path);
    }
    assert_true(matched > 10000);
}

#define LONG 65536

static char long_path[LONG];

/* Fills the path with text[0..n), over and over, and returns the best time of a few for its first
 * `len` bytes. */
static uint64_t cost(const char *pattern, const char *text, size_t len)
{
    uint64_t best = UINT64_MAX;

    for (size_t i = 0; i < LONG; i++)
        long_path[i] = text[i % strlen(text)];
    for (int k = 0; k < 5; k++) {
        uint64_t from = cpu_ns(), took;

        assert_false(sbx_pre_exclude(pattern, long_path, len));
        took = cpu_ns() - from;
        best = took < best ? took : best;
    }
    return best;
}

static const struct time_row {
    const char *why;
    const char *pattern, *text;
} time_rows[] = {
    {"stars in one long component", "a*a*a*a*a*b", "a"},
    {"two stars before a star", "/**a*b", "a"},
    {"two stars before a star, many components", "/**a*b", "aaaaaaaaaaaaaaaa/"},
    {"two stars before stars and a slash", "/**a*a/a*a/a*b", "aaaaaaaaaaaaaaaaaaaaaaaa/"},
    {"two stars again and again", "**/a**a**a**a**a**b", "aa/"},
    {"two stars as components", "**/a/**/a/**/b", "a/"},
    {"two stars and question marks", "/**??????????*b", "\u00e9"},
    {"a component of any depth", "**/a*b", "aaaa/"},
};

/* Quadratic would be 64 times as long. */
static void check_time(void **state)
{
    const struct time_row *r = *state;
    uint64_t few = cost(r->pattern, r->text, LONG / 8), many = cost(r->pattern, r->text, LONG);

    if (many > 24 * few)
        fail_msg("%llu ns, then %llu ns", (unsigned long long)few, (unsigned long long)many);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(the_length_ends_the_path),
        cmocka_unit_test(as_defined_on_chance),
    };
    struct CMUnitTest tests[N_ELEMENTS(rows) + N_ELEMENTS(plain_rows) + N_ELEMENTS(time_rows) +
                            N_ELEMENTS(others)];
    size_t n = rows_add(tests, 0, ROWS(rows), check_row);

    n = rows_add(tests, n, ROWS(plain_rows), check_plain);
    n = rows_add(tests, n, ROWS(time_rows), check_time);
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        tests[n++] = others[i];
    return rows_run("patterns", tests, n);
}
