/* What the transfer thread and the conductor do at the same time to one pass. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "sync/pass.h"

#define ITEMS 20000u

static struct sbx_pass p;
static struct sbx_options o;

static int setup(void **state)
{
    (void)state;
    o.report_limit = ITEMS;
    p.o = &o;
    p.n = ITEMS;
    p.items = calloc(ITEMS, sizeof(*p.items));
    p.records = calloc(ITEMS, sizeof(*p.records));
    assert_non_null(p.items);
    assert_non_null(p.records);
    for (size_t i = 0; i < ITEMS; i++)
        p.records[i].path = "";
    p.text = SBX_ARENA_INIT(SIZE_MAX);
    p.cancel_fd = -1;
    (void)pthread_mutex_init(&p.lock, NULL);
    sbx_observer_init(&p.observer, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(p.items);
    free(p.records);
    free(p.notes);
    sbx_arena_done(&p.text);
    sbx_observer_done(&p.observer);
    memset(&p, 0, sizeof(p));
    return 0;
}

/* Every other item, from the first or the second on. */
static void *refuse_half(void *arg)
{
    const size_t *first = arg;

    for (size_t i = *first; i < ITEMS; i += 2)
        sbx_pass_refuse(&p, i, SBX_REFUSE_ALIAS_LOCAL, *first ? "odd" : "even");
    return NULL;
}

static void two_threads_may_keep_notes_at_once(void **state)
{
    size_t even = 0, odd = 1;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, refuse_half, &odd), 0);
    (void)refuse_half(&even);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(p.n_notes, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        assert_string_equal(p.notes[p.items[i].note - 1].with, i % 2 ? "odd" : "even");
}

static void *flag_all(void *arg)
{
    const uint8_t *flag = arg;

    for (size_t i = 0; i < ITEMS; i++)
        sbx_pass_flag(&p, i, *flag);
    return NULL;
}

static void two_threads_may_set_flags_at_once(void **state)
{
    uint8_t one = SBX_ITEM_UNSTABLE, other = SBX_ITEM_AGAIN;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, flag_all, &one), 0);
    (void)flag_all(&other);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(p.items[i].flags, one | other);
}

static void a_full_disk_ends_the_transfer_and_names_the_file(void **state)
{
    struct sbx_error err = {
        .status = SBX_E_HOST, .os_errno = ENOSPC, .step = "write", .msg = "write"};

    (void)state;
    p.records[3].path = "a/b";
    p.records[3].path_len = 3;
    sbx_pass_host_failed(&p, 3, &err);
    assert_int_equal(p.items[3].outcome, SBX_FAILED);
    assert_int_equal(p.items[3].reason, SBX_FAIL_HOST);
    assert_int_equal(sbx_pass_ended(&p), SBX_DEFER_HOST_FULL);
    assert_non_null(strstr(p.host_error.msg, "'a/b'"));
}

static void a_failing_disk_ends_the_transfer_at_the_third_file(void **state)
{
    struct sbx_error err = {.status = SBX_E_HOST, .os_errno = EIO, .step = "write"};

    (void)state;
    for (size_t i = 0; i < SBX_EIO_FILES; i++) {
        assert_int_not_equal(sbx_pass_ended(&p), SBX_DEFER_HOST_FULL);
        sbx_pass_host_failed(&p, i, &err);
    }
    assert_int_equal(sbx_pass_ended(&p), SBX_DEFER_HOST_FULL);
}

static void errors_of_other_kinds_count_for_their_file_alone(void **state)
{
    static const int others[] = {EACCES, EINVAL, ENAMETOOLONG, EMFILE, EIO, EACCES, EIO, EIO};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct sbx_error err = {.status = SBX_E_HOST, .os_errno = others[i], .step = "openat"};

        sbx_pass_host_failed(&p, i, &err);
        assert_int_equal(p.items[i].reason, SBX_FAIL_HOST);
    }
    assert_int_not_equal(sbx_pass_ended(&p), SBX_DEFER_HOST_FULL);
}

/* The promise is the length of the path and 160 bytes. Beside what is summed up here there is the
 * path's NUL and the verdict of preflight, a byte each, and what both grow by. */
static void a_listed_file_costs_no_more_memory_than_promised(void **state)
{
    (void)state;
    assert_true(sizeof(struct sbx_record) + sizeof(struct sbx_item) + sizeof(struct sbx_fact) +
                    sizeof(*p.order) + 2 <=
                160);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_threads_may_keep_notes_at_once),
        TEST(two_threads_may_set_flags_at_once),
        TEST(a_full_disk_ends_the_transfer_and_names_the_file),
        TEST(a_failing_disk_ends_the_transfer_at_the_third_file),
        cmocka_unit_test(a_listed_file_costs_no_more_memory_than_promised),
        TEST(errors_of_other_kinds_count_for_their_file_alone),
    };

    return cmocka_run_group_tests_name("what two threads share", tests, NULL, NULL);
}
