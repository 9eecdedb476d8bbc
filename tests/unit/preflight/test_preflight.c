#include "preflight/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "tests/support/rows.h"
#include "tests/unit/preflight/names.h"

#define GROUPS_MAX 128
#define RECORDS_MAX 16
#define WITH_MAX 8
#define OPTIONS_MAX 4

struct line {
    const char *path; /* bytes */
    size_t path_len;
    char verdict[32];
    uint32_t flags;
    const char *with[WITH_MAX]; /* bytes, terminated; a directory's end in a slash */
    size_t n_with;
};

/* A group of listings.txt. */
static struct group {
    const char *why;
    struct line lines[RECORDS_MAX];
    size_t n;
    const char *exclude[OPTIONS_MAX];
    size_t n_exclude;
    enum sbx_names names;
    int takes; /* -1: not asked */
} groups[GROUPS_MAX];

static struct sbx_arena arena = {.max = 64u << 20};

static void broken(const char *line)
{
    print_message("listings.txt: cannot read: %s\n", line);
    exit(1);
}

static const char *keep(const char *bytes, size_t n)
{
    const char *copy = NULL;

    if (sbx_arena_copy(&arena, bytes, n, &copy, NULL))
        broken(bytes);
    return copy;
}

/* The bytes that a word spells. */
static const char *keep_bytes(const char *word, size_t *ret_n)
{
    struct sbx_buf bytes = SBX_BUF_INIT(NAMES_MAX);
    const char *copy;

    if (!names_bytes(word, &bytes))
        broken(word);
    copy = keep(bytes.data, bytes.len);
    *ret_n = bytes.len;
    sbx_buf_done(&bytes);
    return copy;
}

static void read_with(struct line *l, char *list)
{
    char *save = NULL;

    for (char *w = strtok_r(list, ",", &save); w; /* banned-ok: trusted fixture */
         w = strtok_r(NULL, ",", &save)) {        /* banned-ok: trusted fixture */
        size_t n;

        if (l->n_with == WITH_MAX)
            broken(w);
        l->with[l->n_with++] = keep_bytes(w, &n);
    }
}

static void read_record(struct group *g, char *text)
{
    struct line *l = &g->lines[g->n];
    char *save = NULL, *word = strtok_r(text, " ", &save); /* banned-ok: trusted fixture */

    if (!word || g->n == RECORDS_MAX)
        broken(text);
    l->path = keep_bytes(word, &l->path_len);
    word = strtok_r(NULL, " ", &save); /* banned-ok: trusted fixture */
    if (!word || strlen(word) >= sizeof(l->verdict) || names_reason(word) == SBX_REASONS)
        broken(text);
    memcpy(l->verdict, word, strlen(word) + 1);
    while ((word = strtok_r(NULL, " ", &save))) { /* banned-ok: trusted fixture */
        if (strcmp(word, "bad-time") == 0)
            l->flags |= SBX_RECORD_BAD_TIME;
        else if (strcmp(word, "conflict") == 0)
            l->flags |= SBX_RECORD_CONFLICT;
        else if (strncmp(word, "with=", 5) == 0)
            read_with(l, word + 5);
        else
            broken(word);
    }
    g->n++;
}

static void read_line(struct group *g, char *text)
{
    if (strcmp(text, "names posix") == 0)
        g->names = SBX_NAMES_POSIX;
    else if (strncmp(text, "exclude ", 8) == 0 && g->n_exclude < OPTIONS_MAX)
        g->exclude[g->n_exclude++] = keep(text + 8, strlen(text + 8));
    else if (strncmp(text, "takes ", 6) == 0)
        g->takes = text[6] - '0';
    else
        read_record(g, text);
}

static size_t read_groups(void)
{
    FILE *f = fopen(FIXTURES "/names/listings.txt", "re");
    char line[4096];
    size_t n = 0;

    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (line[0] == '=' && n < GROUPS_MAX) {
            groups[n].takes = -1;
            groups[n++].why = keep(line + 2, strlen(line + 2));
        } else if (n > 0) {
            read_line(&groups[n - 1], line);
        } else {
            broken(line);
        }
    }
    if (f)
        (void)fclose(f);
    return n;
}

static struct fixture {
    struct sbx_record records[RECORDS_MAX];
    struct sbx_preflight *p;
} fx;

static int teardown(void **state SBX_UNUSED)
{
    sbx_preflight_free(fx.p);
    fx.p = NULL;
    return 0;
}

static bool names_it(const struct sbx_pre_with *with, const char *want)
{
    size_t n = strlen(want);

    if (n > 0 && want[n - 1] == '/')
        return with->directory && with->path_len == n - 1 && memcmp(with->path, want, n - 1) == 0;
    return !with->directory && with->path_len == n && memcmp(with->path, want, n) == 0;
}

static void check_with(const struct line *l, size_t i)
{
    struct sbx_pre_with with[SBX_MAX_WITH];
    size_t n = sbx_preflight_with(fx.p, i, with), found = 0;

    assert_int_equal(n, l->n_with);
    for (size_t k = 0; k < n; k++) {
        for (size_t m = 0; m < n; m++)
            found += names_it(&with[m], l->with[k]);
    }
    assert_int_equal(found, n);
}

static void check_group(void **state)
{
    const struct group *g = *state;
    struct sbx_pre_options options = {g->names, g->exclude, g->n_exclude, SBX_MAX_DIRECTORIES};

    for (size_t i = 0; i < g->n; i++)
        fx.records[i] = (struct sbx_record){.path = g->lines[i].path,
                                            .path_len = (uint32_t)g->lines[i].path_len,
                                            .flags = g->lines[i].flags};
    assert_int_equal(sbx_preflight_new(fx.records, g->n, &options, &fx.p, NULL), SBX_OK);
    for (size_t i = 0; i < g->n; i++) {
        assert_int_equal(sbx_preflight_reason(fx.p, i), names_reason(g->lines[i].verdict));
        check_with(&g->lines[i], i);
    }
    if (g->takes >= 0)
        assert_int_equal(sbx_preflight_posix_would_take(fx.p), (uint64_t)g->takes);
}

static void no_records_at_all(void **state SBX_UNUSED)
{
    struct sbx_pre_options options = {.max_directories = 0};
    struct sbx_pre_with with[SBX_MAX_WITH];

    assert_int_equal(sbx_preflight_new(NULL, 0, &options, &fx.p, NULL), SBX_OK);
    assert_int_equal(sbx_preflight_with(fx.p, 0, with), 0);
    assert_int_equal(sbx_preflight_posix_would_take(fx.p), 0);
}

int main(void)
{
    static struct CMUnitTest tests[GROUPS_MAX + 1];
    size_t n_groups = read_groups(), n;
    int failed;

    n = rows_add(tests, 0, groups, n_groups, sizeof(groups[0]), check_group);
    tests[n++] = (struct CMUnitTest){"no records at all", no_records_at_all, NULL, NULL, NULL};
    for (size_t i = 0; i < n; i++)
        tests[i].teardown_func = teardown;
    failed = n_groups < 30 ? 1 : rows_run("verdicts on listings", tests, n);
    sbx_arena_done(&arena);
    return failed;
}
