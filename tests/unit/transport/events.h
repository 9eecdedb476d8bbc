/* Feeding a stream of execd's events in pieces, and what has to come of it. */
#ifndef TESTS_UNIT_TRANSPORT_EVENTS_H
#define TESTS_UNIT_TRANSPORT_EVENTS_H

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/limits.h"
#include "tests/support/rows.h"
#include "transport/execd_events.h"

#define TOKEN "s3cret-t0ken"
#define CUTS 600 /* a stream is cut in two at each of its first so many bytes */

/* Events, their texts as they stand in JSON. */
#define ID "0123456789abcdef0123456789abcdef"
#define INIT "{\"type\":\"init\",\"text\":\"" ID "\",\"timestamp\":1}\n\n"
#define OUT(text) "{\"type\":\"stdout\",\"text\":\"" text "\",\"timestamp\":1}\n\n"
#define DIAG(text) "{\"type\":\"stderr\",\"text\":\"" text "\",\"timestamp\":1}\n\n"
#define END "{\"type\":\"execution_complete\",\"execution_time\":5,\"timestamp\":1}\n\n"

/* What a stream has to give. */
struct wanted {
    enum sbx_status status;
    const char *out, *diag;
    size_t out_len; /* 0: out is terminated */
    bool ended;
    struct sbx_exit exit;
    const char *why;
    const char *id;      /* NULL: whatever came */
    const char *message; /* part of the error's; NULL: none */
};

static struct fixture {
    struct sbx_execd_events events; /* owned */
    struct sbx_secrets secrets;     /* owned */
    struct sbx_buf out, diag, body; /* owned */
    struct sbx_error err;
    enum sbx_status refuse; /* what out answers after its first line */
} fx;

static inline enum sbx_status on_out(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct fixture *f = ctx;

    if (f->refuse && f->out.len > 0)
        return sbx_err_set(err, f->refuse, 0, "enough");
    return sbx_buf_add(&f->out, bytes, n, err);
}

static inline enum sbx_status on_diag(void *ctx, const void *bytes, size_t n, struct sbx_error *err)
{
    struct fixture *f = ctx;

    return f->refuse ? f->refuse : sbx_buf_add(&f->diag, bytes, n, err);
}

static inline void begin(void)
{
    sbx_execd_events_done(&fx.events);
    sbx_buf_clear(&fx.out);
    sbx_buf_clear(&fx.diag);
    assert_int_equal(sbx_buf_add(&fx.out, "", 0, NULL), SBX_OK);
    assert_int_equal(sbx_buf_add(&fx.diag, "", 0, NULL), SBX_OK);
    fx.err = (struct sbx_error){.status = SBX_OK};
    sbx_execd_events_init(&fx.events, (struct sbx_sink){on_out, &fx},
                          (struct sbx_sink){on_diag, &fx}, &fx.secrets);
}

static inline enum sbx_status feed(const char *bytes, size_t n)
{
    return sbx_execd_events_write(&fx.events, bytes, n, &fx.err);
}

static inline void assert_wanted(const struct wanted *want, enum sbx_status st)
{
    size_t n = want->out_len ? want->out_len : strlen(want->out);

    assert_string_equal(fx.err.msg, st ? fx.err.msg : "");
    assert_int_equal(st, want->status);
    assert_int_equal(fx.out.len, n);
    assert_memory_equal(fx.out.data, want->out, n);
    assert_string_equal(fx.diag.data, want->diag ? want->diag : "");
    assert_int_equal(fx.events.ended, want->ended);
    assert_int_equal(fx.events.exit.kind, want->exit.kind);
    assert_int_equal(fx.events.exit.code, want->exit.code);
    assert_string_equal(fx.events.why, want->why ? want->why : "");
    if (want->id)
        assert_string_equal(fx.events.id, want->id);
    if (want->message)
        assert_non_null(strstr(fx.err.msg, want->message));
}

/* However the stream is cut, the same comes of it. */
static inline void check_stream(const char *bytes, size_t n, const struct wanted *want)
{
    enum sbx_status st = SBX_OK;

    begin();
    assert_wanted(want, feed(bytes, n));
    begin();
    for (size_t i = 0; i < n && !st; i++)
        st = feed(bytes + i, 1);
    assert_wanted(want, st);
    for (size_t cut = 0; cut < n && cut < CUTS; cut++) {
        begin();
        st = feed(bytes, cut);
        if (!st)
            st = feed(bytes + cut, n - cut);
        assert_wanted(want, st);
    }
}

static inline int group_setup(void **state)
{
    (void)state;
    fx.out = fx.diag = fx.body = SBX_BUF_INIT(16 * SBX_MIB);
    return (int)sbx_secrets_add(&fx.secrets, TOKEN, NULL);
}

static inline int group_teardown(void **state)
{
    (void)state;
    sbx_execd_events_done(&fx.events);
    sbx_secrets_done(&fx.secrets);
    sbx_buf_done(&fx.out);
    sbx_buf_done(&fx.diag);
    sbx_buf_done(&fx.body);
    return 0;
}

#endif
