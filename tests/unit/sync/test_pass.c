/* Whole passes over a transport of the test's own, as a program may bring one: scripts run for
 * real, files are read from the disk, and a hook meddles in between. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sbx/sync.h"
#include "transport/transport.h"

struct world {
    char top[64], src[96], dst[96];
    struct sbx_transport *transport; /* the fake one */
    struct sbx_transport *local;     /* runs its scripts */
    struct sbx_report *report;
    struct sbx_options o;
    struct sbx_error err;

    /* how the fake behaves */
    bool serial;
    bool interleave;                                   /* all files are begun before any is ended */
    bool restart;                                      /* each file is begun twice */
    bool extra;                                        /* one byte more than listed */
    bool abandon;                                      /* takes a file and never ends it */
    enum sbx_status fails;                             /* after the first file */
    void (*meddle)(struct world *w, const char *path); /* after a file's bytes, before its end */
    int meddled;

    /* what was seen */
    atomic_int busy, overlaps, stalled;
    int fetches, files;
};

static void path_of(const struct world *w, const char *dir, const char *name, char *out)
{
    (void)w;
    (void)snprintf(out, 512, "%s/%s", dir, name);
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[512];
    FILE *f;

    path_of(NULL, dir, name, path);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static const char *get(const char *dir, const char *name)
{
    static char text[256];
    char path[512];
    FILE *f;

    path_of(NULL, dir, name, path);
    f = fopen(path, "re");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

static enum sbx_status fake_run(void *self, const struct sbx_call *call, const char *script,
                                size_t n, struct sbx_sink out, struct sbx_sink diag,
                                struct sbx_exit *ret_exit, struct sbx_error *err)
{
    struct world *w = self;
    enum sbx_status st;

    if (atomic_fetch_add(&w->busy, 1) > 0)
        atomic_fetch_add(&w->overlaps, 1);
    st = w->local->ops.run(w->local->self, call, script, n, out, diag, ret_exit, err);
    atomic_fetch_sub(&w->busy, 1);
    return st;
}

static void send_file(struct world *w, const struct sbx_queue *q, const struct sbx_wanted *f)
{
    char path[512], text[256];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%.*s", w->src, (int)f->path_len, f->path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    n = read(fd, text, sizeof(text));
    assert_true(n >= 0);
    close(fd);
    if (w->restart && !q->begin(q->ctx, f, NULL))
        (void)!q->write(q->ctx, f, "dropped", f->size < 7 ? f->size : 7, NULL);
    if (q->begin(q->ctx, f, NULL))
        return;
    for (ssize_t i = 0; i < n; i++) {
        if (q->write(q->ctx, f, text + i, 1, NULL))
            return;
    }
    if (w->extra)
        (void)!q->write(q->ctx, f, "x", 1, NULL);
}

static void end_file(struct world *w, const struct sbx_queue *q, const struct sbx_wanted *f)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%.*s", (int)f->path_len, f->path);
    if (w->meddle)
        w->meddle(w, path);
    q->end(q->ctx, f, SBX_FETCH_OK, NULL, 0, NULL);
}

static enum sbx_status fake_fetch(void *self, const struct sbx_call *call,
                                  const struct sbx_queue *q, struct sbx_sink diag,
                                  struct sbx_error *err)
{
    struct world *w = self;
    const struct sbx_wanted *f, *held[64];
    size_t n_held = 0;
    enum sbx_next next;
    enum sbx_status st = SBX_OK;

    (void)diag;
    (void)call;
    if (atomic_fetch_add(&w->busy, 1) > 0)
        atomic_fetch_add(&w->overlaps, 1);
    w->fetches++;
    while ((next = q->next(q->ctx, &f)) != SBX_NEXT_NONE) {
        if (next == SBX_NEXT_WAIT) {
            usleep(1000);
            continue;
        }
        w->files++;
        send_file(w, q, f);
        if (w->abandon)
            break;
        if (w->interleave && n_held < 64)
            held[n_held++] = f;
        else
            end_file(w, q, f);
        if (w->fails) {
            st = w->fails;
            (void)snprintf(err->msg, sizeof(err->msg), "the fake was told to fail");
            err->status = st;
            break;
        }
    }
    for (size_t i = 0; i < n_held; i++)
        end_file(w, q, held[i]);
    atomic_fetch_sub(&w->busy, 1);
    return st;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    strcpy(w->top, "/tmp/sbx-pass.XXXXXX"); /* banned-ok: fits, and is a literal */
    assert_non_null(mkdtemp(w->top));
    (void)snprintf(w->src, sizeof(w->src), "%s/src", w->top);
    (void)snprintf(w->dst, sizeof(w->dst), "%s/dst", w->top);
    assert_int_equal(mkdir(w->src, 0777), 0);
    assert_int_equal(sbx_report_new(&w->report, NULL), SBX_OK);
    assert_int_equal(sbx_transport_local_new(w->src, &w->local, NULL), SBX_OK);
    w->o = SBX_OPTIONS_INIT;
    w->o.dest = w->dst;
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct world *w = *state;

    sbx_report_free(w->report);
    sbx_transport_free(w->transport);
    sbx_transport_free(w->local);
    assert_int_equal(nftw(w->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(w);
    return 0;
}

static enum sbx_status pass(struct world *w)
{
    const struct sbx_transport_ops ops = {.version = SBX_TRANSPORT_OPS_VERSION,
                                          .serial = w->serial,
                                          .run = fake_run,
                                          .fetch = fake_fetch};

    if (!w->transport)
        assert_int_equal(sbx_transport_new(&ops, w, w->src, "fake:1", &w->transport, NULL), SBX_OK);
    sbx_report_free(w->report);
    w->report = NULL;
    assert_int_equal(sbx_report_new(&w->report, NULL), SBX_OK);
    memset(&w->err, 0, sizeof(w->err));
    return sbx_sync(w->transport, &w->o, w->report, &w->err);
}

/* Nothing but what was published and our state is in the destination. */
static size_t entries(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void assert_counts(const struct world *w, unsigned published, unsigned failed,
                          enum sbx_reason reason)
{
    assert_int_equal(sbx_report_count(w->report, SBX_PUBLISHED), published);
    assert_int_equal(sbx_report_count(w->report, SBX_FAILED) +
                         sbx_report_count(w->report, SBX_DEFERRED),
                     failed);
    if (failed)
        assert_int_equal(sbx_report_reason(w->report, reason), failed);
    assert_int_equal(entries(w->dst), 1 + published);
}

static void three_files(struct world *w)
{
    put(w->src, "a", "one");
    put(w->src, "b", "two");
    put(w->src, "c", "three");
}

static void files_without_a_record_are_confirmed_by_a_command(void **state)
{
    struct world *w = *state;

    three_files(w);
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_outcome(w->report), SBX_PASS_COMPLETE);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    assert_string_equal(get(w->dst, "c"), "three");
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_UNCHANGED), 3);
    assert_int_equal(w->files, 3);
}

static void a_serial_transport_never_runs_and_fetches_at_once(void **state)
{
    struct world *w = *state;
    char name[16];

    w->serial = true;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "f%04d", i);
        put(w->src, name, "x");
    }
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_PUBLISHED), 20);
    assert_int_equal(atomic_load(&w->overlaps), 0);
    assert_true(w->fetches >= 2); /* each ended for a confirmation */
}

static void batches_are_published_while_more_is_received(void **state)
{
    struct world *w = *state;
    char name[16];

    for (int i = 0; i < 6100; i++) {
        (void)snprintf(name, sizeof(name), "f%04d", i);
        put(w->src, name, "x");
    }
    w->o.durability = SBX_DURABILITY_NONE;
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_PUBLISHED), 6100);
    assert_int_equal(w->fetches, 1);
}

static void several_files_may_be_under_way_at_once(void **state)
{
    struct world *w = *state;

    w->interleave = true;
    three_files(w);
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    assert_string_equal(get(w->dst, "a"), "one");
    assert_string_equal(get(w->dst, "b"), "two");
}

static void a_file_that_begins_again_starts_over(void **state)
{
    struct world *w = *state;

    w->restart = true;
    three_files(w);
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    assert_string_equal(get(w->dst, "c"), "three");
    assert_int_equal(sbx_report_received(w->report), 2 * (3 + 3 + 5)); /* what was dropped counts */
}

static void rewrite_b_once(struct world *w, const char *path)
{
    if (strcmp(path, "b") == 0 && w->meddled++ == 0)
        put(w->src, "b", "TWO");
}

static void a_file_that_changed_is_fetched_once_more(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->meddle = rewrite_b_once;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    assert_string_equal(get(w->dst, "b"), "TWO");
    assert_int_equal(w->files, 4);
}

static void rewrite_b_always(struct world *w, const char *path)
{
    if (strcmp(path, "b") == 0)
        put(w->src, "b", w->meddled++ % 2 ? "two" : "TWO");
}

static void a_file_that_keeps_changing_fails_and_its_old_copy_stays(void **state)
{
    struct world *w = *state;

    three_files(w);
    assert_int_equal(pass(w), SBX_OK);
    put(w->src, "b", "new");
    w->meddle = rewrite_b_always;
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_outcome(w->report), SBX_PASS_PARTIAL);
    assert_int_equal(sbx_report_reason(w->report, SBX_FAIL_CHANGED), 1);
    assert_int_equal(sbx_report_count(w->report, SBX_UNCHANGED), 2);
    assert_string_equal(get(w->dst, "b"), "two");
    assert_int_equal(entries(w->dst), 4);
}

static void a_changing_file_is_published_if_that_is_allowed_and_never_unchanged(void **state)
{
    struct world *w = *state;
    bool unstable = false;

    three_files(w);
    w->meddle = rewrite_b_always;
    w->o.allow_changing = true;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    for (size_t i = 0; i < sbx_report_files(w->report); i++)
        unstable |= sbx_report_file(w->report, i)->unstable;
    assert_true(unstable);
    w->meddle = NULL;
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_PUBLISHED), 1);
    assert_int_equal(sbx_report_count(w->report, SBX_UNCHANGED), 2);
}

static void chmod_b_always(struct world *w, const char *path)
{
    char name[512];

    path_of(w, w->src, "b", name);
    if (strcmp(path, "b") == 0)
        assert_int_equal(chmod(name, w->meddled++ % 2 ? 0644 : 0600), 0);
}

static void a_ctime_that_moves_alone_is_settled_by_a_second_equal_read(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->meddle = chmod_b_always;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    assert_true(sbx_report_warned(w->report, SBX_WARN_CTIME_MOVED));
    assert_int_equal(w->files, 4);
}

static void a_ctime_that_moves_can_be_ignored(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->meddle = chmod_b_always;
    w->o.ignore_ctime = true;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    assert_int_equal(w->files, 3);
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_UNCHANGED), 3);
}

static void unlink_b(struct world *w, const char *path)
{
    char name[512];

    path_of(w, w->src, "b", name);
    if (strcmp(path, "b") == 0)
        assert_int_equal(unlink(name), 0);
}

static void a_file_that_is_gone_at_its_confirmation_has_vanished(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->meddle = unlink_b;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 2, 1, SBX_FAIL_VANISHED);
}

static void an_unconfirmed_file_says_so(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->meddle = rewrite_b_always;
    w->o.no_confirm = true;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 3, 0, SBX_REASON_NONE);
    for (size_t i = 0; i < 3; i++)
        assert_true(sbx_report_file(w->report, i)->unconfirmed);
}

static void more_bytes_than_listed_are_a_change(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->extra = true;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 0, 3, SBX_FAIL_CHANGED);
}

static void a_file_that_is_never_ended_is_lost(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->abandon = true;
    assert_int_equal(pass(w), SBX_OK);
    assert_counts(w, 0, 3, SBX_DEFER_SOURCE_LOST);
}

static void a_source_lost_in_mid_transfer_is_a_partial_pass_with_an_error(void **state)
{
    struct world *w = *state;

    three_files(w);
    w->fails = SBX_E_UNREACHABLE;
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_outcome(w->report), SBX_PASS_PARTIAL);
    assert_counts(w, 1, 2, SBX_DEFER_SOURCE_LOST);
    assert_int_equal(sbx_report_error(w->report)->status, SBX_E_UNREACHABLE);
    w->fails = SBX_OK;
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_outcome(w->report), SBX_PASS_COMPLETE);
    assert_int_equal(sbx_report_count(w->report, SBX_UNCHANGED), 1);
}

static void files_of_another_identity_are_never_unchanged(void **state)
{
    struct world *w = *state;

    three_files(w);
    assert_int_equal(pass(w), SBX_OK);
    w->o.identity = "another sandbox";
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_PUBLISHED), 3);
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(sbx_report_count(w->report, SBX_UNCHANGED), 3);
}

/* Waits for the first file, and cancels while the others are still to come. */
static void *cancel_soon(void *arg)
{
    struct world *w = arg;

    while (atomic_load(&w->stalled) == 0)
        usleep(1000);
    sbx_cancel(w->o.cancel);
    return NULL;
}

static void stall(struct world *w, const char *path)
{
    (void)path;
    if (atomic_fetch_add(&w->stalled, 1) > 0)
        usleep(100000);
}

static void cancelling_from_another_thread_keeps_what_is_published(void **state)
{
    struct world *w = *state;
    struct sbx_cancel *cancel;
    pthread_t thread;
    char name[16];

    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof(name), "f%02d", i);
        put(w->src, name, "x");
    }
    assert_int_equal(sbx_cancel_new(&cancel, NULL), SBX_OK);
    w->o.cancel = cancel;
    w->meddle = stall;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, w), 0);
    assert_int_equal(pass(w), SBX_E_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&w->stalled) < 25); /* it was not fetched to its end */
    assert_int_equal(sbx_report_outcome(w->report), SBX_PASS_PARTIAL);
    assert_int_equal(sbx_report_listed(w->report), 50);
    assert_int_equal(sbx_report_count(w->report, SBX_DEFERRED), 50);
    assert_int_equal(sbx_report_reason(w->report, SBX_DEFER_CANCELLED), 50);
    assert_int_equal(entries(w->dst), 1);
    sbx_cancel_free(cancel);
}

static void *whole_pass(void *arg)
{
    struct world *w = arg;

    return pass(w) == SBX_OK ? w : NULL;
}

static void two_passes_may_run_at_once_in_one_process(void **state)
{
    struct world *w = *state;
    void *other_state, *result;
    pthread_t thread;
    struct world *other;

    assert_int_equal(setup(&other_state), 0);
    other = other_state;
    three_files(w);
    three_files(other);
    assert_int_equal(pthread_create(&thread, NULL, whole_pass, other), 0);
    assert_int_equal(pass(w), SBX_OK);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, other);
    assert_string_equal(get(other->dst, "a"), "one");
    teardown(&other_state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_without_a_record_are_confirmed_by_a_command),
        TEST(a_serial_transport_never_runs_and_fetches_at_once),
        TEST(batches_are_published_while_more_is_received),
        TEST(several_files_may_be_under_way_at_once),
        TEST(a_file_that_begins_again_starts_over),
        TEST(a_file_that_changed_is_fetched_once_more),
        TEST(a_file_that_keeps_changing_fails_and_its_old_copy_stays),
        TEST(a_changing_file_is_published_if_that_is_allowed_and_never_unchanged),
        TEST(a_ctime_that_moves_alone_is_settled_by_a_second_equal_read),
        TEST(a_ctime_that_moves_can_be_ignored),
        TEST(a_file_that_is_gone_at_its_confirmation_has_vanished),
        TEST(an_unconfirmed_file_says_so),
        TEST(more_bytes_than_listed_are_a_change),
        TEST(a_file_that_is_never_ended_is_lost),
        TEST(a_source_lost_in_mid_transfer_is_a_partial_pass_with_an_error),
        TEST(files_of_another_identity_are_never_unchanged),
        TEST(cancelling_from_another_thread_keeps_what_is_published),
        TEST(two_passes_may_run_at_once_in_one_process),
    };

    if (sbx_init(NULL))
        return 1;
    return cmocka_run_group_tests_name("a pass", tests, NULL, NULL);
}
