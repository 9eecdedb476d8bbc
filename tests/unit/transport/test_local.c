/* Files of this machine, and what becomes of them while they are read. */
#include "tests/unit/transport/fixture.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "listing/record.h"

static void open_local(struct fixture *f)
{
    char dir[128];

    assert_int_equal(
        sbx_transport_local_new(path_in(f, "files", dir, sizeof(dir)), &f->transport, &f->err),
        SBX_OK);
}

static struct file *put(struct fixture *f, const char *name, const void *bytes, size_t n)
{
    char path[8192];

    (void)snprintf(path, sizeof(path), "files/%s", name);
    make_file(f, path, bytes, n);
    return want(f, name, n);
}

static void shell(const struct fixture *f, const char *script)
{
    char text[1024];

    (void)snprintf(text, sizeof(text), "cd %s/files && %s", f->dir, script);
    assert_int_equal(system(text), 0); /* banned-ok: a test sets up what it looks at */
}

static void assert_fetched(const struct file *file, const void *bytes, size_t n)
{
    struct sbx_record record;

    if (file->result != SBX_FETCH_OK)
        fail_msg("'%s': result %d: %s", file->path, (int)file->result, file->why);
    assert_int_equal(file->ended, 1);
    assert_bytes(&file->content, bytes, n);
    assert_true(file->has_record);
    assert_int_equal(sbx_list_record_parse(file->record.data, file->record.len, &record, NULL),
                     SBX_OK);
    assert_int_equal(record.flags, 0);
    assert_int_equal(record.size, n);
    assert_int_equal(record.path_len, file->wanted.path_len);
    assert_memory_equal(record.path, file->path, record.path_len);
}

static void test_contents(void **state)
{
    struct fixture *f = *state;
    char *big = calloc(1, 3 * SBX_IO_CHUNK + 17);
    struct sbx_call call = call_within(f, 20);

    assert_non_null(big);
    memset(big, 'b', 3 * SBX_IO_CHUNK + 17);
    make_dir(f, "files");
    (void)put(f, "all\n\\ $(x)", "\0\n\377\r", 4);
    (void)put(f, "big", big, 3 * SBX_IO_CHUNK + 17);
    (void)put(f, "chunk", big, SBX_IO_CHUNK);
    (void)put(f, "empty", "", 0);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_fetched(&f->files[0], "\0\n\377\r", 4);
    assert_fetched(&f->files[1], big, 3 * SBX_IO_CHUNK + 17);
    assert_fetched(&f->files[2], big, SBX_IO_CHUNK);
    assert_fetched(&f->files[3], "", 0);
    free(big);
}

/* From directory to directory: into, out of, beside, and to one that begins alike. */
static void test_directories(void **state)
{
    static const char *const dirs[] = {"a", "a/b", "a/b/c", "a/bc", "ab", "z", "z/b"};
    static const char *const names[] = {"0",    "a/1",   "a/b/c/2", "a/b/c/3", "a/b/4",   "a/bc/5",
                                        "ab/6", "z/b/7", "a/b/c/8", "9",       "a/b/c/x", "a/bc/y"};
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    char path[128];

    make_dir(f, "files");
    for (size_t i = 0; i < N_ELEMENTS(dirs); i++) {
        (void)snprintf(path, sizeof(path), "files/%s", dirs[i]);
        make_dir(f, path);
    }
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        (void)put(f, names[i], names[i], strlen(names[i]));
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        assert_fetched(&f->files[i], names[i], strlen(names[i]));
}

static void test_deep(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    char path[512] = "files";

    for (int i = 0; i < 100; i++) {
        make_dir(f, path);
        (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
    }
    make_dir(f, path);
    path[strlen(path) - 1] = 'f'; /* the hundredth component is a file */
    (void)put(f, path + 6, "deep", 4);
    (void)want(f, "a", 1);
    (void)snprintf(f->files[1].path, sizeof(f->files[1].path), "%.*s/f/g", 198, path + 6);
    f->files[1].wanted.path_len = strlen(f->files[1].path);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_fetched(&f->files[0], "deep", 4);
    assert_true(f->files[1].result != SBX_FETCH_OK);
}

struct odd {
    const char *name;
    const char *path;
    const char *script; /* in the root */
    enum sbx_fetch_result result;
};

static const struct odd odds[] = {
    {"a file that is gone has vanished", "gone", ":", SBX_FETCH_VANISHED},
    {"a file in a directory that is gone has vanished", "gone/a", ":", SBX_FETCH_VANISHED},
    {"a file below a file has vanished", "f/a", "echo >f", SBX_FETCH_VANISHED},
    {"a link is no regular file", "l", "ln -s /etc/passwd l", SBX_FETCH_NOT_REGULAR},
    {"a dangling link is no regular file", "l", "ln -s nowhere l", SBX_FETCH_NOT_REGULAR},
    {"a link on the way is not followed", "d/passwd", "ln -s /etc d", SBX_FETCH_VANISHED},
    {"a directory is no regular file", "d", "mkdir d", SBX_FETCH_NOT_REGULAR},
    {"a FIFO is no regular file and does not hold us up", "p", "mkfifo p", SBX_FETCH_NOT_REGULAR},
    {"a path that leads out is not opened", "../secret", "echo x >../secret", SBX_FETCH_SERVER},
    {"a path through the parent is not opened", "d/../f", "mkdir d; echo >f", SBX_FETCH_SERVER},
    {"an absolute path is not opened", "/etc/passwd", ":", SBX_FETCH_SERVER},
    {"an empty component is not opened", "d//f", "mkdir d; echo >d/f", SBX_FETCH_SERVER},
};

static void test_odd(void **state)
{
    struct fixture *f = *state;
    const struct odd *row = f->row;
    struct sbx_call call = call_within(f, 20);

    make_dir(f, "files");
    shell(f, row->script);
    (void)want(f, row->path, 5);
    (void)put(f, "next", "n", 1);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].result, row->result);
    assert_int_equal(f->files[0].begun, 0);
    assert_false(f->files[0].has_record);
    assert_true(f->files[0].why[0] != '\0');
    assert_fetched(&f->files[1], "n", 1);
}

static void test_socket(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    make_dir(f, "files");
    (void)path_in(f, "files/s", address.sun_path, sizeof(address.sun_path));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(fd);
    (void)want(f, "s", 1);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].result, SBX_FETCH_NOT_REGULAR);
}

struct moving {
    const char *name;
    const char *script; /* once the first bytes were read */
    enum sbx_fetch_result result;
    uint64_t record_size; /* if result is OK */
};

static const struct moving movings[] = {
    {"a file that grows shows it in its record", "echo more >>a", SBX_FETCH_OK,
     2 * SBX_IO_CHUNK + 5},
    {"a file that shrinks ends early and shows it in its record", "truncate -s 100 a", SBX_FETCH_OK,
     100},
    {"a file that is replaced has changed", "cp a b; mv b a", SBX_FETCH_CHANGED, 0},
    {"a file that is removed has vanished", "rm a", SBX_FETCH_VANISHED, 0},
    {"a file that becomes a link is no regular file", "mv a b; ln -s b a", SBX_FETCH_NOT_REGULAR,
     0},
    {"a file that becomes a directory is no regular file", "rm a; mkdir a", SBX_FETCH_NOT_REGULAR,
     0},
};

static void move_now(struct fixture *f, struct file *file)
{
    const struct moving *row = f->row;

    if (file->content.len == 0)
        shell(f, row->script);
}

static void test_moving(void **state)
{
    struct fixture *f = *state;
    const struct moving *row = f->row;
    struct sbx_call call = call_within(f, 20);
    char *bytes = calloc(1, 2 * SBX_IO_CHUNK);
    struct sbx_record record;

    assert_non_null(bytes);
    make_dir(f, "files");
    (void)put(f, "a", bytes, 2 * SBX_IO_CHUNK);
    free(bytes);
    f->on_write = move_now;
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].result, row->result);
    assert_int_equal(f->files[0].has_record, row->result == SBX_FETCH_OK);
    if (row->result != SBX_FETCH_OK)
        return;
    assert_int_equal(
        sbx_list_record_parse(f->files[0].record.data, f->files[0].record.len, &record, NULL),
        SBX_OK);
    assert_int_equal(record.size, row->record_size);
    assert_true(f->files[0].content.len <= 2 * SBX_IO_CHUNK);
}

static void test_times(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    struct timespec times[2] = {{-5, 250000000}, {-5, 250000000}};
    char path[128];

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, path_in(f, "files/a", path, sizeof(path)), times, 0), 0);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_fetched(&f->files[0], "x", 1);
    assert_true(strncmp(f->files[0].record.data, "1 -5.250000000 ", 15) == 0);
}

static void test_less(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    struct sbx_record record;

    make_dir(f, "files");
    put(f, "a", "more than listed", 16)->wanted.size = 4;
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_text(&f->files[0].content, "more");
    assert_int_equal(
        sbx_list_record_parse(f->files[0].record.data, f->files[0].record.len, &record, NULL),
        SBX_OK);
    assert_int_equal(record.size, 16);
}

static int denied_as_user(struct fixture *f)
{
    struct sbx_call call = call_within(f, 20);

    if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
        return 2;
    if (fetch(f, &call))
        return 3;
    if (f->files[0].result != SBX_FETCH_DENIED || f->files[1].result != SBX_FETCH_DENIED)
        return 4;
    return f->files[2].result == SBX_FETCH_OK ? 0 : 5;
}

static void test_denied(void **state)
{
    struct fixture *f = *state;
    int status;
    pid_t pid;

    make_dir(f, "files");
    make_dir(f, "files/shut");
    (void)put(f, "secret", "x", 1);
    (void)put(f, "shut/a", "x", 1);
    (void)put(f, "open", "x", 1);
    shell(f, "chmod 0 secret shut");
    open_local(f);
    pid = fork();
    if (pid == 0)
        _exit(denied_as_user(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    shell(f, "chmod 755 shut");
    assert_int_equal(status, 0);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);

    make_dir(f, "files");
    put(f, "a", "first", 5)->refuse = true;
    put(f, "b", "second", 6)->refuse = true;
    f->files[1].refuse_at = 3;
    (void)put(f, "c", "third", 5);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].ended, 1);
    assert_int_equal(f->files[1].ended, 1);
    assert_fetched(&f->files[2], "third", 5);
}

static void cancel_now(struct fixture *f, struct file *file)
{
    uint64_t one = 1;

    (void)file;
    assert_int_equal(write(f->cancel_fd, &one, sizeof(one)), sizeof(one));
}

static void test_cancel(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    char *bytes = calloc(1, 2 * SBX_IO_CHUNK);

    assert_non_null(bytes);
    make_dir(f, "files");
    (void)put(f, "a", bytes, 2 * SBX_IO_CHUNK);
    (void)put(f, "b", "x", 1);
    free(bytes);
    f->on_write = cancel_now;
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_E_CANCELLED);
    assert_int_equal(f->files[0].result, SBX_FETCH_CANCELLED);
    assert_int_equal(f->files[0].content.len, SBX_IO_CHUNK);
    assert_int_equal(f->next, 1);
}

static void test_deadline(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 0.2);

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    f->waits = 1000000;
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_E_DEADLINE);
    assert_int_equal(f->next, 0);
}

static void test_gone(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);

    (void)want(f, "a", 1);
    open_local(f);
    assert_int_equal(fetch(f, &call), SBX_E_GONE);
    assert_int_equal(f->next, 0);
}

static void test_linked_root(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call = call_within(f, 20);
    char link[128];

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    assert_int_equal(symlink("files", path_in(f, "link", link, sizeof(link))), 0);
    assert_int_equal(sbx_transport_local_new(link, &f->transport, &f->err), SBX_OK);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_fetched(&f->files[0], "x", 1);
}

struct runs {
    struct fixture *f;
    enum sbx_status st;
    struct sbx_exit ended;
};

static void *run_script(void *arg)
{
    static const char script[] = "sleep 0.3; echo hi; (exit 3)";
    struct runs *runs = arg;
    struct fixture *f = runs->f;
    struct sbx_call call = call_within(f, 20);

    runs->st = f->transport->ops.run(f->transport->self, &call, script, strlen(script),
                                     to_buf(&f->out), to_buf(&f->diag), &runs->ended, NULL);
    return NULL;
}

static void test_both(void **state)
{
    struct fixture *f = *state;
    struct runs runs = {.f = f};
    struct sbx_call call = call_within(f, 20);
    pthread_t thread;
    enum sbx_status st;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    open_local(f);
    assert_false(f->transport->ops.serial);
    assert_int_equal(pthread_create(&thread, NULL, run_script, &runs), 0);
    st = fetch(f, &call);
    (void)pthread_join(thread, NULL);
    assert_int_equal(st, SBX_OK);
    assert_fetched(&f->files[0], "x", 1);
    assert_int_equal(runs.st, SBX_OK);
    assert_int_equal(runs.ended.code, 3);
    assert_text(&f->out, "hi\n\n");
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(odds) + N_ELEMENTS(movings) + 16];
    size_t n = add_rows(tests, 0, ROWS(odds), test_odd);

    n = add_rows(tests, n, ROWS(movings), test_moving);
    n = add_test(tests, n, "contents come as they are", test_contents);
    n = add_test(tests, n, "directories are entered and left", test_directories);
    n = add_test(tests, n, "a hundred components are reached, and no more", test_deep);
    n = add_test(tests, n, "a socket is no regular file", test_socket);
    n = add_test(tests, n, "times before 1970 are told as the listing does", test_times);
    n = add_test(tests, n, "no more than the listed size is read", test_less);
    n = add_test(tests, n, "what may not be read is denied", test_denied);
    n = add_test(tests, n, "a refused file does not keep the next", test_refused);
    n = add_test(tests, n, "a cancel is heard between pieces", test_cancel);
    n = add_test(tests, n, "a deadline ends the wait for files", test_deadline);
    n = add_test(tests, n, "a root that is gone takes no file", test_gone);
    n = add_test(tests, n, "the root itself may be a link", test_linked_root);
    n = add_test(tests, n, "a run and a fetch go on at the same time", test_both);
    return run_all("transport/local", tests, n);
}
