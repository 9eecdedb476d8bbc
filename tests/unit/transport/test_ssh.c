/* Through a real ssh to a real sshd on loopback, with keys and a port of the test's own. */
#include "tests/unit/transport/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/socket.h>

#include "listing/list.h"
#include "listing/script.h"

#define SSHD "/usr/sbin/sshd"

struct server {
    struct fixture *f;
    pid_t pid;
    int port;
};

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void configure(const struct fixture *f, int port)
{
    char text[2048], path[128];

    (void)snprintf(text, sizeof(text),
                   "cd %s && ssh-keygen -q -t ed25519 -N '' -f host && "
                   "ssh-keygen -q -t ed25519 -N '' -f user && cp user.pub authorized",
                   f->dir);
    assert_int_equal(system(text), 0); /* banned-ok: a test sets up what it talks to */
    (void)snprintf(text, sizeof(text),
                   "Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\n"
                   "AuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\n"
                   "PasswordAuthentication no\nPermitRootLogin prohibit-password\n",
                   port, f->dir, f->dir);
    make_file(f, "sshd_config", text, strlen(text));
    (void)snprintf(text, sizeof(text),
                   "Host box\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentityFile %s/user\n"
                   "IdentitiesOnly yes\nBatchMode yes\nStrictHostKeyChecking no\n"
                   "UserKnownHostsFile %s/known\nLogLevel ERROR\n",
                   port, getpwuid(geteuid())->pw_name, f->dir, f->dir);
    make_file(f, "ssh_config", text, strlen(text));
    assert_int_equal(chmod(path_in(f, "user", path, sizeof(path)), 0600), 0);
}

static bool answers(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ok = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    (void)close(fd);
    return ok;
}

static void start_server(struct server *server)
{
    char config[128], log[128];
    char *argv[] = {
        (char[]){SSHD}, (char[]){"-D"}, (char[]){"-f"}, config, (char[]){"-E"}, log, NULL};

    if (geteuid() == 0)
        (void)mkdir("/run/sshd", 0755);
    (void)path_in(server->f, "sshd_config", config, sizeof(config));
    (void)path_in(server->f, "log", log, sizeof(log));
    assert_int_equal(posix_spawn(&server->pid, SSHD, NULL, NULL, argv, environ), 0);
    for (int i = 0; i < 300 && !answers(server->port); i++)
        (void)usleep(20000);
}

static int ssh_setup(void **state)
{
    struct server *server = calloc(1, sizeof(*server));
    void *inner = NULL;

    if (!server || fixture_setup(&inner))
        return -1;
    server->f = inner;
    *state = server;
    server->port = free_port();
    configure(server->f, server->port);
    start_server(server);
    return 0;
}

static int ssh_teardown(void **state)
{
    struct server *server = *state;
    void *inner = server->f;
    pid_t pid = server->pid;

    sbx_transport_free(server->f->transport);
    server->f->transport = NULL;
    if (pid > 0) {
        (void)kill(pid, SIGTERM);
        (void)waitpid(pid, NULL, 0);
    }
    free(server);
    return fixture_teardown(&inner);
}

static void open_ssh(struct server *server)
{
    char config[128], dir[128];
    const char *argv[] = {"ssh", "-F", path_in(server->f, "ssh_config", config, sizeof(config)),
                          "box", "sh", NULL};

    assert_int_equal(sbx_transport_exec_new(path_in(server->f, "files", dir, sizeof(dir)), argv,
                                            &server->f->transport, &server->f->err),
                     SBX_OK);
}

/* Lists and fetches, with one connection for both. */
static void test_pass(void **state)
{
    static const char nonce[] = "00112233445566778899aabbccddeeff";
    static const struct sbx_list_limits limits = {SBX_MIB, 1000};
    struct server *server = *state;
    struct fixture *f = server->f;
    struct sbx_buf script = SBX_BUF_INIT(SBX_MIB), snippet = SBX_BUF_INIT(SBX_MIB);
    struct sbx_call call = call_within(f, 30);
    const struct sbx_record *records;
    struct sbx_list_script args;
    struct sbx_list *list;
    struct sbx_exit ended;
    enum sbx_status st;
    size_t n = 0;

    make_dir(f, "files");
    make_file(f, "files/a b", "content\0\n", 9);
    make_file(f, "files/z", "", 0);
    open_ssh(server);
    args = (struct sbx_list_script){nonce, f->transport->root, SBX_MIB, NULL, 0};
    assert_int_equal(sbx_list_script(&args, &script, NULL), SBX_OK);
    assert_int_equal(sbx_list_new(nonce, &limits, &list, NULL), SBX_OK);
    st = f->transport->ops.run(f->transport->self, &call, script.data, script.len,
                               (struct sbx_sink){sbx_list_write, list}, to_buf(&f->diag), &ended,
                               &f->err);
    if (st)
        fail_msg("%s", f->err.msg);
    st = sbx_list_end(list, ended, &f->err);
    if (st)
        fail_msg("%s", f->err.msg);
    records = sbx_list_records(list, &n);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++)
        (void)want(f, records[i].path, records[i].size);
    call.tools = sbx_list_frame(list)->tools;
    assert_int_equal(sbx_list_snippet(f->transport->root, call.tools, &snippet, NULL), SBX_OK);
    call.snippet = snippet.data;
    assert_int_equal(fetch(f, &call), SBX_OK);
    assert_int_equal(f->files[0].result, SBX_FETCH_OK);
    assert_bytes(&f->files[0].content, "content\0\n", 9);
    assert_true(f->files[0].has_record);
    assert_int_equal(f->files[1].result, SBX_FETCH_OK);
    sbx_list_free(list);
    sbx_buf_done(&script);
    sbx_buf_done(&snippet);
}

static enum sbx_status run(struct fixture *f, double seconds, const char *script,
                           struct sbx_exit *ret)
{
    struct sbx_call call = call_within(f, seconds);

    sbx_buf_clear(&f->out);
    return f->transport->ops.run(f->transport->self, &call, script, strlen(script), to_buf(&f->out),
                                 to_buf(&f->diag), ret, &f->err);
}

static void test_status(void **state)
{
    struct server *server = *state;
    struct sbx_exit ended = {0};

    open_ssh(server);
    assert_int_equal(run(server->f, 20, "echo err >&2; echo hi; (exit 3)", &ended), SBX_OK);
    assert_text(&server->f->out, "hi\n\n");
    assert_text(&server->f->diag, "err\n");
    assert_int_equal(ended.code, 3);
}

static void test_deadline(void **state)
{
    struct server *server = *state;
    uint64_t began = sbx_clock_now();
    struct sbx_exit ended;

    open_ssh(server);
    assert_int_equal(run(server->f, 2, "echo $$; exec sleep 60", &ended), SBX_E_DEADLINE);
    assert_true(seconds_since(began) < 3.5);
}

static void test_refused(void **state)
{
    struct server *server = *state;
    char path[128];
    struct sbx_exit ended;

    assert_int_equal(unlink(path_in(server->f, "authorized", path, sizeof(path))), 0);
    open_ssh(server);
    assert_int_equal(run(server->f, 20, "echo hi", &ended), SBX_E_UNREACHABLE);
    assert_has(server->f->err.msg, "status 255");
    assert_has(server->f->err.msg, "Permission denied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a directory is listed and fetched", test_pass, ssh_setup, ssh_teardown, NULL},
        {"a script's status and its standard error come through", test_status, ssh_setup,
         ssh_teardown, NULL},
        {"a deadline ends the connection", test_deadline, ssh_setup, ssh_teardown, NULL},
        {"a refused key is told with ssh's own words", test_refused, ssh_setup, ssh_teardown, NULL},
    };

    return run_all("transport/ssh", tests, N_ELEMENTS(tests));
}
