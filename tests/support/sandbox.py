"""Sandboxes for tests: sources whose answers are tampered with, whose tools are others, and copies
in the destination that have to survive all that."""

import os
import sys
import threading

import harness

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_command.py")
NOBODY = 65534

# What the remote scripts use.
TOOLS = "base64 cat date find gzip head od printf sh stat xargs".split()

# Names that a shell, a tool or a reader of a listing may take for something else.
ODD = {
    b"plain": b"1",
    b"empty": b"",
    b"binary": bytes(range(256)) * 99,
    b"no newline at the end": b"x",
    b"-n": b"option",
    b"dir/-exec": b"option below",
    b"--help": b"help",
    b"(": b"expression",
    b"!": b"expression",
    b"a'b": b"quote",
    b'a"b': b"double quote",
    b"$(touch pwn)": b"command",
    b"`id`": b"command",
    b"a;b&c|d>e": b"shell",
    b"a\nb": b"line feed",
    b"\n": b"only that",
    b"ends in one\n": b"line feed at the end",
    b"tab\there": b"tab",
    b"cr\r": b"carriage return",
    b" lead": b"blank",
    b"trail ": b"blank at the end",
    b"back\\slash": b"backslash",
    b"\\x41%s%n": b"formats",
    b"*": b"star",
    b"[a-z]?": b"pattern",
    b"~": b"home",
    b"#x": b"comment",
    b"x=1": b"assignment",
    b"end 0": b"a last record",
    b"1 2 3 4": b"a record",
    b"\x1b[2J": b"escape",
    "caf\u00e9 \u8a9e \U0001f600".encode(): b"other alphabets",
    b"deep/" * 20 + b"er": b"deep",
    b"x" * 255: b"long",
}


class Case(harness.Case):
    """keep() publishes what is there; from then on kept() must hold."""

    def fake(self, code, *shell):
        """A COMMAND: fake_command.py says what CODE may be."""
        return [sys.executable, "-S", "-E", "-B", FAKE, code, *shell]

    def sync_fake(self, code, *options, shell=(), **popen):
        """A pass through exec and a fake."""
        return self.sync(
            *options, source="exec:" + self.src, command=self.fake(code, *shell), **popen
        )

    def sync_by(self, transport, *options, root=None, command=("sh",), **popen):
        """A pass through "local" or "exec"."""
        root = root or self.src
        if transport == "local":
            return self.sync(*options, source="local:" + root, **popen)
        return self.sync(*options, source="exec:" + root, command=command, **popen)

    def keep(self, files=None):
        """Publishes some files, then changes them all at the source."""
        files = files or {"a": b"old", "b/c": b"older"}
        for name, data in files.items():
            self.make(name, data)
        self.assertEqual(self.sync().status, 0)
        self.old = self.facts()
        for name, data in files.items():
            self.make(name, b"new " + data)
        self.make("new", b"content")

    def facts(self):
        """Contents and stamps of what is published, and the manifest."""
        found = {}
        for name, data in self.published().items():
            stat = os.lstat(os.path.join(os.fsencode(self.dst), name))
            found[name] = (data, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
        with open(os.path.join(self.dst, ".sbx-sync", "manifest.jsonl"), "rb") as file:
            return found, file.read()

    def assert_kept(self, run, states=None, says=""):
        """The listing failed, and all is as it was."""
        self.assertEqual(run.status, 3, run.err)
        self.assertEqual(run.report["outcome"], "failed")
        if states:
            self.assertIn(run.report["listing"]["state"], states.split("|"), run.err)
        self.assertIn(says, run.report["error"]["message"])
        self.assertEqual(run.files, {})
        self.assertEqual(run.report["bytes"], {"received": 0, "published": 0})
        self.assertEqual(self.facts(), self.old)

    def assert_mirrored(self, run, files=None):
        """All of src is published, byte for byte."""
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(self.published(), files if files is not None else self.content())

    def content(self):
        """The files below src and their contents."""
        found = {}
        top = os.fsencode(self.src)
        for parent, _, files in os.walk(top):
            for name in files:
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
        return found

    def tools(self, kind, leave_out=(), shell=None):
        """A directory to be PATH: links to the tools the scripts use of one kind ("gnu", "busybox"
        or "toybox") and a shell, and nothing else."""
        path = os.path.join(self.work, "-".join((kind, shell or "sh", *leave_out)))
        if os.path.isdir(path):
            return path
        os.mkdir(path)
        for name in TOOLS:
            target = f"/usr/bin/{name}" if kind == "gnu" else f"/usr/bin/{kind}"
            if name == "sh" and (shell or kind != "busybox"):
                target = f"/usr/bin/{shell or 'dash'}"
            # toybox as Debian has it knows no gzip
            if name not in leave_out and not (kind == "toybox" and name == "gzip"):
                os.symlink(target, os.path.join(path, name))
        return path

    def wrap(self, name, text, path=None):
        """A PATH on which the tool `name` is a script, with $real for the real one."""
        self.wrapped = getattr(self, "wrapped", 0) + 1
        folder = os.path.join(self.work, f"wrap{self.wrapped}")
        os.mkdir(folder)
        path = path or os.environ["PATH"]
        real = next(
            found
            for found in (os.path.join(part, name) for part in path.split(":"))
            if os.path.exists(found)
        )
        self.script(f"{os.path.basename(folder)}/{name}", f"#!/bin/sh\nreal={real}\n{text}\n")
        return folder + ":" + path

    def bare(self, path, shell="sh"):
        """A COMMAND: a shell that has nothing of our environment but PATH."""
        return ["env", "-i", "PATH=" + path, self._mark(), shell]

    def as_nobody(self, *command):
        """A COMMAND as another user."""
        return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                *command]

    def let_others_in(self):
        """Another user may search what leads to src."""
        os.chmod(self.tmp, 0o755)
        self.guard()

    def peak(self, *args, **popen):
        """Runs the command to its end, and measures: (Run, KiB of memory at most)."""
        process = self.start(*args, **popen)
        peaks = [0]

        def watch():
            while process.returncode is None:
                try:
                    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                        lines = dict(line.split(":", 1) for line in file)
                    if lines["Name"].strip() == "sbx-sync":
                        peaks[0] = max(peaks[0], int(lines.get("VmHWM", "0 kB").split()[0]))
                except (OSError, ValueError, KeyError):
                    pass
                ended.wait(0.005)
                if ended.is_set():
                    return

        ended = threading.Event()
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            run = self.finish(process)
        finally:
            ended.set()
            watcher.join()
        return run, peaks[0]
