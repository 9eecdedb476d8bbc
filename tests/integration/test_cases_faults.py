"""Every call below the destination fails once: the first of its kind, the second, and so on, until
a pass meets no failure. Each pass ends with a status, each name holds old or new content, and the
next pass completes."""

import errno
import os
import re
import shutil
import subprocess
import unittest

import harness

CALLS = (
    "openat create exclusive mkdirat write fsync syncfs close renameat renameat2 unlinkat fchmod "
    "futimens ftruncate fstatat fstat lock dupfd readdir pread"
).split()
ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EACCES)
OLD = {b"a": b"old a", b"d/b": b"old b", b"d/e/c": b"old c"}
NEW = {b"a": b"new a", b"d/b": b"newer b", b"d/e/c": b"newest c"}

# Takes a script, and gives the recorded answer with the words of 32 letters that this script has.
REPLAYING = """#!/bin/sh
while IFS= read -r line; do
    case $line in
    n=*) nonce=${line#n=} ;;
    *' exit '*' || :')
        set -f
        for word in $line; do
            case $word in ????????????????????????????????) own=$word ;; esac
        done
        . "$0.answer"
        ;;
    esac
done
"""


class Faults(harness.Case):
    """The walk of the source costs more than all the rest, so that it is recorded once."""

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.work, "bin"))
        self.path = os.path.join(self.work, "bin") + ":" + os.environ["PATH"]

    def write_all(self, files):
        for name, data in files.items():
            self.make(name, data)

    def record(self):
        """From now on the source is what it is now."""
        sh = self.script(
            "bin/sh",
            f'#!/bin/sh\ntee "$0.in" | {shutil.which("sh")} | tee "$0.out"\n',
        )
        self.assertEqual(self.sync("--dry-run", env=self.env(PATH=self.path)).status, 0)
        with open(sh + ".in", encoding="ascii") as file:
            own, nonce, _ = re.findall(r"\b[0-9a-f]{32}\b", file.read())
        with open(sh + ".out", encoding="ascii") as file:
            answer = file.read()
        self.assertIn(own, answer)
        self.assertNotIn("'", answer)
        answer = answer.replace(nonce, "'$nonce'").replace(own, "'$own'")
        with open(sh + ".answer", "w", encoding="ascii") as file:
            file.write(f"printf %s '{answer}'\n")
        self.script("bin/sh", REPLAYING)

    def fail_each(self, restore, old, options=()):
        """Gives how many calls of each kind there were to fail."""
        met = {}
        for call in CALLS:
            for n in range(1, 200):
                number = ERRORS[n % len(ERRORS)]
                with self.subTest(call, n=n, errno=errno.errorcode[number]):
                    restore()
                    env = self.shim(f"{call}={number}@{n}+1", PATH=self.path)
                    run = self.sync(*options, env=env)
                    if not any(result.startswith("!") for _, result, _ in self.calls()):
                        self.complete(run, options)
                        break
                    self.look(call, run, old)
                    self.complete(self.sync(*options, env=self.env(PATH=self.path)), options)
                met[call] = n
            else:
                self.fail(f"{call} does not end")
        return met

    def look(self, call, run, old):
        self.assertIn(run.status, (0, 1, 4), run.err)
        for name, data in self.published().items():
            if b".sbx-sync." not in name:
                self.assertIn(data, (old.get(name), NEW[name]), name)
        if run.status == 0:
            self.assertEqual(self.published(), NEW)
        elif run.status == 4:
            self.assertTrue(run.report["error"]["step"], run.report)
            self.assertTrue(run.report["error"]["errno"], run.report)
        for entry in run.files.values():
            if entry.get("reason") == "host":
                self.assertTrue(entry["step"] and entry["errno"], entry)
        if call != "unlinkat":
            self.assertEqual(self.temporaries(), [])

    def complete(self, run, options):
        self.assertEqual(run.status, 0, f"{options} {run.err}")
        self.assertEqual(self.published(), NEW)
        self.assertEqual(self.temporaries(), [])

    def empty(self):
        shutil.rmtree(self.dst, ignore_errors=True)

    def test_each_call_of_a_first_pass_fails_once(self):
        self.write_all(NEW)
        self.record()
        met = self.fail_each(self.empty, {})
        for call in CALLS:
            if call not in ("fchmod", "unlinkat", "pread"):
                self.assertIn(call, met)

    def test_each_call_of_an_update_fails_once(self):
        self.write_all(OLD)
        self.assertEqual(self.sync().status, 0)
        os.chmod(os.path.join(self.dst, "a"), 0o700)
        before = os.path.join(self.work, "before")
        subprocess.run(["cp", "-a", self.dst, before], check=True)
        self.write_all(NEW)
        self.record()

        def restore():
            self.empty()
            subprocess.run(["cp", "-a", before, self.dst], check=True)

        met = self.fail_each(restore, OLD, ("--durability", "full"))
        self.assertIn("fchmod", met)
        self.assertGreaterEqual(met["fsync"], 8)

    def test_each_call_of_a_pass_without_changes_fails_once(self):
        self.write_all(NEW)
        self.assertEqual(self.sync().status, 0)
        self.record()
        met = self.fail_each(lambda: os.chmod(os.path.join(self.dst, "a"), 0o644), NEW)
        self.assertIn("pread", met)

    def test_each_call_without_noreplace_fails_once(self):
        """Where names are given by links, which have to be removed again."""
        self.write_all(NEW)
        self.record()
        for n in range(1, 10):
            for call in ("linkat", "unlinkat"):
                with self.subTest(call, n=n):
                    self.empty()
                    number = ERRORS[n % len(ERRORS)]
                    rules = (f"renameat2={errno.EINVAL}", f"{call}={number}@{n}+1")
                    run = self.sync(env=self.shim(*rules, PATH=self.path))
                    self.look(call, run, {})
                    self.complete(self.sync(env=self.env(PATH=self.path)), rules)


if __name__ == "__main__":
    unittest.main()
