"""Passes over OpenSandbox's lifecycle server: where a sandbox is, whether it lives, for how long."""

import datetime
import http.client
import json
import os
import time
import unittest
import urllib.parse

import servers

KEY = "api-k3y"


class Case(servers.Case):
    def pull_box(self, *options, sandbox=servers.SANDBOX, key=KEY, domain=None, **more):
        env = self.env(OPEN_SANDBOX_DOMAIN=domain or f"127.0.0.1:{self.lifecycle}", **more)
        if key:
            env["OPEN_SANDBOX_API_KEY"] = key
        source = f"opensandbox://{sandbox}{urllib.parse.quote(self.src)}"
        run = self.sync(*options, source=source, env=env)
        self.assertNotIn(KEY, run.err + run.out.decode())
        return run

    def serve_box(self, *options, **env):
        self.serve("--api-key", KEY, *options, **env)

    def setUp(self):
        super().setUp()
        self.make("a", b"1")
        self.make("b$", b"2")

    def assert_failed(self, run, status, *words):
        self.assertEqual((run.status, run.report["error"]["status"]), (3, status), run.err)
        for word in words:
            self.assertIn(word, run.report["error"]["message"])
        self.assertEqual(self.published(), {})

    def assert_key_kept(self):
        """The API key goes to the lifecycle server, and nowhere else."""
        for request in self.requests("execd"):
            self.assertNotIn(KEY, json.dumps(request["headers"]))

    def control(self, **what):
        peer = http.client.HTTPConnection("127.0.0.1", self.lifecycle, timeout=10)
        peer.request("POST", "/control", json.dumps(what), {"OPEN-SANDBOX-API-KEY": KEY})
        self.assertLess(peer.getresponse().status, 300)
        peer.close()


class Endpoints(Case):
    def test_a_sandbox_is_found_and_mirrored(self):
        self.serve_box()
        run = self.pull_box()
        self.assertEqual((run.status, run.count("published")), (0, 2), run.err)
        self.assertEqual(self.published(), {b"a": b"1", b"b$": b"2"})
        self.assertEqual(self.pull_box().count("unchanged"), 2)
        self.assert_key_kept()

    def test_headers_of_the_endpoint_go_with_each_call(self):
        self.serve_box("--endpoint-header", "OpenSandbox-Ingress-To: box-44772")
        self.assertEqual(self.pull_box().status, 0)
        self.assertTrue(self.requests("execd"))
        for request in self.requests("execd"):
            self.assertIn("box-44772", [value for _, value in request["headers"]])
        for request in self.requests("lifecycle"):
            self.assertNotIn("box-44772", [value for _, value in request["headers"]])
        self.assert_key_kept()

    def test_the_form_of_docker_is_followed(self):
        self.serve_box("--endpoint", "127.0.0.1:{port}/proxy/44772")
        run = self.pull_box()
        self.assertEqual((run.status, run.count("published")), (0, 2), run.err)
        self.assertIn("/proxy/", self.requests("execd")[0]["target"])

    def test_the_way_through_the_server_is_taken_if_wanted(self):
        self.serve_box()
        run = self.pull_box(OPEN_SANDBOX_USE_SERVER_PROXY="1")
        self.assertEqual((run.status, run.count("published")), (0, 2), run.err)
        asked = [r["target"] for r in self.requests("lifecycle")]
        self.assertTrue(any("use_server_proxy=true" in target for target in asked))
        self.assertTrue(any("/proxy/44772/command" in target for target in asked), asked)
        self.assert_key_kept()

    def test_the_server_may_be_written_in_several_ways(self):
        self.serve_box()
        for text in ("http://127.0.0.1:{}", "127.0.0.1:{}/", "127.0.0.1:{}/v1", "localhost:{}/v1/"):
            self.assertEqual(self.pull_box(domain=text.format(self.lifecycle)).status, 0, text)

    def test_bad_endpoints_are_refused(self):
        for text in ("http://127.0.0.1:1/", "me@127.0.0.1:1", "127.0.0.1:99999", "", "a b:1",
                     "127.0.0.1:1/../x", "127.0.0.1:1/?q", "127.0.0.1:1/%00"):
            with self.subTest(text):
                self.serve_box("--endpoint", text)
                self.assert_failed(self.pull_box(), "remote", "endpoint", "127.0.0.1")

    def test_a_way_through_the_server_that_leads_elsewhere_is_refused(self):
        self.serve_box()
        self.port, saved = self.lifecycle, self.port
        self.play(
            "GET /v1/sandboxes/" + servers.SANDBOX + "/endpoints "
            + r'send HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{"endpoint":"10.0.0.1:8080"}'
        )
        self.port = saved
        run = self.pull_box(
            domain=f"127.0.0.1:{self.lie}", OPEN_SANDBOX_USE_SERVER_PROXY="true"
        )
        self.assert_failed(run, "remote", "10.0.0.1")
        self.assertEqual(self.requests("execd"), [])


class Answers(Case):
    """What the lifecycle server says that is of no use."""

    def play_lifecycle(self, rule):
        self.port, saved = self.lifecycle, self.port
        self.play(rule)
        self.port = saved

    def test_answers_that_are_none_end_the_pass(self):
        rows = [
            (r"send HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "remote"),
            (r"send HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html", "remote"),
            (r"send HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "remote"),
            (r"send HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{ ; close", "unreachable"),
            (r"send HTTP/1.1 200 OK\r\n\r\n ; loop [[[[[[[[[[[[", "limit"),
            (r'send HTTP/1.1 200 OK\r\nContent-Length: 47\r\n\r\n{"status":{"state":"Running"},"expiresAt":"no"}',
             "remote"),
            (r"send HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
             "unreachable"),
            (r"send HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "unreachable"),
            (r"send HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", "gone"),
            ("silence", "deadline"),
            ("reset", "unreachable"),
        ]
        self.serve_box()
        for actions, status in rows:
            with self.subTest(actions):
                self.play_lifecycle("GET /v1/sandboxes/ " + actions)
                start = time.monotonic()
                run = self.pull_box("--deadline", "3", domain=f"127.0.0.1:{self.lie}")
                self.assertLess(time.monotonic() - start, 6)
                self.assert_failed(run, status)
        self.assertEqual(self.requests("execd"), [])

    def test_headers_that_would_break_requests_are_refused(self):
        self.serve_box()
        for name, value in (("X-A", "b\\r\\nX-Evil: 1"), ("Host", "evil"), ("Content-Length", "5"),
                            ("A B", "c"), ("", "x"), ("Transfer-Encoding", "chunked")):
            body = '{"endpoint":"127.0.0.1:%d","headers":{"%s":"%s"}}' % (self.port, name, value)
            with self.subTest(name):
                escaped = body.replace("\\", "\\\\")
                self.play_lifecycle(
                    "GET /v1/sandboxes/" + servers.SANDBOX + "/endpoints send HTTP/1.1 200 OK"
                    rf"\r\nContent-Length: {len(body)}\r\n\r\n{escaped}"
                )
                run = self.pull_box(domain=f"127.0.0.1:{self.lie}")
                self.assert_failed(run, "remote", "header")
        self.assertEqual(self.requests("execd"), [])


class Lives(Case):
    def test_a_sandbox_that_does_not_run_is_not_woken(self):
        for state, status in (("Paused", "unreachable"), ("Pending", "unreachable"),
                              ("Terminated", "gone"), ("Failed", "gone")):
            with self.subTest(state):
                self.serve_box("--state", state)
                self.assert_failed(self.pull_box(), status, state)
                self.assertEqual(self.requests("execd"), [])
                self.assertEqual({r["method"] for r in self.requests("lifecycle")}, {"GET"})

    def test_an_unknown_sandbox_is_gone(self):
        self.serve_box()
        self.assert_failed(self.pull_box(sandbox="0"), "gone", "'0'")

    def test_a_key_is_needed(self):
        self.serve_box()
        for key in (None, "wrong-key"):
            self.assert_failed(self.pull_box(key=key), "unauthorised", "127.0.0.1")
        path = self.script("key", KEY + "\n")
        self.assertEqual(self.pull_box(key=None, OPEN_SANDBOX_API_KEY_FILE=path).status, 0)

    def renewals(self):
        return [r for r in self.requests("lifecycle") if "renew" in r["target"]]

    def test_a_lease_that_would_run_out_is_extended(self):
        self.serve_box("--expires-in", "20")
        run = self.pull_box("--deadline", "30")
        self.assertEqual((run.status, len(self.renewals())), (0, 1), run.err)
        until = json.loads(self.renewals()[0]["body"])["expiresAt"]
        end = datetime.datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp()
        self.assertGreater(end, time.time() + 30)

    def test_a_lease_is_never_made_shorter(self):
        for life in ("7200", "never"):
            self.serve_box("--expires-in", life)
            self.assertEqual((self.pull_box().status, self.renewals()), (0, []))

    def test_a_lease_that_is_not_extended_is_a_warning(self):
        self.serve_box("--expires-in", "20")
        self.port, saved = self.lifecycle, self.port
        self.play("POST /v1/sandboxes/ " + r"send HTTP/1.1 409 No\r\nContent-Length: 0\r\n\r\n")
        self.port = saved
        run = self.pull_box(domain=f"127.0.0.1:{self.lie}")
        self.assertEqual((run.status, run.report["warnings"]), (0, ["lease"]), run.err)

    def test_a_sandbox_that_dies_half_way_leaves_what_was_confirmed(self):
        for i in range(40):
            with open(self.make(f"big{i:02}"), "wb") as file:
                file.truncate(32 << 20)
        self.serve_box()
        env = self.env(
            OPEN_SANDBOX_DOMAIN=f"127.0.0.1:{self.lifecycle}", OPEN_SANDBOX_API_KEY=KEY
        )
        source = f"opensandbox://{servers.SANDBOX}{urllib.parse.quote(self.src)}"
        process = self.start("--json", "--jobs", "1", source, self.dst, env=env)
        self.until(lambda: os.path.exists(os.path.join(self.dst, "big01")), "a first batch", 60)
        self.control(sandbox=servers.SANDBOX, expires_in=0)
        run = self.finish(process).read_report()
        self.assertEqual(run.status, 1, run.err)
        self.assertGreater(run.count("published"), 0)
        self.assertGreater(run.report["reasons"]["source-lost"], 0)
        self.assertEqual(len(self.published()), run.count("published"))


if __name__ == "__main__":
    unittest.main()
