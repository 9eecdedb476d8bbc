"""Drives the built command in directories of the test's own.

    class Names(harness.Case):
        def test_a_backslash_is_refused(self):
            self.make("a\\b", b"x")
            run = self.sync()                     # --json, from self.src to self.dst
            self.assertEqual(run.status, 1)
            self.assertEqual(run.why("a\\b"), "separator")

Each report is parsed strictly, held against the schema and added up. At the end of each test
nothing may be left or made where it does not belong: no temporary, no change beside the
destination, no process.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import jsonschema  # Debian's python3-jsonschema: without it no report would be held against the schema

COMMAND = os.environ["SBX_SYNC"]
SOURCE_DIR = os.environ.get(
    "SBX_SOURCE_DIR", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
SHIM = os.environ.get("SBX_SHIM_LIBRARY")
STATE = b".sbx-sync"
STATE_FILES = {b"lock", b"run", b"manifest.jsonl"}


def parse(data):
    """The report in `data`, which must be strict JSON of ASCII characters and one newline."""

    def members(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), f"a key twice among {keys}"
        return dict(pairs)

    def constant(name):
        raise AssertionError(f"{name} is no JSON")

    text = data.decode("ascii")
    assert text.endswith("}\n"), "no newline after the report"
    report = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    json.dumps(report, ensure_ascii=False).encode()  # fails for a surrogate on its own
    return report


def check(report):
    """Whether a report follows the schema, and its numbers agree."""
    with open(os.path.join(SOURCE_DIR, "docs/report.schema.json"), encoding="ascii") as file:
        jsonschema.Draft202012Validator(json.load(file)).validate(report)
    counts = dict(report["counts"])
    listed = counts.pop("listed")
    assert sum(counts.values()) == listed, report["counts"]
    reasoned = sum(counts[name] for name in ("excluded", "refused", "deferred", "failed"))
    assert sum(report["reasons"].values()) == reasoned, report["reasons"]
    assert len(report["files"]) + report["files_omitted"] == listed, "files are missing"


def snapshot(root, leave_out=()):
    """What is below root, as far as a change would show."""
    seen = {}
    for parent, dirs, files in os.walk(os.fsencode(root)):
        dirs[:] = [name for name in dirs if os.path.join(parent, name) not in leave_out]
        for name in dirs + files:
            path = os.path.join(parent, name)
            facts = os.lstat(path)
            seen[path] = (facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    return seen


class Run:
    """How a command ended. `status` is negative if a signal killed it."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err.decode("ascii")  # whatever a sandbox says
        self.report = None
        self.files = {}

    def read_report(self):
        self.report = parse(self.out)
        check(self.report)
        for entry in self.report["files"]:
            path = (
                entry["path"].encode() if "path" in entry else base64.b64decode(entry["path_b64"])
            )
            assert path not in self.files, f"{path} twice"
            self.files[path] = entry
        return self

    def outcome(self, path):
        return self.files[os.fsencode(path)]["outcome"]

    def why(self, path):
        return self.files[os.fsencode(path)].get("reason")

    def count(self, outcome):
        return self.report["counts"][outcome]


class Case(unittest.TestCase):
    """A source, a destination, a place for the test's own things, and one nobody may touch."""

    leftovers = False  # a test that kills the command sets this

    def setUp(self):
        self.tmp = os.path.realpath(tempfile.mkdtemp(prefix="sbx-test."))
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)
        self.src, self.dst, self.work, self.outside = (
            os.path.join(self.tmp, name) for name in ("src", "dst", "work", "outside")
        )
        for path in (self.src, self.work, self.outside):
            os.mkdir(path)
        with open(os.path.join(self.outside, "canary"), "wb") as file:
            file.write(b"sings")
        self.guard()

    def guard(self):
        """From now on nothing may change beside src, dst and work."""
        self.guarded = self._guarded()

    def _guarded(self):
        mine = [os.fsencode(path) for path in (self.src, self.dst, self.work)]
        return snapshot(self.tmp, mine)

    def tearDown(self):
        self.assertEqual(self._processes(), [], "still running")
        self.assertEqual(self._guarded(), self.guarded, "changed beside the destination")
        if not self.leftovers:
            self.assertEqual(self.temporaries(), [], "left in the destination")

    def temporaries(self):
        """What the command has made below dst, besides files and its state."""
        found = []
        for parent, dirs, files in os.walk(os.fsencode(self.dst)):
            for name in dirs + files:
                in_state = os.path.basename(parent) == STATE
                if (in_state and name not in STATE_FILES) or name.startswith(STATE + b"."):
                    found.append(os.path.join(parent, name))
        return found

    def _processes(self):
        """Processes of this test, which all carry its mark. They get a moment, then SIGKILL."""
        mark = self._mark().encode()
        for _ in range(100):
            alive = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        if mark in file.read().split(b"\0"):
                            alive.append(int(pid))
                except OSError:
                    continue
            if not alive:
                return []
            time.sleep(0.02)
        names = []
        for pid in alive:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    names.append(file.read())
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        return names

    def _mark(self):
        return f"SBX_TEST={self.tmp}"

    def env(self, **more):
        """The environment of a command: little, and the test's mark."""
        kept = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH")
        env = {key: os.environ[key] for key in kept if key in os.environ}
        key, value = self._mark().split("=", 1)
        env.update({"LC_ALL": "C", "HOME": self.work, "TMPDIR": self.work, key: value}, **more)
        return env

    def shim(self, *rules, **more):
        """The environment of a command whose file system misbehaves below dst: tests/support/shim.c
        has the rules, and calls() what was called. Error numbers are those of errno."""
        self.assertTrue(SHIM, "SBX_SHIM_LIBRARY is not set")
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        with open(self._calls(), "wb"):
            pass
        return self.env(
            LD_PRELOAD=SHIM,
            SBX_SHIM=";".join(rules),
            SBX_SHIM_UNDER=self.dst,
            SBX_SHIM_LOG=self._calls(),
            ASAN_OPTIONS=options.lstrip(":"),
            **more,
        )

    def _calls(self):
        return os.path.join(self.work, "calls")

    def calls(self):
        """What the last command with a shim() called below dst: (name, result, path) each, the
        path from dst on. A result that a rule made begins with "!"."""
        with open(self._calls(), encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(" ", 2) for line in file]
        return [(call, result, os.path.relpath(path, self.dst)) for call, result, path in lines]

    def make(self, name, data=b"", mtime=None, root=None):
        """A file below src, or another root, with the directories it needs."""
        path = os.path.join(os.fsencode(root or self.src), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        if mtime is not None:
            os.utime(path, (mtime, mtime))
        return path

    def script(self, name, text):
        """An executable of the test's own; gives its path."""
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def published(self):
        """The files below dst and their contents, our state left out."""
        found = {}
        top = os.fsencode(self.dst)
        for parent, dirs, files in os.walk(top):
            if parent == top and STATE in dirs:
                dirs.remove(STATE)
            for name in files:
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
        return found

    def start(self, *args, **popen):
        """The command, running. With `--json` give what it wrote to Run(...).read_report()."""
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.tmp,
            "env": self.env(),
        }
        process = subprocess.Popen([COMMAND, *args], **{**options, **popen})
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()

    def finish(self, process, timeout=60):
        """Waits for what start() gave."""
        out, err = process.communicate(timeout=timeout)
        return Run(process.returncode, out or b"", err or b"")

    def run_command(self, *args, timeout=60, **popen):
        """The command with any arguments, to its end."""
        return self.finish(self.start(*args, **popen), timeout)

    def sync(self, *options, source=None, command=(), **popen):
        """A pass from src to dst, and its report."""
        tail = ["--", *command] if command else []
        run = self.run_command("--json", *options, source or self.src, self.dst, *tail, **popen)
        self.assertTrue(run.out, f"no report, status {run.status}: {run.err}")
        return run.read_report()

    def until(self, condition, what, seconds=20):
        """Waits until condition() holds."""
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.01)
