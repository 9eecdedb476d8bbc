/* Files and scripts through COMMAND, with real shells and three families of tools. */
#include "tests/unit/transport/fixture.h"

#include <pthread.h>

#include "base/coding.h"
#include "listing/record.h"
#include "listing/script.h"

#define BIG (5 * SBX_MIB)
#define MEDIUM (300 * SBX_KIB)

static const char *const families[] = {"gnu", "busybox", "toybox"};
static const char *const shells[] = {"/usr/bin/dash", "/usr/bin/bash", "/usr/bin/mksh",
                                     "/usr/bin/busybox sh"};

/* A directory `bin` with the tools of one family and nothing else, as PATH. */
static const char *tools_path(const struct fixture *f, const char *family, char *out, size_t cap)
{
    static const char *const names[] = {"head", "base64", "od", "printf", "stat", "cat", "sleep"};
    char link[128], target[64];

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
static void open_exec(struct fixture *f, const char *path, const char *shell)
{
    char dir[128], env[256], words[64];
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

/* The call of a fetch, with the snippet for `tools` in f->out. */
static struct sbx_call fetch_call(struct fixture *f, const char *tools, double seconds)
{
    struct sbx_call call = call_within(f, seconds);

    sbx_buf_clear(&f->out);
    assert_int_equal(sbx_list_snippet(f->transport->root, tools, &f->out, NULL), SBX_OK);
    call.tools = tools;
    call.snippet = f->out.data;
    return call;
}

/* Makes f->dir/files/NAME, and wants it. */
static struct file *put(struct fixture *f, const char *name, const void *bytes, size_t n)
{
    char path[8192];
    struct file *file;

    (void)snprintf(path, sizeof(path), "files/%s", name);
    make_file(f, path, bytes, n);
    file = want(f, name, n);
    return file;
}

static void assert_record(const struct file *file, uint64_t size)
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

static void assert_fetched(const struct file *file, const void *bytes, size_t n)
{
    if (file->result != SBX_FETCH_OK)
        fail_msg("'%s': result %d: %s", file->path, (int)file->result, file->why);
    assert_int_equal(file->ended, 1);
    assert_bytes(&file->content, bytes, n);
    assert_record(file, n);
}

struct combo {
    char name[96];
    const char *family, *shell, *tools;
};

static char *make_random(size_t n)
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

/* Any content comes as it is, and so does its record. */
static void test_contents(void **state)
{
    static const char marker[] = "a\n00112233445566778899aabbccddeeff 0 5 1 2 x\0\n"
                                 "00112233445566778899aabbccddeeff done 0 0\n";
    struct fixture *f = *state;
    const struct combo *combo =
        *(const struct combo *const *)(const void *)((const char *)f->row + sizeof(char *));
    size_t big_n = strcmp(combo->shell, shells[0]) == 0 ? BIG : MEDIUM;
    char *big = make_random(big_n), path[128];
    unsigned char all[256];
    struct sbx_call call;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (unsigned char)i;
    make_dir(f, "files");
    (void)put(f, "empty", "", 0);
    (void)put(f, "one", "x", 1);
    (void)put(f, "newlines", "\n\n\n", 3);
    (void)put(f, "all", all, sizeof(all));
    (void)put(f, "big", big, big_n);
    (void)put(f, "marker", marker, sizeof(marker));
    (void)put(f, "last", "last", 4);
    open_exec(f, tools_path(f, combo->family, path, sizeof(path)), combo->shell);
    call = fetch_call(f, combo->tools, 60);
    if (fetch(f, &call) != SBX_OK)
        fail_msg("%s", f->err.msg);
    assert_fetched(&f->files[0], "", 0);
    assert_fetched(&f->files[1], "x", 1);
    assert_fetched(&f->files[2], "\n\n\n", 3);
    assert_fetched(&f->files[3], all, sizeof(all));
    assert_fetched(&f->files[4], big, big_n);
    assert_fetched(&f->files[5], marker, sizeof(marker));
    assert_fetched(&f->files[6], "last", 4);
    free(big);
}

static const char *const hostile_names[] = {"-n",
                                            "--help",
                                            "-",
                                            "a'b",
                                            "$(touch pwn)",
                                            "`touch pwn`",
                                            "a;touch pwn",
                                            "a\nb",
                                            "ends in newlines\n\n",
                                            "\n",
                                            " ",
                                            "trailing blank ",
                                            "*",
                                            "a\\b\\101\\",
                                            "%s%n",
                                            "a\"b",
                                            "\x01\x1b[31m\x7f",
                                            "caf\xc3\xa9",
                                            "a\xff\xfe",
                                            "9digits\\0001",
                                            "!",
                                            "(",
                                            "=",
                                            "~",
                                            "#",
                                            "dir/$(touch pwn)",
                                            "-d/-f"};

/* No name is anything but a name: not for the shell, and not for a tool. */
static void test_names(void **state)
{
    struct fixture *f = *state;
    const struct combo *combo =
        *(const struct combo *const *)(const void *)((const char *)f->row + sizeof(char *));
    char path[128], pwn[128], cwd[128];
    struct sbx_call call;

    make_dir(f, "files");
    make_dir(f, "files/dir");
    make_dir(f, "files/-d");
    for (size_t i = 0; i < N_ELEMENTS(hostile_names); i++)
        (void)put(f, hostile_names[i], hostile_names[i], strlen(hostile_names[i]));
    open_exec(f, tools_path(f, combo->family, path, sizeof(path)), combo->shell);
    call = fetch_call(f, combo->tools, 60);
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(chdir(cwd), 0);
    for (size_t i = 0; i < f->n; i++)
        assert_fetched(&f->files[i], hostile_names[i], strlen(hostile_names[i]));
    assert_int_equal(access(path_in(f, "pwn", pwn, sizeof(pwn)), F_OK), -1);
    assert_int_equal(access(path_in(f, "files/pwn", pwn, sizeof(pwn)), F_OK), -1);
}

/* What stands there is told before anything is opened. */
static void test_states(void **state)
{
    static const enum sbx_fetch_result expected[] = {
        SBX_FETCH_OK,          SBX_FETCH_VANISHED,    SBX_FETCH_VANISHED,
        SBX_FETCH_NOT_REGULAR, SBX_FETCH_NOT_REGULAR, SBX_FETCH_NOT_REGULAR,
        SBX_FETCH_NOT_REGULAR, SBX_FETCH_VANISHED,    SBX_FETCH_OK};
    struct fixture *f = *state;
    const struct combo *combo =
        *(const struct combo *const *)(const void *)((const char *)f->row + sizeof(char *));
    char path[128];
    struct sbx_call call;

    make_dir(f, "files");
    make_dir(f, "files/dir");
    (void)put(f, "first", "1", 1);
    (void)want(f, "gone", 5);
    (void)want(f, "gone/deep/er", 5);
    assert_int_equal(symlink("first", path_in(f, "files/link", path, sizeof(path))), 0);
    (void)want(f, "link", 1);
    assert_int_equal(symlink("nowhere", path_in(f, "files/dangling", path, sizeof(path))), 0);
    (void)want(f, "dangling", 1);
    (void)want(f, "dir", 1);
    assert_int_equal(mkfifo(path_in(f, "files/fifo", path, sizeof(path)), 0644), 0);
    (void)want(f, "fifo", 1);
    (void)want(f, "first/below", 1);
    (void)put(f, "last", "2", 1);
    open_exec(f, tools_path(f, combo->family, path, sizeof(path)), combo->shell);
    call = fetch_call(f, combo->tools, 60);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < f->n; i++)
        assert_int_equal(f->files[i].result, expected[i]);
    assert_fetched(&f->files[0], "1", 1);
    assert_fetched(&f->files[8], "2", 1);
}

/* Who may not read it is told so; as another user, since root may read everything. */
static void test_denied(void **state)
{
    static const char *const as_root[] = {
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", NULL};
    static const char *const as_user[] = {"sh", NULL};
    static const char tools[] = "printf,plain,base64";
    struct fixture *f = *state;
    char path[128];
    struct sbx_call call;

    make_dir(f, "files");
    make_dir(f, "files/shut");
    make_dir(f, "files/shut/in");
    (void)put(f, "secret", "x", 1);
    (void)put(f, "shut/a", "x", 1);
    (void)put(f, "shut/in/b", "x", 1);
    (void)put(f, "open", "x", 1);
    assert_int_equal(chmod(path_in(f, "files/secret", path, sizeof(path)), 0), 0);
    assert_int_equal(chmod(path_in(f, "files/shut", path, sizeof(path)), 0), 0);
    assert_int_equal(sbx_transport_exec_new(path_in(f, "files", path, sizeof(path)),
                                            geteuid() == 0 ? as_root : as_user, &f->transport,
                                            &f->err),
                     SBX_OK);
    call = fetch_call(f, tools, 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(chmod(path_in(f, "files/shut", path, sizeof(path)), 0755), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(f->files[i].result, SBX_FETCH_DENIED);
    assert_fetched(&f->files[3], "x", 1);
}

/* Puts a `head` of the test's own before the others: shell text with the size in $2 and the path in
 * $3, before and after the real one. */
static void open_with_head(struct fixture *f, const char *before, const char *after)
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

struct moving {
    const char *name;
    const char *before, *after; /* cases of the wrapped head */
    enum sbx_fetch_result result;
    const char *content;
    uint64_t record_size; /* if result is OK */
};

static const struct moving movings[] = {
    {"a file that grows before it is read shows it in the record", "*) echo more >>\"$3\";;", "",
     SBX_FETCH_OK, "content", 12},
    {"a file that grows after it was read shows it in the record", "", "*) echo more >>\"$3\";;",
     SBX_FETCH_OK, "content", 12},
    {"a file that shrinks before it is read is shorter, as its record says",
     "*) printf abc >\"$3\";;", "", SBX_FETCH_OK, "abc", 3},
    {"a file that is gone before it is read has vanished", "*) rm \"$3\";;", "", SBX_FETCH_VANISHED,
     "", 0},
    {"a file that is gone after it was read has changed", "", "*) rm \"$3\";;", SBX_FETCH_CHANGED,
     "content", 0},
    {"a link in place of the file that was read is a change", "",
     "*) rm \"$3\"; ln -s /etc/passwd \"$3\";;", SBX_FETCH_CHANGED, "content", 0},
    {"a directory in place of the file that is to be read vanished", "*) rm \"$3\"; mkdir \"$3\";;",
     "", SBX_FETCH_VANISHED, "", 0},
    {"a read that fails is the server's failure", "*) s=1; printf con; exit 1;;", "",
     SBX_FETCH_SERVER, "con", 0},
};

static void test_moving(void **state)
{
    struct fixture *f = *state;
    const struct moving *row = f->row;
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "content", 7);
    open_with_head(f, row->before, row->after);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].result, row->result);
    assert_text(&f->files[0].content, row->content);
    if (row->result == SBX_FETCH_OK)
        assert_record(&f->files[0], row->record_size);
    else
        assert_false(f->files[0].has_record);
}

struct trouble {
    const char *name;
    const char *before;  /* cases of the wrapped head */
    const char *results; /* for 1 2 3 4: o, s (server), l (lost) */
    const char *begun;   /* how often each began */
    enum sbx_status status;
};

/* $PPID of the wrapped head is a subshell; its session is COMMAND's. */
#define CUT "kill -9 -$(ps -o sid= -p $$ | tr -d ' ')"

static const struct trouble troubles[] = {
    {"a file that is stuck fails alone", "*/2) sleep 60;;", "osoo", "1111", SBX_OK},
    {"two stuck files use up the new start", "*/2|*/3) sleep 60;;", "ossl", "1110",
     SBX_E_UNREACHABLE},
    {"a stuck last file costs the others nothing", "*/4) sleep 60;;", "ooos", "1111", SBX_OK},
    {"a channel that is lost in a file is opened again",
     "*/2) [ -e $F/cut ] || { : >$F/cut; printf x; sleep 0.1; " CUT "; };;", "oooo", "1211",
     SBX_OK},
    {"a channel that is lost twice is lost", "*/2) " CUT ";;", "olll", "1200", SBX_E_UNREACHABLE},
};

static void test_trouble(void **state)
{
    static const char letters[] = {
        [SBX_FETCH_OK] = 'o', [SBX_FETCH_SERVER] = 's', [SBX_FETCH_LOST] = 'l', ['~'] = 0};
    struct fixture *f = *state;
    const struct trouble *row = f->row;
    struct sbx_call call;

    make_dir(f, "files");
    for (char c = '1'; c <= '4'; c++)
        (void)put(f, (char[]){c, 0}, &c, 1);
    open_with_head(f, row->before, "");
    call = fetch_call(f, "printf,plain,base64", 20);
    call.idle_ns = 700 * (uint64_t)SBX_NS_PER_MS;
    assert_int_equal(fetch(f, &call), row->status);
    for (size_t i = 0; i < 4; i++) {
        char c = (char)('1' + i);

        if (letters[f->files[i].result] != row->results[i])
            fail_msg("file %c: result %d: %s", c, (int)f->files[i].result, f->files[i].why);
        assert_int_equal(f->files[i].begun, row->begun[i] - '0');
        if (row->results[i] == 'o')
            assert_fetched(&f->files[i], &c, 1);
        else
            assert_true(f->files[i].why[0] != '\0');
    }
}

/* Files that were not taken stay in the queue when there is no start left. */
static void test_untaken(void **state)
{
    static const char *const argv[] = {"false", NULL};
    struct fixture *f = *state;
    struct sbx_call call;

    assert_int_equal(sbx_transport_exec_new("/srv", argv, &f->transport, &f->err), SBX_OK);
    (void)want(f, "a", 1);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_E_UNREACHABLE);
    assert_int_equal(f->files[0].result, SBX_FETCH_LOST);
    (void)want(f, "b", 1);
    assert_int_equal(fetch(f, &call), SBX_E_UNREACHABLE);
    assert_int_equal(f->next, 1);
    assert_int_equal(f->files[1].ended, 0);
}

struct lacking {
    const char *name;
    const char *lacks, *says;
};

static const struct lacking lackings[] = {
    {"a missing head is named", "head", "remote tool missing: head"},
    {"a missing encoder is named", "base64", "remote tool missing: the encoder"},
};

static void test_lacking(void **state)
{
    struct fixture *f = *state;
    const struct lacking *row = f->row;
    char bin[128], tool[160];
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    (void)put(f, "b", "x", 1);
    (void)tools_path(f, "busybox", bin, sizeof(bin));
    (void)snprintf(tool, sizeof(tool), "%s/%s", bin, row->lacks);
    assert_int_equal(unlink(tool), 0);
    open_exec(f, bin, "/usr/bin/dash");
    call = fetch_call(f, "stat,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->files[i].result, SBX_FETCH_SERVER);
        assert_has(f->files[i].why, row->says);
    }
}

struct profile {
    const char *name;
    const char *script; /* COMMAND is sh -c of it */
    enum sbx_status status;
};

static const struct profile profiles[] = {
    {"a greeting is skipped", "printf '\\033[3mOnly these folders persist\\n'; exec sh", SBX_OK},
    {"a greeting without a newline is skipped", "printf V2VsY29tZQo=; exec sh", SBX_OK},
    {"a greeting of 60 KiB is skipped", "head -c 61440 /dev/zero; exec sh", SBX_OK},
    {"an endless greeting is a lost source", "yes | head -c 300000; exec sh", SBX_E_UNREACHABLE},
    {"a profile that turns words into options is undone",
     "exec sh -c 'IFS=0123456789; set -efu; alias echo=false; . /dev/stdin'", SBX_OK},
    {"a farewell is skipped", "trap 'echo bye' 0; sh", SBX_OK},
};

static void test_profile(void **state)
{
    struct fixture *f = *state;
    const struct profile *row = f->row;
    const char *const argv[] = {"sh", "-c", row->script, NULL};
    char dir[128];
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    assert_int_equal(
        sbx_transport_exec_new(path_in(f, "files", dir, sizeof(dir)), argv, &f->transport, &f->err),
        SBX_OK);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), row->status);
    if (row->status)
        assert_int_equal(f->files[0].result, SBX_FETCH_LOST);
    else
        assert_fetched(&f->files[0], "x", 1);
}

static void *cancel_soon(void *arg)
{
    struct fixture *f = arg;
    uint64_t one = 1;

    (void)usleep(400000);
    assert_int_equal(write(f->cancel_fd, &one, sizeof(one)), sizeof(one));
    return NULL;
}

/* A growing file without an end, a stuck one: the call ends in time and says so of every file. */
static void test_bounds(void **state)
{
    struct fixture *f = *state;
    uint64_t began = sbx_clock_now();
    struct sbx_call call;
    pthread_t thread;

    make_dir(f, "files");
    for (char c = '1'; c <= '4'; c++)
        (void)put(f, (char[]){c, 0}, &c, 1);
    open_with_head(f, "*/2) echo $$ >$F/pids; sleep 60;;", "");
    call = fetch_call(f, "printf,plain,base64", 0.6);
    assert_int_equal(fetch(f, &call), SBX_E_DEADLINE);
    assert_true(seconds_since(began) < 2);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(f->files[i].result, i == 0 ? SBX_FETCH_OK : SBX_FETCH_CANCELLED);
    want_again(f);
    call = fetch_call(f, "printf,plain,base64", 20);
    began = sbx_clock_now();
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, f), 0);
    assert_int_equal(fetch(f, &call), SBX_E_CANCELLED);
    assert_true(seconds_since(began) < 2);
    (void)pthread_join(thread, NULL);
    assert_int_equal(f->files[3].result, SBX_FETCH_CANCELLED);
}

/* A queue that says "wait" is asked again; batches follow each other in one shell. */
static void test_waiting(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call;

    make_dir(f, "files");
    for (char c = '1'; c <= '3'; c++)
        (void)put(f, (char[]){c, 0}, &c, 1);
    f->waits = 1;
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_fetched(&f->files[i], f->files[i].path, 1);
}

/* The listed sizes reach the limit of a batch at once: each file has a script of its own. */
static void test_batches(void **state)
{
    struct fixture *f = *state;
    struct sbx_call call;

    make_dir(f, "files");
    for (char c = '1'; c <= '3'; c++) {
        (void)put(f, (char[]){c, 0}, &c, 1);
        f->files[f->n - 1].wanted.size = c == '2' ? UINT64_MAX / 2 : SBX_BATCH_BYTES;
    }
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_fetched(&f->files[i], f->files[i].path, 1);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    char *big = make_random(MEDIUM);
    struct sbx_call call;

    make_dir(f, "files");
    put(f, "a", big, MEDIUM)->refuse = true;
    put(f, "b", big, MEDIUM)->refuse = true;
    f->files[1].refuse_at = 100000;
    (void)put(f, "c", big, MEDIUM);
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].ended, 1);
    assert_int_equal(f->files[1].ended, 1);
    assert_fetched(&f->files[2], big, MEDIUM);
    free(big);
}

static enum sbx_status run(struct fixture *f, const char *script, struct sbx_exit *ret)
{
    struct sbx_call call = call_within(f, 10);

    sbx_buf_clear(&f->out);
    return f->transport->ops.run(f->transport->self, &call, script, strlen(script), to_buf(&f->out),
                                 to_buf(&f->diag), ret, &f->err);
}

/* Runs and fetches share one shell; a shell that was lost in between is started anew, once. */
static void test_runs(void **state)
{
    struct fixture *f = *state;
    struct sbx_exit ended;
    char first[32];
    struct sbx_call call;

    make_dir(f, "files");
    (void)put(f, "a", "x", 1);
    open_exec(f, "/usr/bin:/bin", "/usr/bin/dash");
    assert_int_equal(run(f, "echo $$; (exit 3)", &ended), SBX_OK);
    assert_int_equal(ended.code, 3);
    (void)snprintf(first, sizeof(first), "%s", f->out.data);
    call = fetch_call(f, "printf,plain,base64", 20);
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_fetched(&f->files[0], "x", 1);
    assert_int_equal(run(f, "echo $$", &ended), SBX_OK);
    assert_text(&f->out, first);
    assert_int_equal(run(f, "(sleep 0.1; kill -9 $$) >/dev/null 2>&1 & sleep 0.05", &ended),
                     SBX_OK);
    (void)usleep(200000);
    assert_int_equal(run(f, "echo again", &ended), SBX_OK);
    assert_text(&f->out, "again\n\n");
    assert_int_equal(run(f, "echo some; exit 5", &ended), SBX_E_UNREACHABLE);
    assert_has(f->err.msg, "status 5");
    assert_int_equal(run(f, "echo once more", &ended), SBX_OK);
    assert_text(&f->out, "once more\n\n");
}

static size_t add_combos(struct CMUnitTest *tests, size_t n)
{
    static const struct {
        const char *what;
        CMUnitTestFunction fn;
    } kinds[] = {{"contents", test_contents}, {"names", test_names}, {"states", test_states}};
    static struct {
        const char *name;
        const struct combo *combo;
        struct combo its;
    } rows[3 * 3 * 4 * 2], *row = rows;

    for (size_t i = 0; i < N_ELEMENTS(rows); i++, row++) {
        size_t kind = i / 24;
        bool hex = i & 1;

        row->its.family = families[i / 8 % 3];
        row->its.shell = shells[i / 2 % 4];
        row->its.tools = i / 8 % 3 == 0 ? (hex ? "printf,plain,hex" : "printf,gzip,base64")
                                        : (hex ? "stat,gzip,hex" : "stat,plain,base64");
        (void)snprintf(row->its.name, sizeof(row->its.name), "%s come through %s, %s tools, %s",
                       kinds[kind].what, row->its.shell + 9, row->its.family,
                       hex ? "hex" : "base64");
        row->name = row->its.name;
        row->combo = &row->its;
        if (kind == 0 || !hex)
            n = add_rows(tests, n, row, 1, sizeof(*row), kinds[kind].fn);
    }
    return n;
}

int main(void)
{
    struct CMUnitTest tests[128];
    size_t n = add_combos(tests, 0);

    n = add_rows(tests, n, movings, N_ELEMENTS(movings), sizeof(movings[0]), test_moving);
    n = add_rows(tests, n, troubles, N_ELEMENTS(troubles), sizeof(troubles[0]), test_trouble);
    n = add_rows(tests, n, lackings, N_ELEMENTS(lackings), sizeof(lackings[0]), test_lacking);
    n = add_rows(tests, n, profiles, N_ELEMENTS(profiles), sizeof(profiles[0]), test_profile);
    n = add_test(tests, n, "what may not be read is denied", test_denied);
    n = add_test(tests, n, "files that were not taken stay in the queue", test_untaken);
    n = add_test(tests, n, "deadline and cancel end a stuck fetch", test_bounds);
    n = add_test(tests, n, "a queue that says wait is asked again", test_waiting);
    n = add_test(tests, n, "large sizes part batches", test_batches);
    n = add_test(tests, n, "a refused file does not keep the next", test_refused);
    n = add_test(tests, n, "runs and fetches share one shell", test_runs);
    return run_all("transport/exec", tests, n);
}
