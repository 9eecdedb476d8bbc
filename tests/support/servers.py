"""Tests against the execd look-alike, and against a player that lies."""

import json
import os
import socket
import subprocess
import threading
import urllib.parse

import harness

LOOKALIKE = os.environ["SBX_LOOKALIKE"]
PLAYER = os.environ.get("SBX_PLAYER", "")
SANDBOX = "5b1f0c52-6a3e-4d8f-9c70-2e1d4a7b9f10"


class Case(harness.Case):
    """A look-alike that serves the whole machine; its outputs of commands go to self.outputs."""

    def setUp(self):
        super().setUp()
        self.outputs = os.path.join(self.work, "outputs")
        self.log = os.path.join(self.work, "log")
        os.mkdir(self.outputs)
        self.servers = []
        self.port = self.lifecycle = self.lie = None

    def tearDown(self):
        for server in reversed(self.servers):
            server.stdin.close()
            self.assertEqual(server.wait(30), 0)
            server.stdout.close()
        super().tearDown()

    def _start(self, args, **env):
        server = subprocess.Popen(
            args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.work,
            env=self.env(TMPDIR=self.outputs, **env),
        )
        self.servers.append(server)
        return server.stdout.readline().split()

    def serve(self, *options, **env):
        words = self._start([LOOKALIKE, "--log", self.log, "--grace", "100", *options], **env)
        self.port, self.lifecycle = int(words[1]), int(words[3])

    def play(self, *rules):
        """A player between the command and the look-alike; fixtures/servers/README.md has the
        rules."""
        self.lie = int(self._start([PLAYER, str(self.port), *rules])[1])

    def url(self, port=None, root=None):
        path = urllib.parse.quote(os.fsencode(root or self.src))
        return f"execd://127.0.0.1:{port or self.lie or self.port}{path}"

    def pull(self, *options, root=None, **popen):
        """A pass over execd, through the player if there is one."""
        return self.sync(*options, source=self.url(root=root), **popen)

    def requests(self, part="execd"):
        """What reached a part of the look-alike so far."""
        with open(self.log, encoding="utf-8", errors="surrogateescape") as file:
            entries = [json.loads(line) for line in file]
        return [entry for entry in entries if entry["part"] == part]

    def ask(self, command, port=None):
        """The events of a command of another client."""
        body = json.dumps({"command": command, "timeout": 60000}).encode()
        head = b"POST /command HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        parts = []
        with socket.create_connection(("127.0.0.1", port or self.port), timeout=60) as peer:
            peer.sendall(head % len(body) + body)
            while part := peer.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def bystander(self, command="sleep 4"):
        """A command of another client, in a thread: join it, and ask survived()."""
        before = len(os.listdir(self.outputs))
        thread = threading.Thread(target=lambda: thread.answer.append(self.ask(command)))
        thread.answer = []
        thread.start()
        self.until(lambda: len(os.listdir(self.outputs)) > before, "the command's start")
        return thread

    def survived(self, thread):
        thread.join()
        answer = thread.answer[0]
        self.assertTrue(b"execution_complete" in answer or b"broken pipe" in answer, answer)
        return b"execution_complete" in answer
