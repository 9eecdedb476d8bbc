"""Failures from the field while files are fetched: they grow, shrink, vanish, hang, do not fit."""

import os
import shutil
import socket
import sys
import threading
import time
import unittest

import harness

KINDS = ("local", "exec")
ALONE = 200001  # bytes of a file that exec fetches by a command of its own, not with others
NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups sh".split()


class Moving(harness.Case):
    """A source that changes at a chosen moment. Tools of the test's own stand in work/bin."""

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.work, "bin"))
        self.path = os.path.join(self.work, "bin") + ":" + os.environ["PATH"]

    def by(self, kind, *options, **popen):
        """A pass by a transport, with the tools of the test."""
        popen.setdefault("env", self.env(PATH=self.path))
        if kind == "local":
            return self.sync(*options, **popen)
        command = popen.pop("command", ["sh"])
        return self.sync(*options, source="exec:" + self.src, command=command, **popen)

    def anew(self):
        """Empty source and destination."""
        shutil.rmtree(self.src)
        shutil.rmtree(self.dst, ignore_errors=True)
        os.mkdir(self.src)

    def after_listing(self, code):
        """Once the source is listed, `code` happens to it, once."""
        self.script(
            "bin/find",
            f"#!/bin/sh\n{shutil.which('find')} \"$@\"; s=$?\n"
            f'case "$*" in */.*%P*) cd {self.src}; mkdir {self.work}/once && {{\n{code}\n}} ;; esac '
            "</dev/null >/dev/null 2>&1\nexit $s\n",
        )
        shutil.rmtree(os.path.join(self.work, "once"), ignore_errors=True)

    def head(self, code):
        """`head -c SIZE` of a file is `code`, with SIZE in $2; others stay as they are."""
        self.script(
            "bin/head",
            f'#!/bin/sh\nhead={shutil.which("head")}\n{code}\nexec $head "$@"\n',
        )

    def growing(self, *names):
        """These files grow until the test calls the result."""
        stop = threading.Event()

        def grow():
            while not stop.is_set():
                for name in names:
                    with open(os.path.join(self.src, name), "ab") as file:
                        file.write(b"more" * 100)
                time.sleep(0.001)

        thread = threading.Thread(target=grow)
        thread.start()

        def end():
            stop.set()
            thread.join()

        self.addCleanup(end)
        return end


class Changing(Moving):
    def test_B042_a_file_that_grows_all_the_time_is_not_published_and_the_next_one_is(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                self.make("log", b"x" * 1000)
                self.make("next", b"n")
                self.make("log", b"old", root=self.dst)
                end = self.growing("log")
                run = self.by(kind)
                end()
                self.assertEqual(run.status, 1, run.err)
                self.assertEqual(run.why("log"), "changed")
                self.assertEqual(self.published(), {b"log": b"old", b"next": b"n"})

    def test_B042_nothing_beyond_the_listed_size_is_received(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                self.make("log", b"x" * 1000)
                self.after_listing("head -c 50000000 /dev/zero >>log")
                run = self.by(kind, "--max-file-size", "1M")
                self.assertEqual((run.status, run.why("log")), (1, "too-large"))
                self.assertLessEqual(run.report["bytes"]["received"], 2000)
                self.assertEqual(self.published(), {})

    def test_B042_a_file_that_changed_once_is_fetched_once_more(self):
        changes = {
            b"grown": ("printf more >>grown", b"x" * 1000 + b"more"),
            b"cut": ("printf less >cut", b"less"),
            b"emptied": (": >emptied", b""),
            b"replaced": ("printf other >new; mv new replaced", b"other"),
            b"same-size": ("printf y | dd of=same-size conv=notrunc", b"y" + b"x" * 999),
        }
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                for name in changes:
                    self.make(name, b"x" * 1000)
                self.after_listing("\n".join(code for code, _ in changes.values()))
                run = self.by(kind)
                self.assertEqual(run.status, 0, run.err)
                self.assertEqual(self.published(), {name: now for name, (_, now) in changes.items()})
                self.assertEqual(self.by(kind).count("unchanged"), 5)

    def test_B042_a_growing_file_is_published_as_listed_where_that_is_wanted(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                self.make("log", b"x" * 1000)
                self.after_listing("printf more >>log")
                run = self.by(kind, "--allow-changing", "-v")
                self.assertEqual(run.status, 0, run.err)
                self.assertTrue(run.files[b"log"]["unstable"])
                self.assertIn("published (unstable: it was being written to): log\n", run.err)
                self.assertEqual(self.published(), {b"log": b"x" * 1000})
                run = self.by(kind)
                self.assertEqual(run.count("published"), 1)
                self.assertEqual(self.published(), {b"log": b"x" * 1000 + b"more"})

    def test_B055_what_vanished_fails_alone_and_its_old_copy_stays(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                for i in range(10):
                    self.make(f"f{i}", b"new")
                self.make("f3", b"old", root=self.dst)
                self.after_listing("rm f3")
                run = self.by(kind)
                self.assertEqual(run.status, 1, run.err)
                self.assertEqual(run.report["reasons"], {"vanished": 1})
                self.assertEqual(run.why("f3"), "vanished")
                self.assertEqual(run.count("published"), 9)
                self.assertEqual(self.published()[b"f3"], b"old")

    def test_B055_what_is_no_file_any_more_is_not_read(self):
        outside = os.path.join(self.outside, "canary")
        changes = {
            "a": "rm a; mkdir a",
            "b": "rm b; mkfifo b",
            "c": f"rm c; ln -s {outside} c",
            "d": "rm d; ln -s nowhere d",
            "e/f": f"rm -r e; cp {outside} e",
            "s": "mv ../socket s",
        }
        for kind in KINDS:
            with self.subTest(kind), socket.socket(socket.AF_UNIX) as waits:
                self.anew()
                waits.bind(os.path.join(self.work, "socket"))
                for name in ("next", *changes):
                    self.make(name, b"fives")
                self.after_listing("\n".join(changes.values()).replace("../", self.work + "/"))
                began = time.monotonic()
                run = self.by(kind)
                self.assertLess(time.monotonic() - began, 20)
                self.assertEqual((run.status, run.count("failed")), (1, 6), run.err)
                self.assertLessEqual(set(run.report["reasons"]), {"changed", "vanished"})
                self.assertEqual(self.published(), {b"next": b"fives"})

    def test_B055_a_directory_that_became_a_link_is_not_followed_locally(self):
        """Through exec it is the sandbox that follows links of its own."""
        self.make("d/canary", b"fives")
        self.after_listing(f"rm -r d; ln -s {self.outside} d")
        run = self.by("local")
        self.assertEqual((run.status, run.why("d/canary")), (1, "vanished"))
        self.assertEqual(self.published(), {})

    def test_B055_an_unreadable_file_is_denied(self):
        os.chmod(self.tmp, 0o755)
        for name in ("a", "b", "c"):
            os.chmod(self.make(name, b"x"), 0o000 if name == "b" else 0o644)
        self.guard()
        run = self.by("exec", command=NOBODY)
        self.assertEqual((run.status, run.why("b")), (1, "denied"))
        self.assertEqual(run.count("published"), 2)

    def test_B056_other_content_of_the_same_size_is_fetched(self):
        now = 1700000000
        names = ("newer", "older", "same-time", "moved", "linked")
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                for name in names:
                    self.make(name, b"AAAA", mtime=now)
                self.assertEqual(self.by(kind).count("published"), 5)
                self.assertEqual(self.by(kind).count("unchanged"), 5)
                for name, mtime in (("newer", now + 9), ("older", now - 9), ("same-time", now)):
                    self.make(name, b"BBBB", mtime=mtime)
                for name, call in (("moved", os.rename), ("linked", os.link)):
                    other = self.make("other-" + name, b"BBBB", mtime=now)
                    os.unlink(os.path.join(self.src, name))
                    call(other, os.path.join(os.fsencode(self.src), name.encode()))
                run = self.by(kind)
                self.assertEqual(run.status, 0, run.err)
                self.assertEqual({self.published()[name.encode()] for name in names}, {b"BBBB"})

    def test_B056_a_change_that_only_ctime_tells_is_missed_with_ignore_ctime(self):
        self.make("f", b"AAAA", mtime=1700000000)
        self.by("local")
        self.make("f", b"BBBB", mtime=1700000000)
        self.assertEqual(self.by("local", "--ignore-ctime").count("unchanged"), 1)
        self.assertEqual(self.by("local").count("published"), 1)


class Short(Moving):
    def prepare(self, code):
        """Instead of `head -c SIZE FILE` for f."""
        self.head(f'[ "$2" = {ALONE} ] && {{ {code}; exit; }}')
        for name, data in (("a", b"a"), ("f", b"x" * ALONE), ("g", b"g")):
            self.make(name, data)
        self.make("f", b"old", root=self.dst)

    def test_B044_a_short_body_is_not_published(self):
        self.prepare('$head -c 200000 "$3"')
        run = self.by("exec")
        self.assertEqual((run.status, run.why("f")), (1, "short"))
        self.assertEqual(self.published(), {b"a": b"a", b"f": b"old", b"g": b"g"})

    def test_B044_a_body_that_is_longer_than_its_record_is_not_published(self):
        self.prepare('$head -c 200001 "$3"; yes | $head -c 10000000')
        run = self.by("exec")
        self.assertEqual(run.status, 1, run.err)
        self.assertLessEqual(run.report["bytes"]["received"], 2 * ALONE + 4)
        self.assertEqual(self.published()[b"f"], b"old")

    def test_B044_a_tool_that_fails_is_an_error_of_the_server(self):
        self.prepare('$head -c 200000 "$3"; exit 3')
        run = self.by("exec", "-v")
        self.assertEqual((run.status, run.why("f")), (1, "server"))
        self.assertIn("head ended with status 3", run.err)
        self.assertEqual(self.published(), {b"a": b"a", b"f": b"old", b"g": b"g"})

    def test_B044_a_command_that_dies_in_mid_body_leaves_the_old_copy(self):
        self.prepare('$head -c 200000 "$3"; sleep 0.2; kill -9 $(cat "$SHELL_PID")')
        shell = self.script("shell", '#!/bin/sh\necho $$ >"$SHELL_PID"\nexec sh\n')
        env = self.env(PATH=self.path, SHELL_PID=os.path.join(self.work, "pid"))
        run = self.by("exec", command=[shell], env=env)
        self.assertEqual(run.status, 1, run.err)
        self.assertIn(run.why("f"), ("source-lost", "server", "short"))
        self.assertEqual(self.published()[b"a"], b"a")
        self.assertEqual(self.published()[b"f"], b"old")

    def test_B044_files_that_come_together_and_fall_short_are_fetched_alone(self):
        names = ("a", "b", "c")
        for name in names:
            self.make(name, name.encode() * 1000)
        self.head('[ "$2" = 3000 ] && exec $head -c 2900')
        run = self.by("exec")
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(self.published(), {n.encode(): n.encode() * 1000 for n in names})


SLOW = """
import os, subprocess, sys, time
child = subprocess.Popen(["sh"], stdout=subprocess.PIPE)
slow = False
while True:
    data = os.read(child.stdout.fileno(), 65536)
    if not data:
        break
    slow = slow or b" file " in data or b" group " in data
    for i in range(len(data) if slow else 1):
        os.write(1, data[i : i + 1] if slow else data)
        time.sleep(1 if slow else 0)
"""


class Slow(Moving):
    """The deadline holds, whatever hangs."""

    def hung(self, kind, *options, seconds=5, **popen):
        began = time.monotonic()
        run = self.by(kind, "--deadline", str(seconds), *options, **popen)
        self.assertLess(time.monotonic() - began, seconds + 1.5)
        return run

    def prepare(self, size):
        for name, data in (("a", b"a" * size), ("f", b"x" * size), ("g", b"g" * size)):
            self.make(name, data)
        self.make("f", b"old", root=self.dst)

    def test_B051_a_byte_each_second_ends_at_the_deadline(self):
        for size in (100, ALONE):
            with self.subTest(size):
                self.anew()
                self.prepare(size)
                run = self.hung("exec", command=[sys.executable, "-c", SLOW])
                self.assertEqual(run.status, 1, run.err)
                self.assertEqual([run.why(name) for name in "afg"], ["deadline"] * 3)
                self.assertEqual(self.published(), {b"f": b"old"})
                self.assertEqual(self.temporaries(), [])

    def test_B051_silence_in_mid_body_ends_at_the_deadline(self):
        self.prepare(ALONE)
        counter = os.path.join(self.work, "second")
        self.head(f'[ "$2" = {ALONE} ] && ! mkdir {counter} 2>/dev/null && {{ $head -c 200000 "$3"; '
                  "sleep 60; }")
        run = self.hung("exec", seconds=4)
        self.assertEqual((run.status, run.why("f"), run.why("g")), (1, "deadline", "deadline"))
        self.assertEqual(run.outcome("a"), "published")
        self.assertEqual(self.published()[b"f"], b"old")

    def test_B051_silence_in_a_group_ends_at_the_deadline(self):
        self.prepare(100)
        self.head('[ "$2" = 300 ] && { $head -c 150; sleep 60; }')
        run = self.hung("exec", seconds=4)
        self.assertEqual(run.status, 1, run.err)
        self.assertEqual([run.why(name) for name in "afg"], ["deadline"] * 3)
        self.assertEqual(self.published(), {b"f": b"old"})

    def test_B051_a_command_that_does_not_listen_to_sigterm_ends_at_the_deadline(self):
        for code in ("trap '' TERM; sleep 60 & wait", "trap '' TERM; while :; do :; done"):
            for kind in KINDS:
                with self.subTest(kind, code=code):
                    self.make("a", b"a")
                    self.script("bin/sh", f"#!/bin/bash\n{code}\n")
                    run = self.hung(kind, seconds=2)
                    self.assertEqual(run.status, 3, run.err)
                    self.assertEqual(run.report["listing"]["state"], "deadline")

    def test_B051_a_listing_that_never_ends_ends_at_the_deadline(self):
        self.make("a", b"a")
        self.script("bin/find", "#!/bin/sh\nwhile :; do sleep 0.1; printf x; done\n")
        for kind in KINDS:
            with self.subTest(kind):
                run = self.hung(kind, seconds=2)
                self.assertEqual((run.status, run.report["listing"]["state"]), (3, "deadline"))


class Budgets(Moving):
    def test_B052_capped_passes_converge_and_fetch_nothing_twice(self):
        for i in range(5000):
            self.make(f"d{i % 50}/f{i}", b"%d" % i)
        total = sum(len(str(i)) for i in range(5000))
        received = 0
        for expected, status in ((2000, 1), (2000, 1), (1000, 0)):
            run = self.by("local", "--max-files", "2000", "--durability", "none")
            self.assertEqual((run.status, run.count("published")), (status, expected))
            if status:
                self.assertEqual(set(run.report["reasons"]), {"over-budget"})
            received += run.report["bytes"]["received"]
        self.assertEqual(received, total)
        self.assertEqual(len(self.published()), 5000)

    def peak(self, kind):
        """KiB that a pass takes at most."""
        source = self.src if kind == "local" else "exec:" + self.src
        tail = [] if kind == "local" else ["--", "sh"]
        process = self.start("-q", source, self.dst, *tail)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss

    def test_B052_a_large_file_takes_no_memory(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.anew()
                self.make("small", b"x")
                small = self.peak(kind)
                with open(os.path.join(self.src, "large"), "wb") as file:
                    file.write(b"head")
                    file.truncate(99 << 20)
                self.assertLess(self.peak(kind), small + (16 << 10))
                self.assertEqual(os.path.getsize(os.path.join(self.dst, "large")), 99 << 20)

    def test_what_does_not_fit_does_not_keep_smaller_ones_out(self):
        for name, size in (("a", 1000), ("b", 10000), ("c", 100), ("d", 9000), ("e", 1)):
            self.make(name, b"x" * size)
        run = self.by("local", "--max-bytes", "2000")
        self.assertEqual(run.status, 1)
        self.assertEqual([run.why(n) for n in "abcde"], [None, "over-budget", None,
                                                        "over-budget", None])
        run = self.by("local", "--max-bytes", "12k")
        self.assertEqual([run.outcome(n) for n in "abd"], ["unchanged", "published", "deferred"])
        self.assertEqual(self.by("local").count("published"), 1)

    def test_what_is_too_large_for_a_pass_is_refused_each_time_and_the_rest_goes_on(self):
        self.make("a", b"x" * 3000)
        self.make("b", b"x")
        for outcome in ("published", "unchanged"):
            run = self.by("local", "--max-file-size", "2999")
            self.assertEqual((run.why("a"), run.outcome("b")), ("too-large", outcome))

    def test_directories_cost_something(self):
        for i in range(10):
            self.make(f"{i}/f", b"x")
        run = self.by("local", "--max-bytes", str(5 * 4097))
        self.assertEqual((run.count("published"), run.count("deferred")), (5, 5))

    def test_what_failed_last_time_comes_last(self):
        self.head(f'[ "$2" = {ALONE} ] && exit 3')
        self.make("a", b"a" * ALONE)
        self.make("b", b"b")
        self.make("c", b"c")
        runs = [self.by("exec", "--max-files", "1") for _ in range(4)]
        self.assertEqual([run.why("a") for run in runs],
                         ["server", "over-budget", "over-budget", "server"])
        self.assertEqual(self.published(), {b"b": b"b", b"c": b"c"})

    def test_discarded_bytes_count(self):
        """Each file is received and thrown away, so that the third one finds the budget spent."""
        self.make("a", b"a" * 1000)
        self.make("b", b"b" * 1000)
        self.make("c", b"c" * 1000)
        end = self.growing("a", "b")
        run = self.by("exec", "--max-bytes", "4000")
        end()
        self.assertLessEqual(run.report["bytes"]["received"], 4000)
        self.assertIn(run.outcome("c"), ("published", "deferred"))


class Directories(Moving):
    def test_directories_made_for_nothing_are_removed_again(self):
        self.head(f'[ "$2" = {ALONE} ] && exit 3')
        self.make("new/deep/a", b"a" * ALONE)
        self.make("kept/a", b"a" * ALONE)
        self.make("half/a", b"a" * ALONE)
        self.make("half/b", b"b")
        os.makedirs(os.path.join(self.dst, "kept"))
        run = self.by("exec")
        self.assertEqual(run.report["reasons"], {"server": 3})
        self.assertEqual(sorted(os.listdir(self.dst)), [".sbx-sync", "half", "kept"])
        self.assertEqual(self.published(), {b"half/b": b"b"})


if __name__ == "__main__":
    unittest.main()
