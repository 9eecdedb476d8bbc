/* What a SOURCE of the command line means, and transports of a program's own. */
#include "tests/unit/transport/fixture.h"

#include "sbx/verdict.h"

struct source {
    const char *name;
    const char *source;
    bool command;
    const char *root;     /* NULL: refused */
    const char *identity; /* or what the refusal says */
};

/* BLAKE2b-256 of the arguments "ssh", "host" and "sh", each with its NUL. */
#define DIGEST "4fa1cdc630054d782a2277f9dbdc2f7c6e11151ce2a8896fb02003ea88283ea7"

static const struct source sources[] = {
    {"a directory is local", "/usr", false, "/usr", "local:/usr"},
    {"local: is local", "local:/usr", false, "/usr", "local:/usr"},
    {"a local identity has no links", "/usr/../usr/./", false, "/usr/../usr/./", "local:/usr"},
    {"a directory that does not exist keeps its name", "/no/such", false, "/no/such",
     "local:/no/such"},
    {"a ':' after a '/' is no scheme", "./foo:bar", false, "./foo:bar", "local:/./foo:bar"},
    {"a relative directory is told absolutely", "no/such", false, "no/such", "local:/no/such"},
    {"a local directory may have any name", "local:a:b", false, "a:b", "local:/a:b"},
    {"exec: is a directory and a command", "exec:/srv/a b", true, "/srv/a b",
     "exec:/srv/a b -- " DIGEST},
    {"exec: may be the root", "exec:/", true, "/", "exec:/ -- " DIGEST},
    {"exec: needs a command", "exec:/srv", false, NULL, "COMMAND"},
    {"exec: needs an absolute directory", "exec:srv", true, NULL, "absolute"},
    {"exec: needs a directory", "exec:", true, NULL, "absolute"},
    {"a command goes with exec: only", "/usr", true, NULL, "exec: only"},
    {"a command does not go with local:", "local:/usr", true, NULL, "exec: only"},
    {"an unknown scheme is refused, with a way out", "foo:bar", false, NULL,
     "unknown source scheme 'foo:'; write './foo:bar'"},
    {"a URL of an unknown scheme is refused", "https://host/dir", false, NULL,
     "unknown source scheme 'https:'"},
    {"a command does not go with execd:", "execd://host/dir", true, NULL, "exec: only"},
    {"a scheme is refused with a command too", "foo://host/dir", true, NULL, "exec: only"},
    {"execd: needs a host", "execd:///dir", false, NULL, "no host"},
    {"execd: needs a directory", "execd://host", false, NULL, "absolute directory"},
    {"execd: takes no user", "execd://me@host/dir", false, NULL, "no host"},
    {"opensandbox: needs an id", "opensandbox:///dir", false, NULL, "no id"},
    {"opensandbox: takes no path as an id", "opensandbox://../dir", false, NULL, "no id of a"},
    {"a scheme is told escaped", "\033[31m:x", false, NULL, "'\\x1b[31m:'"},
    {"an empty scheme is refused", ":x", false, NULL, "unknown source scheme ':'"},
    {"an empty directory is refused", "", false, NULL, "empty"},
    {"an empty local directory is refused", "local:", false, NULL, "empty"},
};

static void test_source(void **state)
{
    static const char *const command[] = {"ssh", "host", "sh", NULL};
    struct sbx_source_options options = SBX_SOURCE_OPTIONS_INIT;
    struct fixture *f = *state;
    const struct source *row = f->row;
    char cwd[256];
    enum sbx_status st;

    if (row->command)
        options.command = command;
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir("/"), 0);
    st = sbx_transport_open(row->source, &options, &f->transport, &f->err);
    assert_int_equal(chdir(cwd), 0);
    if (!row->root) {
        assert_int_equal(st, SBX_E_USAGE);
        assert_int_equal(f->err.status, SBX_E_USAGE);
        assert_has(f->err.msg, row->identity);
        assert_null(f->transport);
        return;
    }
    assert_int_equal(st, SBX_OK);
    assert_string_equal(f->transport->root, row->root);
    if (strncmp(row->source, "exec:", 5) == 0) {
        assert_string_equal(f->transport->identity, row->identity);
        assert_null(f->transport->local_dir);
        assert_true(f->transport->ops.serial);
    } else {
        assert_string_equal(f->transport->local_dir, row->root);
        /* From "/" a relative name gets two slashes, which is the same place. */
        assert_true(strcmp(f->transport->identity, row->identity) == 0 ||
                    (strncmp(f->transport->identity, "local://", 8) == 0 &&
                     strcmp(f->transport->identity + 8, row->identity + 7) == 0));
    }
}

static const struct plain {
    const char *name;
    const char *host;
    bool tls, warns;
} plains[] = {
    {"http to this machine is no warning", "127.0.0.1", false, false},
    {"http to this machine by name is no warning", "localhost", false, false},
    {"http to this machine by IPv6 is no warning", "::1", false, false},
    {"http to a private address is one", "10.0.0.1", false, true},
    {"http to another host is one", "sandbox.example", false, true},
    {"https is none", "sandbox.example", true, false},
};

static void test_plain_http(void **state)
{
    struct fixture *f = *state;
    const struct plain *row = f->row;
    struct sbx_execd_options execd = SBX_EXECD_OPTIONS_INIT;
    struct sbx_opensandbox_options box = SBX_OPENSANDBOX_OPTIONS_INIT;
    unsigned warning = row->warns ? 1u << SBX_WARN_PLAIN_HTTP : 0;
    char server[64];

    execd.host = row->host;
    execd.dir = "/srv";
    execd.tls = row->tls;
    assert_int_equal(sbx_transport_execd_new(&execd, &f->transport, &f->err), SBX_OK);
    assert_int_equal(f->transport->warnings, warning);
    sbx_transport_free(f->transport);
    f->transport = NULL;
    (void)snprintf(server, sizeof(server), "%s%s%s%s", row->tls ? "https://" : "",
                   strchr(row->host, ':') ? "[" : "", row->host, strchr(row->host, ':') ? "]" : "");
    box.id = "box";
    box.dir = "/srv";
    box.server = server;
    assert_int_equal(sbx_transport_opensandbox_new(&box, &f->transport, &f->err), SBX_OK);
    assert_int_equal(f->transport->warnings, warning);
}

static int destroyed;

static void on_destroy(void *self)
{
    assert_ptr_equal(self, &destroyed);
    destroyed++;
}

static enum sbx_status no_run(void *self, const struct sbx_call *call, const char *script,
                              size_t script_len, struct sbx_sink out, struct sbx_sink diag,
                              struct sbx_exit *ret_exit, struct sbx_error *err)
{
    (void)self, (void)call, (void)script, (void)script_len, (void)out, (void)diag, (void)ret_exit;
    return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "nobody there");
}

static enum sbx_status no_fetch(void *self, const struct sbx_call *call,
                                const struct sbx_queue *queue, struct sbx_sink diag,
                                struct sbx_error *err)
{
    (void)self, (void)call, (void)queue, (void)diag;
    return sbx_err_set(err, SBX_E_UNREACHABLE, 0, "nobody there");
}

static void test_own(void **state)
{
    const struct sbx_transport_ops ops = {.version = SBX_TRANSPORT_OPS_VERSION,
                                          .run = no_run,
                                          .fetch = no_fetch,
                                          .destroy = on_destroy};
    struct sbx_transport *transport = NULL;

    (void)state;
    destroyed = 0;
    assert_int_equal(sbx_transport_new(&ops, &destroyed, "/dir", "mine", &transport, NULL), SBX_OK);
    assert_string_equal(transport->root, "/dir");
    assert_string_equal(transport->identity, "mine");
    assert_int_equal(destroyed, 0);
    sbx_transport_free(transport);
    assert_int_equal(destroyed, 1);
    sbx_transport_free(NULL);
}

static void test_own_refused(void **state)
{
    const struct sbx_transport_ops good = {.version = SBX_TRANSPORT_OPS_VERSION,
                                           .run = no_run,
                                           .fetch = no_fetch,
                                           .destroy = on_destroy};
    struct sbx_transport_ops ops[3] = {good, good, good};
    struct sbx_transport *transport = NULL;

    (void)state;
    ops[0].version++;
    ops[1].run = NULL;
    ops[2].fetch = NULL;
    destroyed = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sbx_transport_new(&ops[i], &destroyed, "/dir", "mine", &transport, NULL),
                         SBX_E_USAGE);
        assert_int_equal(destroyed, i + 1);
    }
    assert_int_equal(sbx_transport_new(&good, &destroyed, NULL, "mine", &transport, NULL),
                     SBX_E_USAGE);
    assert_int_equal(destroyed, 4);
    assert_null(transport);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(sources) + N_ELEMENTS(plains) + 2];
    size_t n = add_rows(tests, 0, ROWS(sources), test_source);

    n = add_rows(tests, n, ROWS(plains), test_plain_http);

    n = add_test(tests, n, "a program may bring a transport of its own", test_own);
    n = add_test(tests, n, "what is handed over is freed on failure too", test_own_refused);
    return run_all("transport/transport", tests, n);
}
