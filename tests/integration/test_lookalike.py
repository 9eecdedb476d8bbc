"""The execd look-alike answers as execd did when it was recorded, and its commands die of what
execd's die of."""

import datetime
import email.utils
import json
import os
import re
import socket
import subprocess
import threading
import time
import unittest

import harness

LOOKALIKE = os.environ["SBX_LOOKALIKE"]
RECORDED = os.path.join(harness.SOURCE_DIR, "fixtures/http/execd")
HOME = b"/home/user"  # of the recording

# What differs between any two runs.
VOLATILE = [
    (rb'"timestamp":\d+', b'"timestamp":0'),
    (rb'"execution_time":\d+,', b""),  # absent if it is none
    (rb'("type":"init","text":)"[0-9a-f]{32}"', rb'\1"id"'),
    (rb"(bash: line \d+:) +\d+ (\w+) +", rb"\1 pid \2 "),
    (rb'"(modified_at|created_at)":"20[-0-9]{8}T[0-9:]{8}(\.\d{1,9})?Z"', rb'"\1":"T"'),
    (rb'"(owner|group)":"\w+"', rb'"\1":"N"'),
    (rb"(invalid body format\. )[^\"]*", rb"\1why"),  # of another reader of JSON
]


def recorded(name, kind):
    """The bytes of a recording."""
    with open(os.path.join(RECORDED, f"{name}.{kind}"), "rb") as file:
        return file.read()


class Answer:
    """One answer, taken apart from the front of `data`; `rest` is what follows it."""

    def __init__(self, data):
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        self.status = lines[0][:12]  # the words behind the number are the library's
        self.headers = sorted(line.lower() for line in lines[1:] if not line.startswith(b"Date:"))
        self.chunks = None
        self.body, self.rest = rest, b""
        if self.status.startswith(b"HTTP/1.1 1"):
            self.body, self.rest = b"", rest
        if b"transfer-encoding: chunked" in self.headers:
            self.rest = self._dechunk(rest)
        for header in list(self.headers):
            if header.startswith(b"content-length: "):
                self._cut(int(header[16:]), header)
        self.events = self.body.split(b"\n\n")[:-1]

    def _dechunk(self, rest):
        self.chunks = []
        while True:
            size, _, rest = rest.partition(b"\r\n")
            n = int(size, 16)
            self.chunks.append(rest[:n])
            assert rest[n : n + 2] == b"\r\n", rest[:200]
            rest = rest[n + 2 :]
            if n == 0:
                self.body = b"".join(self.chunks)
                del self.chunks[-1]
                return rest

    def _cut(self, length, header):
        if len(self.body) >= length:
            # The length of a text with a path in it is that of the path; here it is right.
            self.headers[self.headers.index(header)] = b"content-length: right"
            self.body, self.rest = self.body[:length], self.body[length:]

    def plain(self, home=HOME):
        """What two answers to one request have in common."""
        body = self.body.replace(home, HOME)
        for pattern, text in VOLATILE:
            body = re.sub(pattern, text, body)
        headers = [header.replace(home, HOME) for header in self.headers]
        if not self.status.startswith(b"HTTP/1.1"):
            headers = [header for header in headers if not header.startswith(b"connection:")]
        if self.status == b"HTTP/1.1 304":  # the library tells a length here
            headers = [header for header in headers if not header.startswith(b"content-length")]
        if b"content-type: text/event-stream" not in headers:
            return [self.status, headers, body]
        events = body.split(b"\n\n")[:-1]
        kinds = {}
        for event in events:
            kinds.setdefault(json.loads(event)["type"], []).append(event)
        last = [event for event in events if b'"type":"ping"' not in event][-1]
        return [self.status, headers, kinds, last]


class Lookalike(harness.Case):
    """A look-alike with a home and a temporary directory of its own."""

    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.work, "home")
        self.port = self.lifecycle = None
        self.server = None
        for name in ("home/files/dir", "home/one", "tmp"):
            os.makedirs(os.path.join(self.work, name))

    def tearDown(self):
        self.end()
        super().tearDown()

    def end(self):
        """Ends the server as a test's end does; its commands end with it."""
        if self.server:
            self.server.stdin.close()
            self.assertEqual(self.server.wait(30), 0)
            self.server.stdout.close()
            self.server = None

    def serve(self, *options, env=None, **popen):
        self.server = subprocess.Popen(
            [LOOKALIKE, "--grace", "100", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.work,
            env=env or self.env(HOME=self.home, TMPDIR=os.path.join(self.work, "tmp")),
            **popen,
        )
        words = self.server.stdout.readline().split()
        self.port, self.lifecycle = int(words[1]), int(words[3])

    def connect(self, request, port=None):
        peer = socket.create_connection(("127.0.0.1", port or self.port), timeout=30)
        peer.sendall(request)
        return peer

    def ask(self, request):
        """All that comes back until the server closes."""
        parts = []
        with self.connect(request) as peer:
            while part := peer.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def request(self, name):
        """A recorded request, for the directories of this test."""
        request = recorded(name, "req")
        head, _, body = request.partition(b"\r\n\r\n")
        home = os.fsencode(self.home)
        body = body.replace(b"/tmp/", os.fsencode(self.work) + b"/tmp/").replace(HOME, home)
        head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head)
        return head.replace(HOME, home) + b"\r\n\r\n" + body

    def compare(self, data, name):
        """An answer, or several, as it was recorded."""
        want = recorded(name, "http")
        while want or data:
            want, have = Answer(want), Answer(data)
            self.assertEqual(have.plain(os.fsencode(self.home)), want.plain())
            if want.chunks is not None:
                self.assertEqual(have.chunks, [event + b"\n\n" for event in have.events])
            want, data = want.rest, have.rest

    def replay(self, name):
        self.compare(self.ask(self.request(name)), name)

    def post(self, command, **more):
        body = json.dumps({"command": command, **more}).encode()
        head = b"POST /command HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        return head % len(body) + body


class Replays(Lookalike):
    """Each recording that says the same on every machine."""

    def replays(self, *names):
        for name in names:
            with self.subTest(name):
                self.replay(name)

    def file(self, name, data):
        """A file of the recording's home, as old as its recorded answer says."""
        self.make(name, data, root=os.path.join(self.home, "files"))

    def age(self, name, answer):
        stamp = re.search(rb"Last-Modified: ([^\r]+)", recorded(answer, "http")).group(1)
        seconds = email.utils.parsedate_to_datetime(stamp.decode()).timestamp()
        os.utime(os.path.join(os.fsencode(self.home), b"files", os.fsencode(name)), (seconds,) * 2)

    def test_commands_end_as_recorded(self):
        self.serve()
        self.replays("hello", "exit3", "sigkill", "sigpipe", "child_killed", "timeout", "no_output")

    def test_output_comes_as_recorded(self):
        self.serve()
        self.replays("crlf", "no_newline", "invalid_utf8", "nul_control", "stderr_mixed")

    def test_output_that_is_a_file_behaves_as_recorded(self):
        self.serve()
        self.replays("stdout_truncated", "stdout_removed", "concurrent_a")

    def test_a_slow_command_pings_as_recorded(self):
        self.serve()
        self.replay("slow")

    def test_old_and_careful_clients_are_answered_as_recorded(self):
        self.serve()
        self.replays("hello_http10", "hello_expect", "head", "ping")

    def test_a_connection_can_be_used_again(self):
        self.serve()
        with self.connect(self.request("hello_keepalive")) as peer:
            data = b""
            while not data.endswith(b"\r\n0\r\n\r\n"):
                data += peer.recv(4096)
            self.compare(data, "hello_keepalive")
            peer.sendall(self.request("ping"))
            self.assertTrue(peer.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n"))

    def test_requests_are_refused_as_recorded(self):
        self.serve()
        self.replays("bad_json", "empty_command", "cwd_missing")

    def test_a_background_command_is_answered_as_recorded(self):
        self.serve()
        self.replay("background")

    def test_a_token_is_asked_for_as_recorded(self):
        self.serve("--token", "dummy-token")
        self.replays("token_missing", "token_wrong", "token_ok")

    def test_no_shell_is_told_as_recorded(self):
        self.serve(env=self.env(PATH="/nonexistent"))
        self.replay("no_shell")

    def test_a_listing_of_nothing_comes_as_recorded(self):
        self.make("one/only.txt", b"", root=self.home)
        self.serve()
        self.replays("list_missing", "list_notdir")

    def test_an_interrupted_command_ends_as_recorded(self):
        self.serve()
        with self.connect(self.request("deleted")) as peer:
            data = b""
            while b"before" not in data:
                data += peer.recv(4096)
            name = re.search(rb'"init","text":"(\w+)"', data).group(1)
            delete = b"DELETE /command?id=%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % name
            self.assertEqual(Answer(self.ask(delete)).status, b"HTTP/1.1 200")
            again = Answer(self.ask(delete))
            self.assertEqual(again.status, b"HTTP/1.1 500")
            self.assertTrue(json.loads(again.body)["message"].endswith("is not running"))
            while part := peer.recv(4096):
                data += part
        self.compare(data, "deleted")

    def test_files_are_served_as_recorded(self):
        self.file("small.txt", b"hello world")
        self.file("empty", b"")
        self.file("4k.bin", recorded("dl_4k", "http").partition(b"\r\n\r\n")[2])
        self.file(b"n\xff\xe9 a&b+c%.txt", b"raw name")
        for name, answer in (
            ("small.txt", "dl_small"),
            ("empty", "dl_empty"),
            ("4k.bin", "dl_4k"),
            (b"n\xff\xe9 a&b+c%.txt", "dl_rawname"),
        ):
            self.age(name, answer)
        self.serve()
        self.replays("dl_small", "dl_empty", "dl_4k", "dl_rawname", "dl_two", "dl_304")
        self.replays("dl_range", "dl_range_416", "dl_range_bad", "dl_range_bad_4k")
        self.replays("dl_missing", "dl_missing_keepalive", "dl_notdir", "dl_dollar", "info")

    def test_a_directory_is_served_as_recorded(self):
        path = os.path.join(self.home, "files/dir")
        self.age("dir", "dl_dir")
        self.serve()
        fd = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        try:
            os.lseek(fd, 0, os.SEEK_END)
        except OSError:  # tmpfs
            answer = Answer(self.ask(self.request("dl_dir")))
            self.assertEqual(answer.body, b"seeker can't seek\n")
            return
        self.replay("dl_dir")

    def test_an_unreadable_file_is_refused_as_recorded(self):
        self.file("secret.txt", b"x")
        os.chmod(os.path.join(self.home, "files/secret.txt"), 0)
        os.chmod(self.tmp, 0o711)
        self.serve(**({"user": 1234, "group": 1234} if os.geteuid() == 0 else {}))
        self.replay("dl_denied")

    def test_a_fifo_hangs_as_recorded(self):
        os.mkfifo(os.path.join(self.home, "files/fifo"))
        self.serve()
        with self.connect(self.request("dl_fifo")) as peer:
            peer.settimeout(1)
            self.assertRaises(TimeoutError, peer.recv, 1)

    def test_a_command_that_is_too_long_does_not_start(self):
        self.serve()
        for length, want in ((131071, "execution_complete"), (131072, "error")):
            answer = Answer(self.ask(self.post("#" + "x" * (length - 1))))
            events = [json.loads(event) for event in answer.events]
            last = [event for event in events if event["type"] != "ping"][-1]
            self.assertEqual(last["type"], want)
        self.assertRegex(last["error"]["evalue"], "^fork/exec .*/bash: argument list too long$")

    def test_a_long_line_is_one_event_and_one_chunk(self):
        self.serve()
        answer = Answer(self.ask(self.post("head -c 120000 /dev/zero | tr '\\0' x; echo")))
        texts = [json.loads(event).get("text") for event in answer.chunks]
        self.assertIn("x" * 120000, texts)

    def test_a_file_that_shrinks_meanwhile_ends_early(self):
        self.file("big", b"x" * (32 << 20))
        path = os.path.join(self.home, "files/big")
        self.serve()
        request = b"GET /files/download?path=%s HTTP/1.1\r\nHost: x\r\n\r\n" % os.fsencode(path)
        with self.connect(request) as peer:
            got = len(peer.recv(1000))
            os.truncate(path, 1 << 20)
            while part := peer.recv(1 << 16):
                got += len(part)
        self.assertLess(got, 32 << 20)


class Commands(Lookalike):
    """What is not in the recordings."""

    def texts(self, kind, command, **more):
        answer = Answer(self.ask(self.post(command, **more)))
        events = [json.loads(event) for event in answer.events]
        return [event.get("text") or event.get("error") for event in events if event["type"] == kind]

    def get(self, target):
        head = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = Answer(self.ask(head.encode()))
        return answer.status[9:], answer.body

    def test_a_crlf_that_two_polls_see_is_one_end(self):
        self.serve()
        texts = self.texts("stdout", "printf 'a\\r'; sleep 0.3; printf '\\nb'; sleep 0.3; echo c")
        self.assertEqual(texts, ["a", "bc"])

    def test_a_command_gets_its_variables_and_its_directory(self):
        self.serve()
        texts = self.texts("stdout", 'echo "$A$B"; pwd', envs={"A": "1 ", "B": None}, cwd="~/files")
        self.assertEqual(texts, ["1 ", os.path.join(self.home, "files")])

    def test_a_command_runs_as_the_user_asked_for_if_it_may(self):
        self.serve()
        script = "id -u; id -g; id -G"
        if os.geteuid() != 0:
            error = self.texts("error", script, uid=0)[0]
            self.assertTrue(error["evalue"].endswith("operation not permitted"), error)
            return
        self.assertEqual(self.texts("stdout", script, uid=51234), ["51234", "0", "0"])
        self.assertEqual(self.texts("stdout", script, uid=51234, gid=7), ["51234", "7", "7"])

    def test_wrong_fields_are_refused(self):
        self.serve()
        rows = ({"gid": 1}, {"timeout": -1}, {"timeout": "1"}, {"timeout": 1.5}, {"cwd": "$NOPE"})
        for more in rows:
            answer = Answer(self.ask(self.post("true", **more)))
            told = json.loads(answer.body)
            self.assertEqual((answer.status, told["code"]), (b"HTTP/1.1 400", "INVALID_REQUEST_BODY"))

    def test_a_nul_does_not_start(self):
        self.serve()
        error = self.texts("error", "a\0b")[0]
        self.assertRegex(error["evalue"], "^fork/exec .*: invalid argument$")
        error = self.texts("error", "true", envs={"A": "\0"})[0]
        self.assertEqual(error["evalue"], "exec: environment variable contains NUL")

    def test_a_status_is_kept(self):
        self.serve()
        name = self.texts("init", "exit 5")[0]
        status, body = self.get(f"/command/status/{name}")
        told = json.loads(body)
        self.assertEqual((status, told["exit_code"], told["running"]), (b"200", 5, False))
        self.assertEqual((told["content"], told["error"]), ("exit 5", "exit status 5"))
        self.assertEqual(self.get("/command/status/nobody")[0], b"404")

    def test_who_ignores_the_interrupt_is_killed_after_three_seconds(self):
        self.serve()
        with self.connect(self.post("trap '' TERM; echo up; sleep 30")) as peer:
            data = b""
            while b'"up"' not in data:
                data += peer.recv(4096)
            name = re.search(rb'"init","text":"(\w+)"', data).group(1)
            began = time.monotonic()
            self.ask(b"DELETE /command?id=%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % name)
            self.assertGreater(time.monotonic() - began, 2.9)
            while part := peer.recv(4096):
                data += part
        self.assertIn(b'"signal: killed"', data)

    def test_a_variable_in_a_path_is_replaced(self):
        self.make("files/x", b"other", root=self.home)
        self.make("files/x$", b"dollar", root=self.home)
        self.serve()
        files = self.home + "/files"
        rows = (
            ("$HOME/files/x", b"200", b"other"),
            ("~/files/x", b"200", b"other"),
            (files + "/x$1", b"200", b"other"),
            (files + "/x${1}", b"200", b"other"),
            (files + "/x$", b"200", b"dollar"),
        )
        for path, status, body in rows:
            with self.subTest(path):
                self.assertEqual(self.get("/files/download?path=" + path), (status, body))
        self.assertEqual(self.get(f"/files/download?path={files}/$NOPE")[0], b"500")
        self.assertEqual(self.get("/files/download")[0], b"400")
        self.assertEqual(self.get(f"/files/download?path={files}/x;y")[0], b"400")


class Bystanders(Lookalike):
    """A command runs, and another client leaves: (who is killed) as execd was seen to do it."""

    BIG = 64 << 20

    def setUp(self):
        super().setUp()
        self.make("files/big", b"x" * self.BIG, root=self.home)
        self.make("files/small.txt", b"hello world", root=self.home)
        self.serve()

    def download(self, name, more=b""):
        path = os.fsencode(os.path.join(self.home, "files", name))
        head = b"GET /files/download?path=%s HTTP/1.1\r\nHost: x\r\n" % path
        return self.connect(head + more + b"\r\n")

    def bystander(self, request, leave):
        """The answer to a command while `leave` is called, soon after its start."""
        answer = []
        outputs = os.path.join(self.work, "tmp")
        thread = threading.Thread(target=lambda: answer.append(self.ask(request)))
        thread.start()
        self.until(lambda: os.listdir(outputs), "the command's start")
        time.sleep(0.3)
        leave()
        thread.join()
        return answer[0]

    def killed(self, leave, command="sleep 1.5"):
        """Whether a bystander dies."""
        answer = Answer(self.bystander(self.post(command), leave))
        last = [event for event in answer.events if b'"ping"' not in event][-1]
        if b"execution_complete" in last:
            return False
        self.assertIn(b'"evalue":"-1","traceback":["signal: broken pipe"]', last)
        return True

    def leave_midway(self):
        # More than once: on a machine that is busy enough it may look as if the writer was blocked.
        for _ in range(3):
            with self.download("big") as peer:
                peer.recv(1 << 16)

    def test_who_leaves_in_the_middle_of_a_download_kills(self):
        self.compare(
            self.bystander(self.request("sigpipe_bystander"), self.leave_midway),
            "sigpipe_bystander",
        )

    def test_who_leaves_in_the_middle_of_a_range_kills(self):
        def leave():
            with self.download("big", b"Range: bytes=5-\r\n") as peer:
                peer.recv(1 << 16)

        self.assertTrue(self.killed(leave))

    def test_who_leaves_in_the_middle_of_a_stream_kills(self):
        def leave():
            with self.connect(self.post("while echo; do sleep 0.01; done", timeout=1000)) as peer:
                peer.recv(100)

        self.assertTrue(self.killed(leave))

    def test_who_leaves_through_the_proxy_kills(self):
        def leave():
            path = os.fsencode(os.path.join(self.home, "files/big"))
            head = b"GET /proxy/44772/files/download?path=%s HTTP/1.1\r\nHost: x\r\n\r\n" % path
            with self.connect(head) as peer:
                peer.recv(1 << 16)

        self.assertTrue(self.killed(leave))

    def test_a_command_that_ignores_the_signal_lives(self):
        self.compare(
            self.bystander(self.request("sigpipe_ignored"), self.leave_midway), "sigpipe_ignored"
        )

    def test_who_stops_reading_first_kills_nobody(self):
        def leave():
            with self.download("big") as peer:
                peer.recv(1 << 16)
                time.sleep(0.4)

        self.assertFalse(self.killed(leave))

    def test_who_reads_to_the_end_kills_nobody(self):
        def leave():
            with self.download("big", b"Range: bytes=0-99999\r\n") as peer:
                got = 0
                while got < 100000:
                    got += len(peer.recv(1 << 16))

        self.assertFalse(self.killed(leave))

    def test_who_leaves_at_the_terminal_event_kills_nobody(self):
        def leave():
            # Nothing but the other command's end could tell, so it began before and ended before.
            with self.connect(self.post("true")) as peer:
                data = b""
                while b"execution_complete" not in data:
                    data += peer.recv(4096)

        self.assertFalse(self.killed(leave))

    def test_who_asks_for_something_short_and_leaves_kills_nobody(self):
        self.assertFalse(self.killed(lambda: self.connect(self.request("ping")).close()))

    def test_a_command_that_ran_when_another_ended_lives(self):
        def leave():
            self.ask(self.post("true"))
            self.leave_midway()

        self.assertFalse(self.killed(leave))

    def test_a_background_command_lives(self):
        self.ask(self.post("sleep 0.6; echo lived >lived", background=True))
        self.leave_midway()
        self.until(lambda: os.path.exists(os.path.join(self.work, "lived")), "the command")


class Lifecycle(Lookalike):
    """The part that knows of sandboxes."""

    KEY = "a-key"
    ID = "5b1f0c52-6a3e-4d8f-9c70-2e1d4a7b9f10"

    def call(self, method, target, body=None, key=KEY, port=None):
        """The status, and the parsed body if there is one."""
        text = json.dumps(body) if body is not None else ""
        head = f"{method} {target} HTTP/1.1\r\nHost: gate:1\r\nConnection: close\r\n"
        head += f"OPEN-SANDBOX-API-KEY: {key}\r\n" if key else ""
        head += f"Content-Length: {len(text)}\r\n\r\n{text}"
        data = b""
        with self.connect(head.encode(), port or self.lifecycle) as peer:
            while part := peer.recv(1 << 16):
                data += part
        answer = Answer(data)
        return int(answer.status[9:]), json.loads(answer.body) if answer.body else None

    def one(self, rest=""):
        return f"/v1/sandboxes/{self.ID}{rest}"

    def test_a_sandbox_is_told_with_its_state_and_expiry(self):
        self.serve("--state", "Paused", "--expires-in", "100")
        status, told = self.call("GET", self.one())
        self.assertEqual((status, told["id"], told["status"]["state"]), (200, self.ID, "Paused"))
        self.assertRegex(told["expiresAt"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.call("POST", "/control", {"state": "Running", "expires_in": None})
        told = self.call("GET", self.one())[1]
        self.assertEqual(told["status"]["state"], "Running")
        self.assertNotIn("expiresAt", told)

    def test_a_key_is_asked_for(self):
        self.serve("--api-key", self.KEY)
        for key, want in ((None, "MISSING_API_KEY"), ("wrong", "INVALID_API_KEY")):
            status, told = self.call("GET", self.one(), key=key)
            self.assertEqual((status, told["code"]), (401, want))
        self.assertEqual(self.call("GET", self.one())[0], 200)
        self.assertEqual(self.call("GET", self.one("/proxy/44772/ping"), key=None)[0], 200)

    def test_an_unknown_sandbox_is_not_found(self):
        self.serve()
        status, told = self.call("GET", "/v1/sandboxes/nobody")
        self.assertEqual((status, told["code"]), (404, "DOCKER::SANDBOX_NOT_FOUND"))

    def test_an_endpoint_is_told_with_its_headers(self):
        self.serve("--endpoint-header", "X-Gate: open")
        told = self.call("GET", self.one("/endpoints/44772"))[1]
        want = {"endpoint": f"127.0.0.1:{self.port}", "headers": {"X-Gate": "open"}}
        self.assertEqual(told, want)
        told = self.call("GET", self.one("/endpoints/44772?use_server_proxy=true"))[1]
        self.assertEqual(told["endpoint"], f"gate:1/sandboxes/{self.ID}/proxy/44772")
        self.assertEqual(self.call("GET", self.one("/endpoints/x"))[0], 422)
        self.assertEqual(self.call("GET", self.one("/endpoints/65536"))[0], 400)

    def test_an_endpoint_can_be_any_text(self):
        self.serve("--endpoint", "http://no host/{port}/x")
        told = self.call("GET", self.one("/endpoints/44772"))[1]
        self.assertEqual(told, {"endpoint": f"http://no host/{self.port}/x"})

    def test_the_log_tells_what_reached_which_part(self):
        log = os.path.join(self.work, "log")
        self.serve("--log", log)
        self.call("GET", "/sandboxes/" + self.ID + "/proxy/44772/ping?x=%FF")
        with open(log, encoding="utf-8") as file:
            seen = [json.loads(line) for line in file]
        self.assertEqual([entry["part"] for entry in seen], ["lifecycle", "execd"])
        self.assertEqual(seen[1]["target"], "/ping?x=%EF%BF%BD")
        self.assertIn(["OPEN-SANDBOX-API-KEY", self.KEY], seen[0]["headers"])
        names = [name.lower() for name, _ in seen[1]["headers"]]
        self.assertNotIn("open-sandbox-api-key", names)

    def test_renewing_can_shorten_the_life(self):
        self.serve("--expires-in", "7200")
        soon = datetime.datetime.now(datetime.timezone.utc)
        rows = (
            ((soon + datetime.timedelta(seconds=60)).isoformat(), 200),
            ("2020-01-01T00:00:00Z", 400),
            ("tomorrow", 422),
        )
        for when, want in rows:
            status, told = self.call("POST", self.one("/renew-expiration"), {"expiresAt": when})
            self.assertEqual(status, want, told)
        expires = datetime.datetime.fromisoformat(
            self.call("GET", self.one())[1]["expiresAt"]
        )
        self.assertLess((expires - soon).total_seconds(), 61)

    def test_a_life_that_ends_takes_execd_and_its_commands_along(self):
        self.serve()
        with self.connect(self.post("echo up; sleep 30")) as peer:
            data = b""
            while b'"up"' not in data:
                data += peer.recv(4096)
            self.call("POST", "/control", {"expires_in": 0.2})
            while part := peer.recv(4096):
                data += part
        self.assertNotIn(b"execution_complete", data)
        self.assertFalse(data.endswith(b"\r\n0\r\n\r\n"))
        self.assertEqual(self.call("GET", self.one())[0], 404)
        self.assertEqual(self.ask(self.request("ping")), b"")

    def test_a_deleted_sandbox_is_gone(self):
        self.serve()
        status, made = self.call("POST", "/v1/sandboxes", {"image": {"uri": "x"}, "timeout": 60})
        self.assertEqual(status, 202)
        total = self.call("GET", "/v1/sandboxes")[1]["pagination"]["totalItems"]
        self.assertEqual(total, 2)
        self.assertEqual(self.call("DELETE", "/v1/sandboxes/" + made["id"])[0], 204)
        self.assertEqual(self.call("DELETE", "/v1/sandboxes/" + made["id"])[0], 404)
        self.assertTrue(self.ask(self.request("ping")))


class Misbehaviour(Lookalike):
    """What a switch makes of the events."""

    def events(self, *options, command="echo x; exit 3"):
        self.serve(*options)
        answer = Answer(self.ask(self.post(command)))
        self.end()
        return answer

    def kinds(self, answer):
        return [json.loads(event)["type"] for event in answer.events]

    def test_events_can_have_a_prefix(self):
        answer = self.events("--data-prefix")
        self.assertEqual({event[:7] for event in answer.events}, {b"data: {"})

    def test_the_terminal_event_can_be_left_out(self):
        kinds = self.kinds(self.events("--no-terminal"))
        self.assertEqual(kinds, ["init", "ping", "stdout"])

    def test_a_ping_can_come_last(self):
        kinds = self.kinds(self.events("--late-ping"))
        self.assertEqual(kinds, ["init", "stdout", "error", "ping"])

    def test_events_can_be_split(self):
        answer = self.events("--split-events", "7")
        self.assertEqual(max(len(chunk) for chunk in answer.chunks), 7)
        self.assertIn("error", self.kinds(answer))

    def test_a_traceback_can_be_null(self):
        self.assertIn(b'"evalue":"3","traceback":null}', self.events("--error-traceback-null").body)


if __name__ == "__main__":
    unittest.main()
