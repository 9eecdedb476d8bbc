"""Passes over execd, against a server that behaves as execd does."""

import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

import servers

MIB = 1 << 20


class Mirror(servers.Case):
    def test_what_is_there_is_mirrored_and_costs_nothing_the_second_time(self):
        for i in range(150):
            self.make(f"d{i % 7}/f{i}", os.urandom(i * 37))
        self.make("empty")
        self.make("big", os.urandom(40 * MIB))
        self.serve()
        run = self.pull()
        self.assertEqual((run.status, run.count("published")), (0, 152), run.err)
        self.assertEqual(self.published(), self.content())
        run = self.pull()
        self.assertEqual((run.status, run.count("unchanged")), (0, 152), run.err)
        self.assertEqual(run.report["bytes"]["received"], 0)

    def content(self):
        found = {}
        top = os.fsencode(self.src)
        for parent, _, files in os.walk(top):
            for name in files:
                with open(os.path.join(parent, name), "rb") as file:
                    found[os.path.relpath(os.path.join(parent, name), top)] = file.read()
        return found

    def test_B040_names_reach_the_server_as_they_are(self):
        names = ["$HOME", "a$1", "${x", "x$", "~", "~root", "a b", "a+b", "a%41b", "a;b", "a&path=c",
                 "#a", "-n", "$(id)", "`id`", "a'b", "caf\u00e9", "\u202etxt", "x" * 255]
        for i, name in enumerate(names):
            self.make(name, b"content %d" % i)
        self.make("$d/$e/f", b"below")
        self.make("x", b"what x$1 would give")
        self.serve(HOME="/nowhere")
        run = self.pull("--names", "posix")
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(self.published(), self.content())
        asked = [r["target"] for r in self.requests() if r["target"].startswith("/files/download")]
        self.assertFalse([target for target in asked if "$" in target or "%24" in target])

    def test_a_second_pass_publishes_what_changed(self):
        self.make("a", b"AAAA", mtime=1000)
        self.make("b", b"same")
        self.serve()
        self.assertEqual(self.pull().status, 0)
        self.make("a", b"BBBB", mtime=2000)
        run = self.pull()
        self.assertEqual((run.outcome("a"), run.outcome("b")), ("published", "unchanged"))
        self.assertEqual(self.published()[b"a"], b"BBBB")

    def test_outputs_of_our_commands_are_gone_after_a_pass(self):
        self.make("a$", b"1")
        self.make("b", b"2")
        self.serve()
        self.assertEqual(self.pull().status, 0)
        self.assertEqual(os.listdir(self.outputs), [])

    def test_outputs_of_our_commands_are_not_listed(self):
        self.serve()
        self.make("a", b"1", root=self.outputs)
        for expected in ("published", "unchanged"):
            run = self.pull(root=self.outputs)
            self.assertEqual((run.status, run.report["listing"]["records"]), (0, 1), run.err)
            self.assertEqual(run.outcome("a"), expected)
        self.assertEqual(os.listdir(self.outputs), ["a"])

    def test_each_command_has_a_time_limit_and_no_start_file(self):
        self.make("a", b"1")
        self.serve()
        self.pull("--deadline", "30")
        commands = [r for r in self.requests() if r["method"] == "POST"]
        self.assertGreaterEqual(len(commands), 2)  # the listing, and what confirms
        for request in commands:
            body = servers.json.loads(request["body"])
            self.assertTrue(0 < body["timeout"] <= 30001, body["timeout"])
            self.assertEqual(body["envs"], {"BASH_ENV": "", "ENV": "", "LC_ALL": "C"})

    def test_a_file_is_asked_for_in_the_range_of_its_listed_size(self):
        self.make("a", b"x" * 1000)
        self.make("empty")
        self.make("big", b"y" * (33 * MIB))
        self.serve()
        self.assertEqual(self.pull("--jobs", "1").status, 0)
        ranges = [dict((k.lower(), v) for k, v in r["headers"])["range"] for r in self.requests()
                  if r["target"].startswith("/files/download")]
        self.assertEqual(sorted(ranges), sorted([
            "bytes=0-999", "bytes=0-0", f"bytes=0-{16 * MIB - 1}",
            f"bytes={16 * MIB}-{32 * MIB - 1}", f"bytes={32 * MIB}-{33 * MIB - 1}"]))

    def test_a_file_of_several_blocks_is_confirmed_always(self):
        self.make("a", b"1")
        self.make("big", b"y" * (17 * MIB))
        self.serve()
        run = self.pull("--no-confirm")
        self.assertEqual(run.status, 0, run.err)
        self.assertTrue(run.files[b"a"].get("unconfirmed"))
        self.assertFalse(run.files[b"big"].get("unconfirmed"))
        self.assertEqual(len([r for r in self.requests() if r["method"] == "POST"]), 2)

    def test_a_token_is_asked_for(self):
        self.make("a", b"1")
        self.serve("--token", "s3cret-token")
        run = self.pull(env=self.env(EXECD_ACCESS_TOKEN="s3cret-token"))
        self.assertEqual(run.status, 0, run.err)
        for env in ({}, {"EXECD_ACCESS_TOKEN": "wr0ng-token"}):
            run = self.pull(env=self.env(**env))
            self.assertEqual(run.status, 3)
            self.assertEqual(run.report["error"]["status"], "unauthorised")
            self.assertNotIn("wr0ng-token", run.err + run.out.decode())
        path = self.script("token", "s3cret-token\n")
        run = self.pull(env=self.env(EXECD_ACCESS_TOKEN_FILE=path))
        self.assertEqual(run.status, 0, run.err)

    def test_roots_are_told_apart(self):
        self.make("a", b"1")
        self.serve()
        for root, state in ((self.src + "/no", "missing"), (self.src + "/a", "notdir")):
            run = self.pull(root=root)
            self.assertEqual((run.status, run.report["listing"]["state"]), (3, state))

    def test_no_proxy_stands_before_this_machine(self):
        self.make("a", b"1")
        self.serve()
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            proxy = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            run = self.pull(env=self.env(http_proxy=proxy, all_proxy=proxy, ALL_PROXY=proxy))
        self.assertEqual(run.status, 0, run.err)

    def test_a_server_that_is_not_there_is_unreachable(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            run = self.sync(source=self.url(nobody.getsockname()[1]))
        self.assertEqual((run.status, run.report["error"]["status"]), (3, "unreachable"))
        self.assertIn("127.0.0.1", run.err)
        self.assertEqual(self.published(), {})

    def test_B088_a_file_that_may_not_be_read_is_that_file_alone(self):
        self.make("a", b"1")
        self.make("b", b"2")
        self.serve()
        os.chmod(self.make("c", b"3"), 0)
        run = self.pull()
        # Whoever may read everything, as root does, reads this, too.
        self.assertIn((run.status, run.outcome("c")), ((0, "published"), (1, "failed")))


class Encrypted(servers.Case):
    """The look-alike behind a relay that speaks TLS."""

    def setUp(self):
        super().setUp()
        self.make("a", b"1" * 100000)
        self.make("b", b"2")
        self.serve()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)

    def certificate(self, name):
        """A certificate for `name` alone, which signs itself."""
        paths = [os.path.join(self.work, kind) for kind in ("key", "cert")]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName={name}",
             "-keyout", paths[0], "-out", paths[1]],
            check=True, capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(paths[1], paths[0])
        threading.Thread(target=self.accept, args=(context,), daemon=True).start()
        return paths[1]

    def accept(self, context):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.relay, args=(context, peer), daemon=True).start()

    def relay(self, context, peer):
        try:
            with context.wrap_socket(peer, server_side=True) as inner, \
                    socket.create_connection(("127.0.0.1", self.port)) as outer:
                back = threading.Thread(target=self.copy, args=(outer, inner), daemon=True)
                back.start()
                self.copy(inner, outer)
                outer.shutdown(socket.SHUT_WR)
                back.join()
        except (OSError, ssl.SSLError):
            pass

    @staticmethod
    def copy(source, sink):
        try:
            while part := source.recv(1 << 16):
                sink.sendall(part)
        except (OSError, ssl.SSLError):
            pass

    def pull_tls(self, *options):
        port = self.listener.getsockname()[1]
        return self.sync(*options, source=f"execds://127.0.0.1:{port}{self.src}")

    def test_a_certificate_that_is_trusted_is_enough(self):
        run = self.pull_tls("--cacert", self.certificate("IP:127.0.0.1"))
        self.assertEqual((run.status, run.count("published")), (0, 2), run.err)
        self.assertEqual(run.report["warnings"], [])
        self.assertEqual(self.published()[b"a"], b"1" * 100000)

    def test_a_certificate_that_nobody_trusts_is_refused(self):
        self.certificate("IP:127.0.0.1")
        run = self.pull_tls()
        self.assertEqual((run.status, run.report["error"]["status"]), (3, "unreachable"))
        self.assertIn("certificate", run.report["error"]["message"])
        self.assertEqual(self.requests_so_far(), [])

    def test_a_certificate_of_another_host_is_refused(self):
        run = self.pull_tls("--cacert", self.certificate("IP:127.0.0.2"))
        self.assertEqual((run.status, run.report["error"]["status"]), (3, "unreachable"))
        self.assertEqual(self.requests_so_far(), [])

    def requests_so_far(self):
        return self.requests() if os.path.exists(self.log) else []

    def test_tls_to_a_server_that_speaks_none_is_refused(self):
        run = self.sync("--deadline", "5", source=self.url().replace("execd:", "execds:"))
        self.assertEqual((run.status, run.report["error"]["status"]), (3, "unreachable"))


class Changes(servers.Case):
    """Something is done to a file after it was listed: a command that is slow to end gives time."""

    def pull_and(self, change, *options):
        """A pass in which `change` is called between listing and transfer."""
        gate = os.path.join(self.work, "gate")
        find = self.script(
            "find",
            f"#!/bin/sh\n/usr/bin/find \"$@\"; s=$?\n"
            f"case $* in *prune*|*-type*f*) [ -e '{gate}' ] || {{ : >'{gate}.listed'; "
            f"while [ ! -e '{gate}' ]; do sleep 0.02; done; }} ;; esac\nexit $s\n",
        )
        self.serve(PATH=os.path.dirname(find) + ":" + os.environ["PATH"])
        process = self.start("--json", *options, self.url(), self.dst)
        self.until(lambda: os.path.exists(gate + ".listed"), "the listing")
        change()
        with open(gate, "wb"):
            pass
        return self.finish(process).read_report()

    def setUp(self):
        super().setUp()
        for name in ("a", "f", "z"):
            self.make(name, b"old " + name.encode())

    def replaced(self, make):
        path = os.path.join(self.src, "f")

        def change():
            os.unlink(path)
            make(path)

        return change

    def assert_others(self, run):
        self.assertEqual((run.outcome("a"), run.outcome("z")), ("published", "published"))

    def test_B055_a_file_that_vanished_is_that_file_alone(self):
        run = self.pull_and(lambda: os.unlink(os.path.join(self.src, "f")))
        self.assertEqual((run.status, run.why("f")), (1, "vanished"), run.err)
        self.assert_others(run)

    def test_a_file_that_grew_is_fetched_as_it_is_then(self):
        run = self.pull_and(lambda: self.make("f", b"new and longer than before"))
        self.assertEqual((run.status, run.outcome("f")), (0, "published"), run.err)
        self.assertEqual(self.published()[b"f"], b"new and longer than before")

    def test_a_file_that_shrank_is_fetched_as_it_is_then(self):
        run = self.pull_and(lambda: self.make("f", b""))
        self.assertEqual((run.status, self.published()[b"f"]), (0, b""), run.err)

    def test_a_file_rewritten_to_the_same_size_is_no_mix(self):
        run = self.pull_and(lambda: self.make("f", b"new f"))
        self.assertEqual((run.status, self.published()[b"f"]), (0, b"new f"), run.err)

    def test_a_directory_in_place_of_a_file_is_not_a_file(self):
        run = self.pull_and(self.replaced(os.mkdir))
        self.assertEqual(run.status, 1, run.err)
        self.assertIn(run.why("f"), ("changed", "vanished", "server"))
        self.assert_others(run)

    def test_a_link_in_place_of_a_file_is_not_followed_to_a_name(self):
        run = self.pull_and(self.replaced(lambda path: os.symlink("/etc/hostname", path)))
        self.assertEqual(run.status, 1, run.err)
        self.assertNotIn(b"f", self.published())
        self.assert_others(run)

    def test_a_fifo_in_place_of_a_file_holds_nothing_up_for_longer_than_the_deadline(self):
        start = time.monotonic()
        run = self.pull_and(self.replaced(os.mkfifo), "--deadline", "6")
        self.assertLess(time.monotonic() - start, 8)
        self.assertEqual(run.status, 1, run.err)
        self.assertNotIn(b"f", self.published())
        self.assert_others(run)
        with open(os.path.join(self.src, "f"), "wb"):  # the server's thread may go
            pass


class Leaving(servers.Case):
    """Other clients' commands live, however a pass ends: execd sends on the SIGPIPE that it gets."""

    def setUp(self):
        super().setUp()
        for i in range(4):
            with open(self.make(f"big{i}"), "wb") as file:
                file.truncate(400 * MIB)
        self.serve()

    def received(self):
        """Requests for files so far."""
        if not os.path.exists(self.log):
            return []
        return [r for r in self.requests() if r["target"].startswith("/files/download")]

    def begin(self, *options):
        before = len(self.received())
        process = self.start("--json", "--durability", "none", *options, self.url(), self.dst)
        self.until(lambda: len(self.received()) > before, "a download", 30)
        return process

    def test_a_plain_close_in_mid_body_would_kill(self):
        thread = self.bystander()
        for _ in range(3):
            request = f"GET /files/download?path={self.src}/big0 HTTP/1.1\r\nHost: x\r\n\r\n"
            with socket.create_connection(("127.0.0.1", self.port)) as peer:
                peer.sendall(request.encode())
                peer.recv(1 << 16)
        self.assertFalse(self.survived(thread))

    def test_B085_bystanders_live_when_a_pass_is_cancelled(self):
        for _ in range(3):
            thread = self.bystander()
            process = self.begin()
            time.sleep(0.1)
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            run = self.finish(process).read_report()
            self.assertLess(time.monotonic() - start, 3)
            self.assertEqual(run.status, 128 + signal.SIGTERM, run.err)
            self.assertTrue(self.survived(thread))

    def test_bystanders_live_when_a_pass_meets_its_deadline(self):
        for i in range(20):
            with open(self.make(f"more{i}"), "wb") as file:
                file.truncate(400 * MIB)
        thread = self.bystander("sleep 6")
        start = time.monotonic()
        run = self.pull("--deadline", "4", "--max-bytes", "100G", "--durability", "none")
        self.assertLess(time.monotonic() - start, 8)
        self.assertEqual(run.status, 1, run.err)
        self.assertTrue(self.survived(thread))

    def test_bystanders_live_when_a_file_grows(self):
        thread = self.bystander()
        process = self.begin("--jobs", "1")
        for i in range(4):
            with open(os.path.join(self.src, f"big{i}"), "ab") as file:
                file.write(b"more")
        run = self.finish(process).read_report()
        self.assertIn(run.status, (0, 1), run.err)
        self.assertTrue(self.survived(thread))


if __name__ == "__main__":
    unittest.main()
