#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "preflight/fold.h"
#include "preflight/preflight.h"
#include "tests/support/rows.h"
#include "tests/unit/preflight/cpu.h"

/* A listing that a test makes up. */
static struct fixture {
    struct sbx_record *records;
    size_t n, cap;
    struct sbx_buf text; /* of all paths; records hold offsets until seal() */
    struct sbx_preflight *p;
    struct sbx_error err;
} fx;

static int setup(void **state SBX_UNUSED)
{
    fx = (struct fixture){.text = SBX_BUF_INIT(256u << 20)};
    return 0;
}

static int teardown(void **state SBX_UNUSED)
{
    sbx_preflight_free(fx.p);
    sbx_buf_done(&fx.text);
    free(fx.records);
    fx = (struct fixture){0};
    return 0;
}

static void add(const char *bytes, size_t n)
{
    assert_int_equal(sbx_array_grow((void **)&fx.records, &fx.cap, fx.n + 1, 1u << 24,
                                    sizeof(*fx.records), NULL),
                     SBX_OK);
    fx.records[fx.n] = (struct sbx_record){.size = fx.text.len, .path_len = (uint32_t)n};
    assert_int_equal(sbx_buf_add(&fx.text, bytes, n, NULL), SBX_OK);
    assert_int_equal(sbx_buf_add(&fx.text, "", 1, NULL), SBX_OK);
    fx.n++;
}

static int by_path(const void *a, const void *b)
{
    const struct sbx_record *x = a, *y = b;

    return sbx_list_path_cmp(x->path, x->path_len, y->path, y->path_len);
}

static void seal(void)
{
    for (size_t i = 0; i < fx.n; i++)
        fx.records[i].path = fx.text.data + fx.records[i].size;
    qsort(fx.records, fx.n, sizeof(*fx.records), by_path);
}

static enum sbx_status run(uint64_t max_directories)
{
    struct sbx_pre_options options = {.max_directories = max_directories};

    sbx_preflight_free(fx.p);
    fx.p = NULL;
    return sbx_preflight_new(fx.records, fx.n, &options, &fx.p, &fx.err);
}

static size_t count(enum sbx_reason reason)
{
    size_t n = 0;

    for (size_t i = 0; i < fx.n; i++)
        n += sbx_preflight_reason(fx.p, i) == reason;
    return n;
}

/* The i-th way to write `letters`, in upper and lower case. */
static void vary(char *out, const char *letters, size_t n, uint32_t i)
{
    for (size_t k = 0; k < n; k++)
        out[k] = (char)(k < 32 && i >> k & 1 ? letters[k] - 'a' + 'A' : letters[k]);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"

static void plain_files(size_t n)
{
    char path[64];

    for (size_t i = 0; i < n; i++) {
        int len = snprintf(path, sizeof(path), "results/part%03zu/file-%06zu.txt", i / 100, i);

        add(path, (size_t)len);
    }
}

static void files_of_one_key(size_t n)
{
    char name[40];

    for (uint32_t i = 0; i < n; i++) {
        vary(name, LETTERS, sizeof(name), i);
        add(name, sizeof(name));
    }
}

static void directories_of_one_key(size_t n)
{
    char path[42];

    for (uint32_t i = 0; i < n; i++) {
        vary(path, LETTERS, 40, i);
        memcpy(path + 40, "/x", 2);
        add(path, sizeof(path));
    }
}

/* Two names in turns, so that no key computed for one serves the next. */
static void files_of_two_keys(size_t n)
{
    char name[60] = "";

    for (uint32_t i = 0; i < n; i++) {
        memset(name, i % 2 ? 'y' : 'z', sizeof(name));
        vary(name, LETTERS, 24, i);
        for (size_t k = 24; k + 1 < sizeof(name); k += 2)
            memcpy(name + k, i % 2 ? "\u00c9" : "\u00c8", 2);
        add(name, sizeof(name));
    }
}

static void files_below_deep_directories(size_t n)
{
    char path[256];

    for (size_t k = 0; k < 200; k += 2)
        memcpy(path + k, "d/", 2);
    for (size_t i = 0; i < n; i++) {
        int len = snprintf(path + 190, sizeof(path) - 190, "f%06zu", i);

        add(path, 190 + (size_t)len);
    }
}

/* Each spelling of a directory holds a spelling of each file. */
static void files_spelled_below_directories_spelled(size_t n)
{
    char path[24];

    for (uint32_t i = 0; i < n; i++) {
        vary(path, LETTERS, 11, i / 256);
        path[11] = '/';
        vary(path + 12, LETTERS, 12, i % 256);
        add(path, sizeof(path));
    }
}

static void one_deep_path(size_t n)
{
    while (fx.text.len < 2 * n)
        assert_int_equal(sbx_buf_str(&fx.text, "a/", NULL), SBX_OK);
    fx.n = 0;
    fx.text.data[fx.text.len - 1] = 'b';
    fx.records = NULL;
    fx.cap = 0;
    assert_int_equal(sbx_array_grow((void **)&fx.records, &fx.cap, 1, 1, sizeof(*fx.records), NULL),
                     SBX_OK);
    fx.records[0] = (struct sbx_record){.path_len = (uint32_t)fx.text.len};
    fx.n = 1;
}

static void directories_side_by_side(size_t n)
{
    char path[32];

    for (size_t i = 0; i < n; i++) {
        int len = snprintf(path, sizeof(path), "%06zu/x", i);

        add(path, (size_t)len);
    }
}

static const struct shape {
    const char *why;
    void (*make)(size_t n);
    size_t n;
    size_t aliases;
} shapes[] = {
    {"100,000 files in 1,000 directories", plain_files, 100000, 0},
    {"100,000 spellings of one file", files_of_one_key, 100000, 100000},
    {"100,000 spellings of one directory", directories_of_one_key, 100000, 100000},
    {"100,000 spellings of two files in turns", files_of_two_keys, 100000, 100000},
    {"100,000 files 95 levels deep", files_below_deep_directories, 100000, 0},
    {"spellings of files below spellings of directories", files_spelled_below_directories_spelled,
     100000, 100000},
    {"one path of 400,000 levels", one_deep_path, 400000, 0},
    {"100,000 directories", directories_side_by_side, 100000, 0},
};

/* The best time of a few. */
static uint64_t cost(const struct shape *s, size_t n)
{
    uint64_t best = UINT64_MAX;

    (void)teardown(NULL);
    (void)setup(NULL);
    s->make(n);
    seal();
    for (int k = 0; k < 3; k++) {
        uint64_t from = cpu_ns(), took;

        assert_int_equal(run(UINT64_MAX), SBX_OK);
        took = cpu_ns() - from;
        best = took < best ? took : best;
    }
    return best;
}

/* An eighth of the records would take a 64th if anything were quadratic; caches alone make it a
 * 20th. */
static void check_shape(void **state)
{
    const struct shape *s = *state;
    uint64_t few = cost(s, s->n / 8), many = cost(s, s->n);

    assert_int_equal(count(SBX_REFUSE_ALIAS), s->aliases);
    if (many > 40 * few)
        fail_msg("%llu ns, then %llu ns", (unsigned long long)few, (unsigned long long)many);
}

static void a_full_listing_takes_no_time(void **state SBX_UNUSED)
{
    static const struct shape full = {NULL, plain_files, SBX_MAX_RECORDS, 0};

    assert_true(cost(&full, full.n) < 2ull * SBX_NS_PER_S);
}

/* A sanitizer brings an allocator of its own, which mallinfo2() knows nothing of. */
__attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes(void);

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    return info.uordblks + info.hblkhd;
}

static void assert_allocations_are_told(void)
{
    size_t before = allocated();
    void *volatile probe = malloc(1u << 20);
    size_t after = allocated();

    free(probe);
    assert_true(after >= before + (1u << 20));
}

static void a_byte_per_record_stays(void **state SBX_UNUSED)
{
    size_t before;

    assert_allocations_are_told();
    plain_files(100000);
    seal();
    before = allocated();
    assert_int_equal(run(SBX_MAX_DIRECTORIES), SBX_OK);
    /* Some allocators round up by as much as an eighth. */
    if (allocated() - before > 100000 + 100000 / 8 + 8192)
        fail_msg("%zu bytes", allocated() - before);
}

static void aliases_cost_what_their_partners_need(void **state SBX_UNUSED)
{
    size_t before;

    assert_allocations_are_told();
    files_of_one_key(100000);
    seal();
    before = allocated();
    assert_int_equal(run(SBX_MAX_DIRECTORIES), SBX_OK);
    if (allocated() - before > 30 * 100000)
        fail_msg("%zu bytes", allocated() - before);
}

static void as_many_directories_as_allowed(void **state SBX_UNUSED)
{
    directories_side_by_side(1000);
    add("000000/y", 8);
    add("file", 4);
    seal();
    assert_int_equal(run(1000), SBX_OK);
    assert_int_equal(count(SBX_REASON_NONE), 1002);
}

static void a_directory_too_many(void **state SBX_UNUSED)
{
    struct sbx_preflight *untouched = (struct sbx_preflight *)&fx, *p = untouched;
    struct sbx_pre_options options = {.max_directories = 999};

    directories_side_by_side(1000);
    seal();
    assert_int_equal(sbx_preflight_new(fx.records, fx.n, &options, &p, &fx.err), SBX_E_LIMIT);
    assert_ptr_equal(p, untouched);
    assert_int_equal(fx.err.status, SBX_E_LIMIT);
    assert_string_equal(fx.err.msg, "the listing holds more than 999 directories");
}

static void spellings_of_a_directory_are_counted_each(void **state SBX_UNUSED)
{
    directories_of_one_key(100);
    seal();
    assert_int_equal(run(99), SBX_E_LIMIT);
    assert_int_equal(run(100), SBX_OK);
}

static void a_path_too_deep_is_counted(void **state SBX_UNUSED)
{
    one_deep_path(1500000);
    seal();
    assert_int_equal(run(SBX_MAX_DIRECTORIES), SBX_E_LIMIT);
}

static void excluded_directories_are_counted(void **state SBX_UNUSED)
{
    static const char *const exclude[] = {"*/x"};
    struct sbx_pre_options options = {.exclude = exclude, .n_exclude = 1, .max_directories = 9};

    directories_side_by_side(10);
    seal();
    assert_int_equal(sbx_preflight_new(fx.records, fx.n, &options, &fx.p, &fx.err), SBX_E_LIMIT);
    options.max_directories = 10;
    assert_int_equal(sbx_preflight_new(fx.records, fx.n, &options, &fx.p, &fx.err), SBX_OK);
    assert_int_equal(count(SBX_EXCLUDE_PATTERN), 10);
}

static void malformed_paths_are_not_counted(void **state SBX_UNUSED)
{
    add("a//b/c/d", 8);
    add("a/b/../c", 8);
    add("a/\xff/c", 5);
    seal();
    assert_int_equal(run(0), SBX_OK);
}

static void many_partners_are_cut(void **state SBX_UNUSED)
{
    struct sbx_pre_with with[SBX_MAX_WITH + 1];

    memset(with, 0, sizeof(with));
    files_of_one_key(1000);
    seal();
    assert_int_equal(run(SBX_MAX_DIRECTORIES), SBX_OK);
    for (size_t i = 0; i < fx.n; i++) {
        assert_int_equal(sbx_preflight_with(fx.p, i, with), SBX_MAX_WITH);
        assert_null(with[SBX_MAX_WITH].path);
        for (size_t k = 0; k < SBX_MAX_WITH; k++) {
            assert_ptr_not_equal(with[k].path, fx.records[i].path);
            assert_true(k == 0 || with[k].path != with[k - 1].path);
        }
    }
}

/* 100,000 times 8 partners of 100,000. */
static void asking_for_partners_costs_little(void **state SBX_UNUSED)
{
    struct sbx_pre_with with[SBX_MAX_WITH];
    uint64_t from;

    files_of_one_key(100000);
    seal();
    assert_int_equal(run(SBX_MAX_DIRECTORIES), SBX_OK);
    from = cpu_ns();
    for (size_t i = 0; i < fx.n; i++)
        assert_int_equal(sbx_preflight_with(fx.p, i, with), SBX_MAX_WITH);
    assert_true(cpu_ns() - from < 2ull * SBX_NS_PER_S);
}

static uint32_t chance_state = 4711;

static uint32_t chance(uint32_t below)
{
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * below) >> 32);
}

/* A name of the listing: a spelled path to a file, or to a directory, and its keys. */
struct spelled {
    char path[64], key[128];
    size_t n, n_key;
    bool directory;
};

static void key_path(struct spelled *s)
{
    size_t at = 0;

    s->n_key = 0;
    while (at < s->n) {
        size_t n = strcspn(s->path + at, "/");

        s->n_key += sbx_pre_key_at(s->path + at, n, s->key + s->n_key);
        s->key[s->n_key++] = '/';
        at += n + 1;
    }
}

static bool same_key(const struct spelled *a, const struct spelled *b)
{
    return a->n_key == b->n_key && memcmp(a->key, b->key, a->n_key) == 0;
}

static bool same_spelling(const struct spelled *a, const struct spelled *b)
{
    return a->directory == b->directory && a->n == b->n && memcmp(a->path, b->path, a->n) == 0;
}

/* All names that record i makes: itself, and the directories above. */
static size_t spell(size_t i, struct spelled *out)
{
    size_t n = 0;

    for (size_t end = 1; end <= fx.records[i].path_len; end++) {
        bool last = end == fx.records[i].path_len;

        if (!last && fx.records[i].path[end] != '/')
            continue;
        memset(&out[n], 0, sizeof(out[n]));
        memcpy(out[n].path, fx.records[i].path, end);
        out[n].n = end;
        out[n].directory = !last;
        key_path(&out[n++]);
    }
    return n;
}

/* Every record against every other, by the definition. */
static bool aliased(size_t i)
{
    struct spelled mine[8], theirs[8];
    size_t n_mine = spell(i, mine);

    for (size_t k = 0; k < fx.n; k++) {
        size_t n_theirs = spell(k, theirs);

        for (size_t a = 0; a < n_mine; a++) {
            for (size_t b = 0; b < n_theirs; b++) {
                if (same_key(&mine[a], &theirs[b]) && !same_spelling(&mine[a], &theirs[b]))
                    return true;
            }
        }
    }
    return false;
}

/* Each partner must be another spelling of this record or of a directory above it. */
static void check_partners(size_t i)
{
    struct sbx_pre_with with[SBX_MAX_WITH];
    size_t n = sbx_preflight_with(fx.p, i, with);
    struct spelled mine[8];
    size_t n_mine = spell(i, mine);

    assert_int_equal(n > 0, sbx_preflight_reason(fx.p, i) == SBX_REFUSE_ALIAS);
    for (size_t k = 0; k < n; k++) {
        struct spelled other = {.n = with[k].path_len, .directory = with[k].directory};
        size_t hits = 0;

        memcpy(other.path, with[k].path, with[k].path_len);
        key_path(&other);
        for (size_t a = 0; a < n_mine; a++)
            hits += same_key(&mine[a], &other) && !same_spelling(&mine[a], &other);
        assert_int_equal(hits, 1);
    }
}

static void drop_duplicates(void)
{
    size_t n = 0;

    for (size_t i = 0; i < fx.n; i++) {
        if (n == 0 || by_path(&fx.records[n - 1], &fx.records[i]) != 0)
            fx.records[n++] = fx.records[i];
    }
    fx.n = n;
}

static void as_defined_on_chance(void **state SBX_UNUSED)
{
    static const char *const names[] = {"a", "A",      "b",       "B",      "c",  "d-",
                                        "e", "\u00e9", "e\u0301", "\u00c9", "ss", "\u00df"};
    size_t refused = 0, accepted = 0;

    for (int round = 0; round < 4000; round++) {
        (void)teardown(NULL);
        (void)setup(NULL);
        for (uint32_t k = 1 + chance(8); k > 0; k--) {
            char path[64] = "";
            size_t n = 0;

            for (uint32_t depth = chance(4) + 1; depth > 0; depth--) {
                const char *name = names[chance(N_ELEMENTS(names))];

                n += (size_t)snprintf(path + n, sizeof(path) - n, "%s%s", n ? "/" : "", name);
            }
            add(path, n);
        }
        seal();
        drop_duplicates();
        assert_int_equal(run(SBX_MAX_DIRECTORIES), SBX_OK);
        for (size_t i = 0; i < fx.n; i++) {
            bool want = aliased(i);

            assert_int_equal(sbx_preflight_reason(fx.p, i),
                             want ? SBX_REFUSE_ALIAS : SBX_REASON_NONE);
            check_partners(i);
            refused += want;
            accepted += !want;
        }
    }
    assert_true(refused > 1000 && accepted > 1000);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    static const struct CMUnitTest others[] = {
        TEST(a_full_listing_takes_no_time),
        TEST(a_byte_per_record_stays),
        TEST(aliases_cost_what_their_partners_need),
        TEST(as_many_directories_as_allowed),
        TEST(a_directory_too_many),
        TEST(spellings_of_a_directory_are_counted_each),
        TEST(a_path_too_deep_is_counted),
        TEST(excluded_directories_are_counted),
        TEST(malformed_paths_are_not_counted),
        TEST(many_partners_are_cut),
        TEST(asking_for_partners_costs_little),
        TEST(as_defined_on_chance),
    };
    struct CMUnitTest tests[N_ELEMENTS(shapes) + N_ELEMENTS(others)];
    size_t n = rows_add(tests, 0, ROWS(shapes), check_shape);

    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = NULL;
        tests[i].teardown_func = teardown;
    }
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        tests[n++] = others[i];
    return rows_run("aliases", tests, n);
}
