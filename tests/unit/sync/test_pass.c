/* Whole passes over a transport of the test's own, as a program may bring one: scripts run for
 * real, files are read from the disk, and a hook meddles in between. */
#include <pthread.h>
#include <stdatomic.h>

#include "sbx/sync.h"
#include "tests/support/world.h"
#include "transport/transport.h"

struct fixture {
    struct world *w; /* holds "src" and "dst" */
    char src[64], dst[64];
    struct sbx_transport *transport; /* the fake one */
    struct sbx_transport *local;     /* runs its scripts */
    struct sbx_report *report;
    struct sbx_options o;
    struct sbx_error err;

    /* how the fake behaves */
    bool serial;
    bool interleave;                                     /* all files are begun before any ends */
    bool restart;                                        /* each file is begun twice */
    bool extra;                                          /* one byte more than listed */
    bool abandon;                                        /* takes a file and never ends it */
    enum sbx_status fails;                               /* after the first file */
    void (*meddle)(struct fixture *f, const char *path); /* after a file's bytes, before its end */
    int meddled;

    /* what was seen */
    atomic_int busy, overlaps, stalled;
    int fetches, files;
};

static enum sbx_status fake_run(void *self, const struct sbx_call *call, const char *script,
                                size_t n, struct sbx_sink out, struct sbx_sink diag,
                                struct sbx_exit *ret_exit, struct sbx_error *err)
{
    struct fixture *f = self;
    enum sbx_status st;

    if (atomic_fetch_add(&f->busy, 1) > 0)
        atomic_fetch_add(&f->overlaps, 1);
    st = f->local->ops.run(f->local->self, call, script, n, out, diag, ret_exit, err);
    atomic_fetch_sub(&f->busy, 1);
    return st;
}

static void send_file(struct fixture *f, const struct sbx_queue *q, const struct sbx_wanted *file)
{
    char path[512], text[256];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%.*s", f->src, (int)file->path_len, file->path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    n = read(fd, text, sizeof(text));
    assert_true(n >= 0);
    close(fd);
    if (f->restart && !q->begin(q->ctx, file, NULL))
        (void)!q->write(q->ctx, file, "dropped", file->size < 7 ? file->size : 7, NULL);
    if (q->begin(q->ctx, file, NULL))
        return;
    for (ssize_t i = 0; i < n; i++) {
        if (q->write(q->ctx, file, text + i, 1, NULL))
            return;
    }
    if (f->extra)
        (void)!q->write(q->ctx, file, "x", 1, NULL);
}

static void end_file(struct fixture *f, const struct sbx_queue *q, const struct sbx_wanted *file)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%.*s", (int)file->path_len, file->path);
    if (f->meddle)
        f->meddle(f, path);
    q->end(q->ctx, file, SBX_FETCH_OK, NULL, 0, NULL);
}

static enum sbx_status fake_fetch(void *self, const struct sbx_call *call,
                                  const struct sbx_queue *q, struct sbx_sink diag,
                                  struct sbx_error *err)
{
    struct fixture *f = self;
    const struct sbx_wanted *file, *held[64];
    size_t n_held = 0;
    enum sbx_next next;
    enum sbx_status st = SBX_OK;

    (void)diag;
    (void)call;
    if (atomic_fetch_add(&f->busy, 1) > 0)
        atomic_fetch_add(&f->overlaps, 1);
    f->fetches++;
    while ((next = q->next(q->ctx, &file)) != SBX_NEXT_NONE) {
        if (next == SBX_NEXT_WAIT) {
            usleep(1000);
            continue;
        }
        f->files++;
        send_file(f, q, file);
        if (f->abandon)
            break;
        if (f->interleave && n_held < 64)
            held[n_held++] = file;
        else
            end_file(f, q, file);
        if (f->fails) {
            st = f->fails;
            (void)snprintf(err->msg, sizeof(err->msg), "the fake was told to fail");
            err->status = st;
            break;
        }
    }
    for (size_t i = 0; i < n_held; i++)
        end_file(f, q, held[i]);
    atomic_fetch_sub(&f->busy, 1);
    return st;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (!f || world_setup(state))
        return -1;
    f->w = *state;
    (void)snprintf(f->src, sizeof(f->src), "%s/root/src", f->w->base);
    (void)snprintf(f->dst, sizeof(f->dst), "%s/root/dst", f->w->base);
    world_mkdir(f->w, "src");
    assert_int_equal(sbx_report_new(&f->report, NULL), SBX_OK);
    assert_int_equal(sbx_transport_local_new(f->src, &f->local, NULL), SBX_OK);
    f->o = SBX_OPTIONS_INIT;
    f->o.dest = f->dst;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *world = f->w;

    sbx_report_free(f->report);
    sbx_transport_free(f->transport);
    sbx_transport_free(f->local);
    sbx_cancel_free(f->o.cancel);
    free(f);
    return world_teardown(&world);
}

static enum sbx_status pass(struct fixture *f)
{
    const struct sbx_transport_ops ops = {.version = SBX_TRANSPORT_OPS_VERSION,
                                          .serial = f->serial,
                                          .run = fake_run,
                                          .fetch = fake_fetch};

    if (!f->transport)
        assert_int_equal(sbx_transport_new(&ops, f, f->src, "fake:1", &f->transport, NULL), SBX_OK);
    sbx_report_free(f->report);
    f->report = NULL;
    assert_int_equal(sbx_report_new(&f->report, NULL), SBX_OK);
    memset(&f->err, 0, sizeof(f->err));
    return sbx_sync(f->transport, &f->o, f->report, &f->err);
}

/* Besides our state. */
static void assert_entries(const struct fixture *f, unsigned n)
{
    assert_int_equal(world_count(f->w->rootfd, "dst", ""), 1 + n);
}

static void assert_counts(const struct fixture *f, unsigned published, unsigned failed,
                          enum sbx_reason reason)
{
    assert_int_equal(sbx_report_count(f->report, SBX_PUBLISHED), published);
    assert_int_equal(sbx_report_count(f->report, SBX_FAILED) +
                         sbx_report_count(f->report, SBX_DEFERRED),
                     failed);
    if (failed)
        assert_int_equal(sbx_report_reason(f->report, reason), failed);
    assert_entries(f, published);
}

static void three_files(struct fixture *f)
{
    world_file(f->w, "src/a", "one");
    world_file(f->w, "src/b", "two");
    world_file(f->w, "src/c", "three");
}

static void files_without_a_record_are_confirmed_by_a_command(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_outcome(f->report), SBX_PASS_COMPLETE);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    assert_string_equal(world_text(f->w, "dst/c"), "three");
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_UNCHANGED), 3);
    assert_int_equal(f->files, 3);
}

static void a_serial_transport_never_runs_and_fetches_at_once(void **state)
{
    struct fixture *f = *state;
    char name[16];

    f->serial = true;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "src/f%04d", i);
        world_file(f->w, name, "x");
    }
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_PUBLISHED), 20);
    assert_int_equal(atomic_load(&f->overlaps), 0);
    assert_true(f->fetches >= 2); /* each ended for a confirmation */
}

static void batches_are_published_while_more_is_received(void **state)
{
    struct fixture *f = *state;
    char name[16];

    for (int i = 0; i < 6100; i++) {
        (void)snprintf(name, sizeof(name), "src/f%04d", i);
        world_file(f->w, name, "x");
    }
    f->o.durability = SBX_DURABILITY_NONE;
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_PUBLISHED), 6100);
    assert_int_equal(f->fetches, 1);
}

static void several_files_may_be_under_way_at_once(void **state)
{
    struct fixture *f = *state;

    f->interleave = true;
    three_files(f);
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    assert_string_equal(world_text(f->w, "dst/a"), "one");
    assert_string_equal(world_text(f->w, "dst/b"), "two");
}

static void a_file_that_begins_again_starts_over(void **state)
{
    struct fixture *f = *state;

    f->restart = true;
    three_files(f);
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    assert_string_equal(world_text(f->w, "dst/c"), "three");
    assert_int_equal(sbx_report_received(f->report), 2 * (3 + 3 + 5)); /* what was dropped counts */
}

static void rewrite_b_once(struct fixture *f, const char *path)
{
    if (strcmp(path, "b") == 0 && f->meddled++ == 0)
        world_file(f->w, "src/b", "TWO");
}

static void a_file_that_changed_is_fetched_once_more(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->meddle = rewrite_b_once;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    assert_string_equal(world_text(f->w, "dst/b"), "TWO");
    assert_int_equal(f->files, 4);
}

static void rewrite_b_always(struct fixture *f, const char *path)
{
    if (strcmp(path, "b") == 0)
        world_file(f->w, "src/b", f->meddled++ % 2 ? "two" : "TWO");
}

static void a_file_that_keeps_changing_fails_and_its_old_copy_stays(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    assert_int_equal(pass(f), SBX_OK);
    world_file(f->w, "src/b", "new");
    f->meddle = rewrite_b_always;
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_outcome(f->report), SBX_PASS_PARTIAL);
    assert_int_equal(sbx_report_reason(f->report, SBX_FAIL_CHANGED), 1);
    assert_int_equal(sbx_report_count(f->report, SBX_UNCHANGED), 2);
    assert_string_equal(world_text(f->w, "dst/b"), "two");
    assert_entries(f, 3);
}

static void a_changing_file_is_published_if_that_is_allowed_and_never_unchanged(void **state)
{
    struct fixture *f = *state;
    bool unstable = false;

    three_files(f);
    f->meddle = rewrite_b_always;
    f->o.allow_changing = true;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    for (size_t i = 0; i < sbx_report_files(f->report); i++)
        unstable |= sbx_report_file(f->report, i)->unstable;
    assert_true(unstable);
    f->meddle = NULL;
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_PUBLISHED), 1);
    assert_int_equal(sbx_report_count(f->report, SBX_UNCHANGED), 2);
}

static void chmod_b_always(struct fixture *f, const char *path)
{
    if (strcmp(path, "b") == 0)
        assert_int_equal(fchmodat(f->w->rootfd, "src/b", f->meddled++ % 2 ? 0644 : 0600, 0), 0);
}

static void a_ctime_that_moves_alone_is_settled_by_a_second_equal_read(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->meddle = chmod_b_always;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    assert_true(sbx_report_warned(f->report, SBX_WARN_CTIME_MOVED));
    assert_int_equal(f->files, 4);
}

static void a_ctime_that_moves_can_be_ignored(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->meddle = chmod_b_always;
    f->o.ignore_ctime = true;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    assert_int_equal(f->files, 3);
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_UNCHANGED), 3);
}

static void unlink_b(struct fixture *f, const char *path)
{
    if (strcmp(path, "b") == 0)
        assert_int_equal(unlinkat(f->w->rootfd, "src/b", 0), 0);
}

static void a_file_that_is_gone_at_its_confirmation_has_vanished(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->meddle = unlink_b;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 2, 1, SBX_FAIL_VANISHED);
}

static void an_unconfirmed_file_says_so(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->meddle = rewrite_b_always;
    f->o.no_confirm = true;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 3, 0, SBX_REASON_NONE);
    for (size_t i = 0; i < 3; i++)
        assert_true(sbx_report_file(f->report, i)->unconfirmed);
}

static void more_bytes_than_listed_are_a_change(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->extra = true;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 0, 3, SBX_FAIL_CHANGED);
}

static void a_file_that_is_never_ended_is_lost(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->abandon = true;
    assert_int_equal(pass(f), SBX_OK);
    assert_counts(f, 0, 3, SBX_DEFER_SOURCE_LOST);
}

static void a_source_lost_in_mid_transfer_is_a_partial_pass_with_an_error(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    f->fails = SBX_E_UNREACHABLE;
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_outcome(f->report), SBX_PASS_PARTIAL);
    assert_counts(f, 1, 2, SBX_DEFER_SOURCE_LOST);
    assert_int_equal(sbx_report_error(f->report)->status, SBX_E_UNREACHABLE);
    f->fails = SBX_OK;
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_outcome(f->report), SBX_PASS_COMPLETE);
    assert_int_equal(sbx_report_count(f->report, SBX_UNCHANGED), 1);
}

static void files_of_another_identity_are_never_unchanged(void **state)
{
    struct fixture *f = *state;

    three_files(f);
    assert_int_equal(pass(f), SBX_OK);
    f->o.identity = "another sandbox";
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_PUBLISHED), 3);
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(sbx_report_count(f->report, SBX_UNCHANGED), 3);
}

/* Waits for the first file, and cancels while the others are still to come. */
static void *cancel_soon(void *arg)
{
    struct fixture *f = arg;

    while (atomic_load(&f->stalled) == 0)
        usleep(1000);
    sbx_cancel(f->o.cancel);
    return NULL;
}

static void stall(struct fixture *f, const char *path)
{
    (void)path;
    if (atomic_fetch_add(&f->stalled, 1) > 0)
        usleep(100000);
}

static void cancelling_from_another_thread_keeps_what_is_published(void **state)
{
    struct fixture *f = *state;
    struct sbx_cancel *cancel;
    pthread_t thread;
    char name[16];

    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof(name), "src/f%02d", i);
        world_file(f->w, name, "x");
    }
    assert_int_equal(sbx_cancel_new(&cancel, NULL), SBX_OK);
    f->o.cancel = cancel;
    f->meddle = stall;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, f), 0);
    assert_int_equal(pass(f), SBX_E_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&f->stalled) < 25); /* it was not fetched to its end */
    assert_int_equal(sbx_report_outcome(f->report), SBX_PASS_PARTIAL);
    assert_int_equal(sbx_report_listed(f->report), 50);
    assert_int_equal(sbx_report_count(f->report, SBX_DEFERRED), 50);
    assert_int_equal(sbx_report_reason(f->report, SBX_DEFER_CANCELLED), 50);
    assert_entries(f, 0);
}

static void *whole_pass(void *arg)
{
    struct fixture *f = arg;

    return pass(f) == SBX_OK ? f : NULL;
}

static void two_passes_may_run_at_once_in_one_process(void **state)
{
    struct fixture *f = *state;
    void *other_state, *result;
    pthread_t thread;
    struct fixture *other;

    assert_int_equal(setup(&other_state), 0);
    other = other_state;
    three_files(f);
    three_files(other);
    assert_int_equal(pthread_create(&thread, NULL, whole_pass, other), 0);
    assert_int_equal(pass(f), SBX_OK);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, other);
    assert_string_equal(world_text(other->w, "dst/a"), "one");
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
