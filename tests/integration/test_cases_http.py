"""Servers that lie: whatever they answer, a pass ends in time, its memory is flat, old copies stay,
no temporary is left, and each listed file has one outcome."""

import os
import resource
import time
import unittest

import harness
import servers

MIB = 1 << 20
PART = r"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999/1000\r\n"
WHOLE = r"HTTP/1.1 200 OK\r\n"
STREAM = r"send HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
INIT = r'{"type":"init","text":"0123456789abcdef0123456789abcdef","timestamp":1}\n\n'
DONE = r'{"type":"execution_complete","execution_time":1,"timestamp":1}\n\n'


with open(harness.COMMAND, "rb") as command:
    image = command.read()
SANITIZED = b"__asan_init" in image or b"__tsan_init" in image


def answer(head, *more):
    return " ; ".join([f"send {head}\\r\\n", *more])


# What a server answers to the request for one file of 1,000 bytes, and what becomes of that file.
DOWNLOADS = [
    ("B044 a length and fewer bytes", answer(PART + r"Content-Length: 1000\r\n", "fill 900", "close"), "short"),
    ("B044 chunks without the last one", answer(PART + r"Transfer-Encoding: chunked\r\n", r"send 384\r\n", "fill 900", r"send \r\n", "close"), "short"),
    ("B044 no length, closed too early", answer(PART, "fill 900", "close"), "short"),
    ("B044 no length, closed in time", answer(PART, "fill 1000", "close"), "short"),
    ("B042 no length, and more for ever", answer(WHOLE, "loop xxxxxxxxxxxxxxxx"), "changed"),
    ("B042 chunks for ever", answer(WHOLE + r"Transfer-Encoding: chunked\r\n", r"loop 4\r\nxxxx\r\n"), "changed"),
    ("a length that is too big", answer(WHOLE + r"Content-Length: 2000\r\n", "fill 2000"), "changed"),
    ("a length that does not fit the range", answer(PART + r"Content-Length: 2000\r\n", "fill 2000"), "protocol"),
    ("a length that is too small", answer(WHOLE + r"Content-Length: 900\r\n", "fill 900"), "changed"),
    ("a length twice", answer(PART + r"Content-Length: 1000\r\nContent-Length: 999\r\n", "fill 1000"), "protocol"),
    ("a negative length", answer(PART + r"Content-Length: -1\r\n", "fill 1000"), "protocol"),
    ("a length with a sign", answer(PART + r"Content-Length: +5\r\n", "fill 1000"), "protocol"),
    ("a length that is no number", answer(PART + r"Content-Length: 1000x\r\n", "fill 1000"), "protocol"),
    ("a length of 2^63 - 1", answer(WHOLE + r"Content-Length: 9223372036854775807\r\n", "close"), "changed"),
    ("a length and chunks", answer(PART + r"Content-Length: 1000\r\nTransfer-Encoding: chunked\r\n", r"send 3e8\r\n", "fill 1000", r"send \r\n0\r\n\r\n"), "protocol"),
    ("a chunk of 16 f's", answer(PART + r"Transfer-Encoding: chunked\r\n", r"send ffffffffffffffff\r\n", "fill 1000"), "protocol"),
    ("a chunk that is no number", answer(PART + r"Transfer-Encoding: chunked\r\n", r"send zz\r\n", "fill 1000"), "protocol"),
    ("another transfer coding", answer(PART + r"Transfer-Encoding: gzip\r\n", "fill 1000", "close"), "protocol"),
    ("B045 B046 gzip that was not asked for", answer(PART + r"Content-Length: 1000\r\nContent-Encoding: gzip\r\n", "fill 1000"), "protocol"),
    ("B045 fifty codings", answer(PART + r"Content-Length: 1000\r\n" + r"Content-Encoding: gzip\r\n" * 50, "fill 1000"), "protocol"),
    ("B047 a redirect to another port", answer(r"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{lifecycle}/health\r\nContent-Length: 0\r\n"), "protocol"),
    ("B047 a redirect to a file", answer(r"HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n"), "protocol"),
    ("B047 a redirect to gopher", answer(r"HTTP/1.1 307 Temporary\r\nLocation: gopher://127.0.0.1:{lifecycle}/\r\nContent-Length: 0\r\n"), "protocol"),
    ("B047 a redirect to itself", answer(r"HTTP/1.1 308 Permanent\r\nLocation: /files/download\r\nContent-Length: 0\r\n"), "protocol"),
    ("B049 another range", answer(r"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-1000/1000\r\nContent-Length: 1000\r\n", "fill 1000"), "protocol"),
    ("B049 a range that is none", answer(r"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999\r\nContent-Length: 1000\r\n", "fill 1000"), "protocol"),
    ("B049 a part without its range", answer(r"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\n", "fill 1000"), "protocol"),
    ("B049 another total", answer(r"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999/1001\r\nContent-Length: 1000\r\n", "fill 1000"), "changed"),
    ("B049 an unknown total", answer(r"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999/*\r\nContent-Length: 1000\r\n", "fill 1000"), "changed"),
    ("B049 the whole, and of another version", answer(WHOLE + r"Content-Length: 1000\r\n", "fill 1000"), "published"),
    ("B050 a login page", answer(WHOLE + r"Content-Type: text/html\r\nContent-Length: 1324\r\n", "fill 1324"), "changed"),
    ("B050 an error as JSON", answer(WHOLE + r"Content-Length: 16\r\n", 'send {"code":"error"}'), "changed"),
    ("B050 nothing at all", answer(r"HTTP/1.1 204 No Content\r\n"), "server"),
    ("B051 silence", "silence", "deadline"),
    ("B051 a head, then silence", answer(PART + r"Content-Length: 1000\r\n", "silence"), "deadline"),
    ("B051 half of it, then silence", answer(PART + r"Content-Length: 1000\r\n", "fill 500", "silence"), "deadline"),
    ("B051 a byte a second", answer(PART + r"Content-Length: 1000\r\n", "drip 1000 " + "x" * 1000), "deadline"),
    ("a head that drips", f"drip 500 {PART}" + r"Content-Length: 1000\r\n\r\n", "deadline"),
    ("a server that never closes", answer(PART + r"Content-Length: 1000\r\n", "fill 1000", "silence"), "published"),
    ("503 and a day to wait", answer(r"HTTP/1.1 503 Busy\r\nRetry-After: 86400\r\nContent-Length: 0\r\n"), "server"),
    ("429 each time", answer(r"HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\n"), "server"),
    ("500 and a long text", answer(r"HTTP/1.1 500 Oops\r\nContent-Length: 100000000\r\n", "loop xxxxxxxxxxxxxxxx"), "server"),
    ("403", answer(r"HTTP/1.1 403 No\r\nContent-Length: 0\r\n"), "denied"),
    ("410", answer(r"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n"), "vanished"),
    ("a header line of 1 MiB", rf"send {PART}X: ; fill {MIB} ; send \r\n\r\n ; fill 1000", "protocol"),
    ("headers for ever", rf"send {PART} ; loop X-More: of this\r\n", "protocol"),
    ("10,000 headers", "send " + PART + r" ; " + " ; ".join(["send " + r"X-Y: z\r\n" * 500] * 20) + r" ; send \r\n", "protocol"),
    ("interim answers for ever", r"loop HTTP/1.1 100 Continue\r\n\r\n", "protocol"),
    ("a CR in a header", answer(PART + r"X-A: b\rc\r\nContent-Length: 1000\r\n", "fill 1000"), "protocol"),
    ("a continued header", answer(PART + r"X-A: b\r\n c\r\nContent-Length: 1000\r\n", "fill 1000"), "protocol"),
    ("another name for the file", answer(PART + r'Content-Disposition: attachment; filename="../../etc/passwd"\r\nContent-Length: 1000\r\n', "fill 1000"), "published"),
    ("no HTTP at all", r"send SSH-2.0-OpenSSH_9.2\r\n ; close", "protocol"),
    ("HTTP/2", r"send HTTP/2 200\r\n\r\n ; fill 1000 ; close", "protocol"),
    ("a switch of protocols", answer(r"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n", "fill 1000"), "protocol"),
    ("a reset at once", "reset", "server"),
    ("a close at once", "close", "server"),
    ("a reset in mid-body", answer(PART + r"Content-Length: 1000\r\n", "fill 500", "sleep 100", "reset"), "short"),
    ("a byte at a time", "relay bytewise", "published"),
    ("cut by a relay", "relay 600", "short"),
]

# What a server answers to a command, and how the listing ends.
COMMANDS = [
    ("B003 success in the middle", STREAM + f" ; send {INIT}{DONE} ; close"),
    ("B003 cut in the middle", "relay 700"),
    ("B001 a text for ever", STREAM + r' ; loop {"type":"stdout","text":"' + "QUJD" * 1000 + r'","timestamp":1}\n\n'),
    ("B005 a line without an end", STREAM + " ; send {\"type\":\"stdout\",\"text\":\" ; loop " + "x" * 4000),
    ("pings for ever", STREAM + f" ; send {INIT}" + r' ; loop {"type":"ping","text":"pong","timestamp":1}\n\n'),
    ("tiny events for ever", STREAM + r' ; loop {"type":"stdout","text":""}\n\n'),
    ("words of error for ever", STREAM + r' ; loop {"type":"stderr","text":"' + "e" * 4000 + r'"}\n\n'),
    ("empty lines for ever", STREAM + r" ; loop \n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"),
    ("B013 a shell that does not start", STREAM + f" ; send {INIT}" + r'{"type":"error","timestamp":1,"error":{"ename":"CommandExecError","evalue":"fork/exec /usr/bin/bash: resource temporarily unavailable","traceback":null}}\n\n ; close'),
    ("B009 a frame of somebody else", STREAM + r' ; send {"type":"stdout","text":"00112233445566778899aabbccddeeff begin v=1 root=ok now=1 tools=printf,plain,base64"}\n\n{"type":"stdout","text":"00112233445566778899aabbccddeeff end find=0 cap=0 pack=0 encode=0"}\n\n' + DONE + " ; close"),
    ("an event that is no JSON", STREAM + r" ; send {\n\n ; silence"),
    ("an error object in place of an event", STREAM + r' ; send {"code":"RUNTIME_ERROR","message":"no\x1b[2Jthing"}'r"\n\n ; silence"),
    ("deep JSON", STREAM + " ; send " + "[" * 20000 + r"\n ; silence"),
    ("500", answer(r"HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n", "send oops!")),
    ("404", answer(r"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n")),
    ("401", answer(r"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n")),
    ("a redirect", answer(r"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:{lifecycle}/\r\nContent-Length: 0\r\n")),
    ("a login page", answer(WHOLE + r"Content-Type: text/html\r\nContent-Length: 6\r\n", "send <html>")),
    ("silence", "silence"),
    ("a head, then silence", STREAM + " ; silence"),
    ("a reset", "reset"),
    ("a close", "close"),
]


class Liars(servers.Case):
    def setUp(self):
        super().setUp()
        for name in ("a", "f", "z"):
            self.make(name, name.encode() * 1000, mtime=1000)
        self.serve()
        self.assertEqual(self.pull("--identity", "box").status, 0)
        for name in ("f", "z"):
            self.make(name, name.upper().encode() * 1000, mtime=2000)

    def play_rule(self, prefix, actions):
        self.play(f"{prefix} {actions.replace('{lifecycle}', str(self.lifecycle))}")

    def hostile_pass(self, *options):
        """A pass that has to end soon and stay small. Under a sanitizer memory says nothing."""
        start = time.monotonic()
        run = self.pull("--deadline", "6", "--identity", "box", *options)
        self.assertLess(time.monotonic() - start, 9)
        if not SANITIZED:
            most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            self.assertLess(most, 64 * 1024, "KiB of memory")
        self.assertEqual(self.requests("lifecycle"), [])
        self.assertTrue(run.err.isascii())
        return run


def download_test(actions, expected):
    def test(self):
        self.play_rule(f"GET /files/download?path={self.src}/f", actions)
        run = self.hostile_pass()
        self.assertEqual(run.outcome("a"), "unchanged")
        if expected == "published":
            self.assertEqual((run.status, run.outcome("f")), (0, "published"), run.err)
            return
        self.assertEqual((run.status, run.why("f")), (1, expected), run.err)
        self.assertEqual(self.published()[b"f"], b"f" * 1000)
        if expected != "deadline":
            self.assertEqual(run.outcome("z"), "published", run.err)

    return test


def command_test(actions):
    def test(self):
        before = self.published()
        self.play_rule("POST /command", actions)
        run = self.hostile_pass()
        self.assertEqual((run.status, run.report["counts"]["listed"]), (3, 0), run.err)
        self.assertEqual(self.published(), before)

    return test


class Downloads(Liars):
    def test_B055_401_half_way_defers_the_rest(self):
        for i in range(20):
            self.make(f"g{i:02}", b"g" * 1000)
        self.play("GET@5 /files/download " + answer(r"HTTP/1.1 401 No\r\nContent-Length: 0\r\n"))
        run = self.hostile_pass("--jobs", "1")
        self.assertEqual(run.status, 1, run.err)
        self.assertEqual(run.report["reasons"], {"source-lost": run.count("deferred")})
        self.assertEqual((run.count("published"), run.count("deferred")), (4, 18))

    def test_a_server_that_only_resets_is_lost_after_three_files(self):
        for i in range(20):
            self.make(f"g{i:02}", b"g" * 1000)
        self.play("GET@3 /files/download reset")
        run = self.hostile_pass("--jobs", "1")
        self.assertEqual((run.status, run.count("published"), run.count("failed")), (1, 2, 3))
        self.assertEqual(run.count("deferred"), 17)

    def test_a_server_that_is_busy_once_is_asked_again(self):
        self.play(
            f"GET /files/download?path={self.src}/z "
            + answer(r"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n", "close")
        )
        run = self.hostile_pass()
        self.assertEqual((run.status, run.why("z")), (1, "server"))

    def test_B007_answers_cut_anywhere_are_the_same(self):
        self.play("POST /command relay bytewise", "GET /files/download relay bytewise")
        run = self.hostile_pass()
        self.assertEqual((run.status, run.count("published")), (0, 2), run.err)

    def test_a_confirmation_that_lies_publishes_nothing(self):
        self.play("POST@2 /command " + STREAM + f" ; send {INIT}{DONE} ; close")
        run = self.hostile_pass()
        self.assertEqual(run.status, 1, run.err)
        self.assertEqual(run.count("published"), 0)
        self.assertEqual(self.published()[b"f"], b"f" * 1000)


class Commands(Liars):
    pass


def slug(text):
    return "".join(c if c.isalnum() else "_" for c in text)


for name, actions, expected in DOWNLOADS:
    setattr(Downloads, f"test_{slug(name)}_is_{expected}", download_test(actions, expected))
for name, actions in COMMANDS:
    setattr(Commands, f"test_{slug(name)}_fails_the_listing", command_test(actions))


if __name__ == "__main__":
    unittest.main()
