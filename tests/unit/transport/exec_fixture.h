/* What the tests of exec share: transports through real shells with one family of tools. */
#ifndef TESTS_UNIT_TRANSPORT_EXEC_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_EXEC_FIXTURE_H

#include "tests/unit/transport/fixture.h"

#include "listing/record.h"
#include "listing/script.h"

#define BIG (5 * SBX_MIB)
#define MEDIUM (150 * SBX_KIB)

/* A directory `bin` with the tools of one family and nothing else, as PATH. */
static inline const char *tools_path(const struct fixture *f, const char *family, char *out,
                                     size_t cap)
{
    static const char *const names[] = {"head", "base64", "od", "printf", "stat", "cat", "sleep"};
    char link[512], target[64];

    if (strcmp(family, "gnu") == 0) {
        (void)snprintf(out, cap, "/usr/bin:/bin");
        return out;
    }
    (void)path_in(f, "bin", out, cap);
    if (access(out, F_OK) == 0)
        return out;
    make_dir(f, "bin");
    (void)snprintf(target, sizeof(target), "/usr/bin/%s", family);
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        (void)snprintf(link, sizeof(link), "%s/%s", out, names[i]);
        assert_int_equal(symlink(target, link), 0);
    }
    return out;
}

/* Makes the transport for f->dir/files through `env -i PATH=... SHELL`. */
static inline void open_exec(struct fixture *f, const char *path, const char *shell)
{
    char dir[128], env[1024], words[64];
    const char *argv[8] = {"env", "-i", env};
    char *arg;

    (void)snprintf(env, sizeof(env), "PATH=%s", path);
    (void)snprintf(words, sizeof(words), "%s", shell);
    argv[3] = words;
    arg = strchr(words, ' ');
    if (arg) {
        *arg = '\0';
        argv[4] = arg + 1;
    }
    assert_int_equal(
        sbx_transport_exec_new(path_in(f, "files", dir, sizeof(dir)), argv, &f->transport, &f->err),
        SBX_OK);
}

/* Puts a `head` of the test's own before the others: shell text with the size in $2 and the path in
 * $3, before and after the real one. */
static inline void open_with_head(struct fixture *f, const char *before, const char *after)
{
    char text[1024], path[256], dir[128];

    make_dir(f, "wrap");
    (void)snprintf(text, sizeof(text),
                   "#!/bin/sh\nF=%s\ncase $3 in %s esac\n/usr/bin/head \"$@\"; s=$?\n"
                   "case $3 in %s esac\nexit $s\n",
                   f->dir, before, after);
    make_script(f, "wrap/head", text);
    (void)snprintf(path, sizeof(path), "%s:/usr/bin:/bin", path_in(f, "wrap", dir, sizeof(dir)));
    (void)snprintf(text, sizeof(text), "echo $$ >%s/pid; exec dash", f->dir);
    open_exec(f, path, "/usr/bin/dash");
}

/* The call of a fetch, with the snippet for `tools` in f->out. */
static inline struct sbx_call fetch_call(struct fixture *f, const char *tools, double seconds)
{
    struct sbx_call call = call_within(f, seconds);

    sbx_buf_clear(&f->out);
    assert_int_equal(sbx_list_snippet(f->transport->root, tools, &f->out, NULL), SBX_OK);
    call.tools = tools;
    call.snippet = f->out.data;
    return call;
}

/* Makes f->dir/files/NAME, and wants it. */
static inline struct file *put(struct fixture *f, const char *name, const void *bytes, size_t n)
{
    char path[8192];
    struct file *file;

    (void)snprintf(path, sizeof(path), "files/%s", name);
    make_file(f, path, bytes, n);
    file = want(f, name, n);
    return file;
}

static inline void assert_record(const struct file *file, uint64_t size)
{
    struct sbx_record record;

    assert_true(file->has_record);
    assert_int_equal(sbx_list_record_parse(file->record.data, file->record.len, &record, NULL),
                     SBX_OK);
    assert_int_equal(record.flags, 0);
    assert_int_equal(record.size, size);
    assert_int_equal(record.path_len, file->wanted.path_len);
    assert_memory_equal(record.path, file->path, record.path_len);
}

static inline void assert_fetched(const struct file *file, const void *bytes, size_t n)
{
    if (file->result != SBX_FETCH_OK)
        fail_msg("'%s': result %d: %s", file->path, (int)file->result, file->why);
    assert_int_equal(file->ended, 1);
    assert_bytes(&file->content, bytes, n);
    assert_record(file, n);
}

static inline char *make_random(size_t n)
{
    char *bytes = calloc(1, n);
    uint64_t x = 88172645463325252ull;

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes[i] = (char)(x >> 32);
    }
    return bytes;
}

#endif
