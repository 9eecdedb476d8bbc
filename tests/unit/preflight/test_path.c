#include "preflight/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "preflight/fold.h"
#include "tests/support/rows.h"
#include "tests/unit/preflight/cpu.h"
#include "tests/unit/preflight/names.h"

#define ROWS_MAX 512

/* A line of paths.txt. */
static struct row {
    const char *why;
    char sentence[100], portable[32], posix[32];
    char spelling[1024];
} rows[ROWS_MAX];

static struct sbx_buf path;

static int setup(void **state SBX_UNUSED)
{
    path = SBX_BUF_INIT(NAMES_MAX);
    return 0;
}

static int teardown(void **state SBX_UNUSED)
{
    sbx_buf_done(&path);
    return 0;
}

static enum sbx_reason verdict(const char *bytes, size_t n, enum sbx_names names)
{
    return sbx_pre_path(bytes, n, names);
}

static void check_row(void **state)
{
    const struct row *r = *state;

    assert_true(names_bytes(r->spelling, &path));
    assert_true(names_reason(r->portable) < SBX_REASONS);
    assert_true(names_reason(r->posix) < SBX_REASONS);
    assert_int_equal(verdict(path.data, path.len, SBX_NAMES_PORTABLE), names_reason(r->portable));
    assert_int_equal(verdict(path.data, path.len, SBX_NAMES_POSIX), names_reason(r->posix));
}

static size_t read_rows(void)
{
    FILE *f = fopen(FIXTURES "/names/paths.txt", "re");
    char line[2048];
    size_t n = 0;

    while (f && n < ROWS_MAX && fgets(line, sizeof(line), f)) {
        struct row *r = &rows[n];

        if (line[0] == '#')
            continue;
        if (sscanf(line, "%1023s %31s %31s %99[^\n]", r->spelling, /* banned-ok: trusted fixture */
                   r->portable, r->posix, r->sentence) == 4) {
            r->why = r->sentence;
            n++;
        } else {
            print_message("paths.txt: not a row: %s", line);
            exit(1);
        }
    }
    if (f)
        (void)fclose(f);
    return n;
}

static enum sbx_reason of_char(const char *utf8, enum sbx_names names)
{
    char name[32];
    int n = snprintf(name, sizeof(name), "a%sb", utf8);

    return verdict(name, (size_t)n, names);
}

static void every_ascii_character(void **state SBX_UNUSED)
{
    for (char c = 1; c > 0; c++) {
        char one[2] = {c, '\0'};
        enum sbx_reason want = SBX_REASON_NONE;

        if (c < 32 || c == 127)
            want = SBX_REFUSE_CONTROL;
        else if (strchr("<>:\"|?*", c))
            want = SBX_REFUSE_RESERVED_CHAR;
        else if (c == '\\')
            want = SBX_REFUSE_SEPARATOR;
        assert_int_equal(of_char(one, SBX_NAMES_PORTABLE), want);
        assert_int_equal(of_char(one, SBX_NAMES_POSIX), SBX_REASON_NONE);
        if (c == 127)
            break;
    }
}

static void every_c1_control(void **state SBX_UNUSED)
{
    for (unsigned c = 0x80; c < 0xc0; c++) {
        char two[3] = {'\xc2', (char)c, '\0'};
        enum sbx_reason want = c < 0xa0 ? SBX_REFUSE_CONTROL : SBX_REASON_NONE;

        assert_int_equal(of_char(two, SBX_NAMES_PORTABLE), want);
        assert_int_equal(of_char(two, SBX_NAMES_POSIX), SBX_REASON_NONE);
    }
}

/* The last bytes of other characters look like C1 controls. */
static void bytes_of_other_characters_are_no_controls(void **state SBX_UNUSED)
{
    assert_int_equal(of_char("\u4080\u00c2\u20ac\u0105\u2090\U0001f080", SBX_NAMES_PORTABLE),
                     SBX_REASON_NONE);
}

static uint32_t chance_state = 7;

static uint32_t chance(uint32_t below)
{
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * below) >> 32);
}

static enum sbx_reason by_key(const char *bytes, size_t n)
{
    char key[SBX_PRE_KEY_ROOM(SBX_MAX_COMPONENT)];
    size_t n_key = sbx_pre_key_at(bytes, n, key);

    if (n_key == 0 || (n_key <= 2 && memcmp(key, "..", n_key) == 0))
        return SBX_REFUSE_TRAVERSAL;
    return n_key >= 9 && memcmp(key, ".sbx-sync", 9) == 0 ? SBX_REFUSE_RESERVED_NAME
                                                          : SBX_REASON_NONE;
}

/* Pieces of what the rules look for, and what may hide it. */
static void names_almost_ours_and_almost_dots(void **state SBX_UNUSED)
{
    static const char *const pieces[] = {
        ".", ".", ".", "\u200b", "\u034f", "\U000e0080", "s",         "S",      "\u017f", "bx",
        "B", "x", "-", "sync",   "SYNC",   "n",          ".sbx-sync", "\u0327", "c",      "\u00e9"};
    size_t hits[3] = {0};

    for (int k = 0; k < 300000; k++) {
        char name[128] = "";
        uint32_t n = 1 + chance(6);
        enum sbx_reason want;

        sbx_buf_clear(&path);
        while (n-- > 0)
            (void)!sbx_buf_str(&path, pieces[chance(N_ELEMENTS(pieces))], NULL);
        memcpy(name, path.data, path.len + 1);
        want = by_key(name, path.len);
        hits[want == SBX_REFUSE_TRAVERSAL ? 0 : want == SBX_REFUSE_RESERVED_NAME ? 1 : 2]++;
        if (verdict(name, path.len, SBX_NAMES_POSIX) != want)
            fail_msg("%s", name);
    }
    assert_true(hits[0] > 1000 && hits[1] > 1000 && hits[2] > 1000);
}

static uint64_t cost(const char *fill, size_t n)
{
    uint64_t best = UINT64_MAX;

    sbx_buf_clear(&path);
    while (path.len < n)
        assert_int_equal(sbx_buf_str(&path, fill, NULL), SBX_OK);
    for (int k = 0; k < 3; k++) {
        uint64_t from = cpu_ns(), took;

        assert_int_not_equal(verdict(path.data, path.len, SBX_NAMES_PORTABLE), SBX_REASON_NONE);
        took = cpu_ns() - from;
        best = took < best ? took : best;
    }
    return best;
}

/* Quadratic would be 64 times as long. */
static void long_paths_cost_no_square(void **state SBX_UNUSED)
{
    static const char *const fill[] = {"a/", "\u200b", ".", "/", "\u200b/", "e\u0301", ".\u200b"};

    for (size_t i = 0; i < N_ELEMENTS(fill); i++) {
        uint64_t few = cost(fill[i], 250000), many = cost(fill[i], 2000000);

        if (many > 32 * few + SBX_NS_PER_MS)
            fail_msg("%zu: %llu ns, then %llu ns", i, (unsigned long long)few,
                     (unsigned long long)many);
    }
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(every_ascii_character),
        cmocka_unit_test(every_c1_control),
        cmocka_unit_test(bytes_of_other_characters_are_no_controls),
        cmocka_unit_test_setup_teardown(names_almost_ours_and_almost_dots, setup, teardown),
        cmocka_unit_test_setup_teardown(long_paths_cost_no_square, setup, teardown),
    };
    static struct CMUnitTest tests[ROWS_MAX + N_ELEMENTS(others)];
    size_t n_rows = read_rows(), n;

    n = rows_add(tests, 0, rows, n_rows, sizeof(rows[0]), check_row);
    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = NULL;
        tests[i].teardown_func = teardown;
    }
    (void)setup(NULL);
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        tests[n++] = others[i];
    return n_rows < 150 ? 1 : rows_run("rules of paths", tests, n);
}
