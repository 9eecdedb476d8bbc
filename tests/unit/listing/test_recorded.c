/* What real tools printed (fixtures/listings), delivered in many ways. */
#include <stdio.h>

#include "base/limits.h"
#include "base/quote.h"
#include "listing/list.h"
#include "tests/support/rows.h"
#include "tests/unit/listing/stream.h"

struct fixture {
    struct sbx_buf raw, text, want, got; /* owned */
    struct sbx_list *list;               /* owned */
    FILE *file;                          /* owned */
};

static struct fixture fx;

static int setup(void **state)
{
    (void)state;
    fx.raw = fx.text = fx.want = fx.got = SBX_BUF_INIT(SBX_MIB);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sbx_buf_done(&fx.raw);
    sbx_buf_done(&fx.text);
    sbx_buf_done(&fx.want);
    sbx_buf_done(&fx.got);
    sbx_list_free(fx.list);
    fx.list = NULL;
    if (fx.file)
        (void)fclose(fx.file);
    fx.file = NULL;
    return 0;
}

static void read_fixture(const char *name, struct sbx_buf *ret)
{
    char path[512], part[4096];
    size_t n;

    (void)snprintf(path, sizeof(path), "%s/listings/%s", FIXTURES, name);
    fx.file = fopen(path, "rbe");
    assert_non_null(fx.file);
    while ((n = fread(part, 1, sizeof(part), fx.file)) > 0)
        must(sbx_buf_add(ret, part, n, NULL));
    must(sbx_buf_add(ret, "", 0, NULL));
    (void)fclose(fx.file);
    fx.file = NULL;
}

/* How a channel may deliver lines. */
enum ends { AS_RECORDED, CRLF, CR, NO_BLANKS, MANY_BLANKS, LAST_LOST, N_ENDS };

static void deliver(enum ends ends)
{
    static const char *const eol[] = {"\n", "\r\n", "\r", "\n", "\r\n \n\n", "\n"};
    struct sbx_buf *out = &fx.text;
    size_t n;

    sbx_buf_clear(out);
    if (ends == AS_RECORDED) {
        must(sbx_buf_add(out, fx.raw.data, fx.raw.len, NULL));
        return;
    }
    for (size_t i = 0; i < fx.raw.len; i += n + 1) {
        n = strcspn(fx.raw.data + i, "\r\n");
        must(sbx_buf_add(out, fx.raw.data + i, n, NULL));
        if (n > 0 || ends != NO_BLANKS)
            add(out, eol[ends]);
    }
    if (ends == LAST_LOST)
        out->len--;
}

static void show(void)
{
    size_t n;
    const struct sbx_record *r = sbx_list_records(fx.list, &n);

    sbx_buf_clear(&fx.got);
    add(&fx.got, "");
    for (size_t i = 0; i < n; i++)
        must(sbx_buf_printf(&fx.got, NULL, "%llu %lld.%09u %lld.%09u %s\n",
                            (unsigned long long)r[i].size, (long long)r[i].mtime.sec,
                            r[i].mtime.nsec, (long long)r[i].ctime.sec, r[i].ctime.nsec,
                            SBX_QUOTE_N(r[i].path, r[i].path_len)));
}

static void read_cut(size_t first, size_t piece)
{
    const struct sbx_list_limits limits = {SBX_MIB, 100};
    struct sbx_error err = {0};
    size_t n = first;

    sbx_list_free(fx.list);
    fx.list = NULL;
    must(sbx_list_new(NONCE, &limits, &fx.list, NULL));
    for (size_t at = 0; at < fx.text.len; at += n, n = piece) {
        n = n < fx.text.len - at ? n : fx.text.len - at;
        assert_int_equal(sbx_list_write(fx.list, fx.text.data + at, n, &err), SBX_OK);
    }
    assert_int_equal(sbx_list_end(fx.list, (struct sbx_exit){SBX_EXIT_EXITED, 0}, &err), SBX_OK);
}

static const struct recorded_row {
    const char *why;
    const char *file, *want; /* want NULL: no records */
    const char *tools;
    enum sbx_listing_state state;
    uint64_t skipped;
} rows[] = {
    {"GNU tools", "gnu.out", "tree.txt", "printf,gzip,base64", SBX_LISTING_COMPLETE, 1},
    {"BusyBox", "busybox.out", "tree.txt", "stat,gzip,base64", SBX_LISTING_COMPLETE, 0},
    {"toybox", "toybox.out", "tree.txt", "stat,plain,base64", SBX_LISTING_COMPLETE, 0},
    {"neither gzip nor base64", "bare.out", "tree.txt", "stat,plain,hex", SBX_LISTING_COMPLETE, 0},
    {"a greeting before", "greeting.out", "tree.txt", "printf,gzip,base64", SBX_LISTING_COMPLETE,
     1},
    {"through a terminal", "terminal.out", "tree.txt", "printf,gzip,base64", SBX_LISTING_COMPLETE,
     1},
    {"an unreadable directory", "unreadable.out", "unreadable.txt", "printf,gzip,base64",
     SBX_LISTING_WARNED, 1},
    {"an unreadable directory, BusyBox", "unreadable-busybox.out", "unreadable.txt",
     "stat,gzip,base64", SBX_LISTING_WARNED, 0},
    {"an empty directory", "empty.out", NULL, "printf,gzip,base64", SBX_LISTING_COMPLETE, 0},
    {"a missing directory", "missing.out", NULL, "printf,gzip,base64", SBX_LISTING_MISSING, 0},
};

static void check_recorded(void **state)
{
    const struct recorded_row *row = *state;

    read_fixture(row->file, &fx.raw);
    add(&fx.want, "");
    if (row->want)
        read_fixture(row->want, &fx.want);
    for (int ends = AS_RECORDED; ends < N_ENDS; ends++) {
        deliver((enum ends)ends);
        for (size_t at = 0; at <= fx.text.len + 1; at++) {
            if (at <= fx.text.len) /* in two */
                read_cut(at, fx.text.len);
            else
                read_cut(1, 1);
            show();
            assert_string_equal(fx.got.data, fx.want.data);
        }
        assert_int_equal(sbx_list_state(fx.list), row->state);
        assert_string_equal(sbx_list_frame(fx.list)->tools, row->tools);
        assert_int_equal(sbx_list_frame(fx.list)->skipped, row->skipped);
    }
}

/* Whatever is missing from the end of a recording, but for its last line end, is missed. */
static void check_cut(void **state)
{
    const struct recorded_row *row = *state;
    const struct sbx_list_limits limits = {SBX_MIB, 100};
    size_t n;

    if (row->state == SBX_LISTING_MISSING)
        return;
    read_fixture(row->file, &fx.raw);
    while (fx.raw.data[fx.raw.len - 1] == '\n' || fx.raw.data[fx.raw.len - 1] == '\r')
        fx.raw.len--;
    for (size_t len = 0; len < fx.raw.len; len++) {
        struct sbx_error err = {0};

        sbx_list_free(fx.list);
        fx.list = NULL;
        must(sbx_list_new(NONCE, &limits, &fx.list, NULL));
        (void)sbx_list_write(fx.list, fx.raw.data, len, &err);
        assert_int_equal(sbx_list_end(fx.list, (struct sbx_exit){SBX_EXIT_EXITED, 0}, &err),
                         SBX_E_REMOTE);
        assert_int_equal(sbx_list_state(fx.list), SBX_LISTING_DAMAGED);
        (void)sbx_list_records(fx.list, &n);
        assert_int_equal(n, 0);
    }
}

int main(void)
{
    struct CMUnitTest tests[2 * N_ELEMENTS(rows)];
    char names[N_ELEMENTS(rows)][80];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(rows), check_recorded);
    n = rows_add(tests, n, ROWS(rows), check_cut);
    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = setup;
        tests[i].teardown_func = teardown;
    }
    for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s, cut short", rows[i].why);
        tests[N_ELEMENTS(rows) + i].name = names[i];
    }
    return rows_run("recorded listings", tests, n);
}
