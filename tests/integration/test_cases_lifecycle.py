"""Failures from the field between passes: killed ones, two at once, manifests that are damaged,
listings that are cut, deadlines and signals."""

import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest

import harness


ALONE = 200001  # bytes of a file that exec fetches by a command of its own, not with others
HANGS = ("sh", "-c", "cat >/dev/null; exit")  # until the pass is gone


class Case(harness.Case):
    def at(self, name, root=None):
        return os.path.join(root or self.dst, name)

    @property
    def manifest(self):
        return self.at(".sbx-sync/manifest.jsonl")

    def lines(self):
        """The manifest's lines by path, after a look at its header and trailer."""
        with open(self.manifest, "rb") as file:
            data = file.read()
        lines = [json.loads(line) for line in data.splitlines()]
        body = data[: data.rindex(b"\n", 0, -1) + 1]
        self.assertEqual(lines[0]["schema"], "sbx-sync/manifest/1")
        self.assertEqual(lines[-1]["lines"], len(lines) - 2)
        digest = hashlib.blake2b(body, digest_size=32).hexdigest()
        self.assertIn(digest, lines[-1].values())
        return {line["path"]: line for line in lines[1:-1]}

    def stub(self, code):
        """A PATH in which `code` may take the place of tools in work/bin."""
        os.makedirs(os.path.join(self.work, "bin"), exist_ok=True)
        for name, text in code.items():
            self.script("bin/" + name, text)
        return self.env(PATH=os.path.join(self.work, "bin") + ":" + os.environ["PATH"])

    def slow_head(self, size=ALONE, seconds=60):
        """An environment in which a file of that size takes long to arrive."""
        head = shutil.which("head")
        return self.stub({"head": f'#!/bin/sh\n[ "$2" = {size} ] && sleep {seconds}\n'
                                  f'exec {head} "$@"\n'})


class Killed(Case):
    """SIGKILL at any instant."""

    leftovers = True  # looked at by the test itself

    def setUp(self):
        super().setUp()
        self.random = random.Random(77)
        self.old = {}
        for i in range(200):
            self.old[f"d{i % 7}/f{i}"] = b"%d old " % i * (i % 50)
        for i in range(2):
            self.old[f"large{i}"] = os.urandom(64) * 40000  # 2.5 MB

    def write_all(self, old):
        for name, data in old.items():
            self.make(name, data)

    def kill_and_look(self, new, delay):
        """Kills a pass after a while; each name holds its old content, a new one, or nothing."""
        process = self.start("-q", self.src, self.dst)
        time.sleep(delay)
        process.kill()
        self.assertIn(self.finish(process).status, (-signal.SIGKILL, 0, 1))
        found = {os.fsdecode(name): data for name, data in self.published().items()
                 if b".sbx-sync." not in name}
        for name, data in found.items():
            if name not in self.theirs:
                self.assertIn(data, (self.old[name], new[name]), name)
        return len(self.temporaries())

    def test_B077_no_part_of_a_file_gets_its_name_and_the_next_pass_tidies_up(self):
        self.write_all(self.old)
        self.assertEqual(self.sync().status, 0)
        self.theirs = {
            ".sbx-sync.notours": b"1", "d1/.sbx-sync." + "a1" * 12 + ".7": b"2",
            ".sbx-sync/.sbx-sync." + "b2" * 12 + ".1": b"3", "d2/.sbx-sync.": b"4",
            "d3/.sbx-sync." + "c3" * 12: b"5", "r.md.tmp": b"6",
        }
        for name, data in self.theirs.items():
            self.make(name, data, root=self.dst)
        began = time.monotonic()
        self.sync("--identity", "measures a pass")
        whole = time.monotonic() - began
        killed_with_leftovers = 0
        for n in range(21):
            new = {name: b"%d new " % n + data for name, data in self.old.items()}
            self.write_all(new)
            left = self.kill_and_look(new, self.random.uniform(0.2, 1.1) * whole)
            killed_with_leftovers += left > 5
            if n % 7 == 6:
                run = self.sync()
                self.assertEqual((run.status, run.report["warnings"]), (0, []), run.err)
                self.tidy_and_equal(new)
            self.old = {name: new[name] for name in self.old}
            for name, data in self.published().items():
                if os.fsdecode(name) in self.old:
                    self.old[os.fsdecode(name)] = data
        self.assertGreater(killed_with_leftovers, 2)

    def tidy_and_equal(self, new):
        found = self.published()
        wanted = {name.encode(): data for name, data in {**new, **self.theirs}.items()}
        state = ".sbx-sync/.sbx-sync." + "b2" * 12 + ".1"
        with open(self.at(state), "rb") as file:
            self.assertEqual(file.read(), wanted.pop(state.encode()))
        self.assertEqual(found, wanted)
        ours = {os.path.relpath(os.fsdecode(name), self.dst) for name in self.temporaries()}
        self.assertLessEqual(ours, set(self.theirs))
        self.assertEqual(set(self.lines()), set(new))

    def killed(self):
        """What a pass left that was killed while it fetched d/a."""
        self.make("d/a", b"x" * ALONE)
        process = self.start("exec:" + self.src, self.dst, "--", "sh", env=self.slow_head())
        self.until(self.temporaries, "a temporary")
        process.kill()
        self.finish(process)
        self._processes()  # what COMMAND had started
        return self.temporaries()

    def test_leftovers_that_were_replaced_by_links_or_directories_stay(self):
        (path,) = self.killed()
        with open(self.at(".sbx-sync/run"), "rb") as file:
            record = file.read()
        os.unlink(path)
        for plant in (lambda: os.symlink(self.outside + "/canary", path), lambda: os.mkdir(path),
                      lambda: os.mkfifo(path)):
            plant()
            before = os.lstat(path)
            self.make(".sbx-sync/run", record, root=self.dst)
            self.assertEqual(self.sync().status, 0)
            self.assertEqual(os.lstat(path).st_ino, before.st_ino)
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            else:
                os.unlink(path)

    def test_a_leftover_behind_a_link_stays(self):
        self.killed()
        os.rename(self.at("d"), os.path.join(self.work, "away"))
        os.symlink(os.path.join(self.work, "away"), self.at("d"))
        before = harness.snapshot(os.path.join(self.work, "away"))
        self.assertEqual(self.sync().why("d/a"), "linked")
        self.assertEqual(harness.snapshot(os.path.join(self.work, "away")), before)

    def test_a_run_record_that_is_damaged_removes_nothing_and_stops_nothing(self):
        token = "0123456789abcdef01234567"
        schema = '{"schema":"sbx-sync/run/1","token":"%s"}\n'
        self.make("a", b"1")
        for text in ("", "\0" * 100, "{}", schema % "../../outside", schema % token + "[" * 99999,
                     schema % token + '{"dir":"../outside"}\n', schema % token + '{"dir":"/"}\n',
                     schema % (token + "00") + '{"dir":""}\n', "\xff\n", '{"dir":""}\n'):
            with self.subTest(text[:60]):
                shutil.rmtree(self.dst, ignore_errors=True)
                name = f".sbx-sync.{token}.1"
                self.make(name, b"theirs", root=self.dst)
                self.make(".sbx-sync/run", text.encode("latin-1"), root=self.dst)
                run = self.sync()
                self.assertEqual(run.status, 0, run.err)
                with open(self.at(name), "rb") as file:
                    self.assertEqual(file.read(), b"theirs")

    def test_a_run_record_of_a_dead_pass_removes_what_bears_its_token(self):
        token = "0123456789abcdef01234567"
        self.make("a", b"1")
        ours, theirs = f"d/.sbx-sync.{token}.12", f"e/.sbx-sync.{token}.12"
        for name in (ours, theirs):
            self.make(name, b"x", root=self.dst)
        self.make(".sbx-sync/run",
                  b'{"schema":"sbx-sync/run/1","token":"%s"}\n{"dir":"d"}\n{"dir":"gone"}\n{"di'
                  % token.encode(), root=self.dst)
        self.assertEqual(self.sync().status, 0)
        self.assertFalse(os.path.exists(self.at(ours)))
        self.assertTrue(os.path.exists(self.at(theirs)))


class TwoAtOnce(Case):
    def holder(self):
        os.makedirs(self.dst, exist_ok=True)
        process = self.start("exec:/", self.dst, "--", *HANGS)

        def held():
            if not os.path.exists(self.at(".sbx-sync/lock")):
                return False
            whole = struct.pack("hh4xqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            with open(self.at(".sbx-sync/lock"), "rb+") as file:
                answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, whole)
            return struct.unpack("hh4xqqi4x", answer)[0] != fcntl.F_UNLCK

        self.until(held, "the lock")
        return process

    def test_B083_two_passes_of_200_files_each_and_one_waits_or_is_told(self):
        os.mkdir(self.dst)
        other = os.path.join(self.work, "other")
        for i in range(200):
            self.make(f"a/{i}", b"1")
            self.make(f"b/{i}", b"2", root=other)
        for wait, statuses in (("0", ([0, 5], [0, 0])), ("60", ([0, 0],))):
            with self.subTest(wait=wait):
                both = [self.start("--json", "--wait", wait, source, self.dst)
                        for source in (self.src, other)]
                runs = [self.finish(process) for process in both]
                self.assertIn(sorted(run.status for run in runs), statuses)
                for run in runs:
                    run.read_report()
                    if run.status == 5:
                        self.assertEqual(run.report["error"]["status"], "busy")
                        self.assertEqual(run.report["counts"]["listed"], 0)
                self.assertIn(len(self.lines()), (200,))
        self.assertEqual(len(self.published()), 400)

    def test_B083_a_wait_that_runs_out_and_one_that_does_not(self):
        self.make("a", b"1")
        process = self.holder()
        began = time.monotonic()
        run = self.sync("--wait", "0.7")
        self.assertEqual(run.status, 5)
        self.assertGreaterEqual(time.monotonic() - began, 0.7)
        waiting = self.start("--json", "--wait", "30", self.src, self.dst)
        time.sleep(0.5)
        self.assertIsNone(waiting.poll())
        process.kill()  # a dead process holds nothing
        process.wait()
        self.assertEqual(self.finish(waiting).read_report().status, 0)
        self.assertEqual(self.published(), {b"a": b"1"})

    def test_B083_a_wait_is_part_of_the_deadline(self):
        self.make("a", b"1")
        process = self.holder()
        began = time.monotonic()
        self.assertEqual(self.sync("--wait", "60", "--deadline", "1").status, 5)
        self.assertLess(time.monotonic() - began, 3)
        process.kill()

    def test_a_signal_ends_a_wait(self):
        process = self.holder()
        waiting = self.start("--wait", "60", self.src, self.dst)
        time.sleep(0.4)
        began = time.monotonic()
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(waiting).status, 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - began, 1)
        process.kill()

    def test_a_file_system_that_cannot_lock_costs_a_warning_and_the_sweep(self):
        self.make("a", b"1")
        run = self.sync(env=self.shim("lock=37"))  # ENOLCK
        self.assertEqual((run.status, run.report["warnings"]), (0, ["no-lock"]), run.err)
        self.assertEqual(self.published(), {b"a": b"1"})


class Listings(Case):
    """The manifest outlives listings that say less than there is."""

    def hundred(self):
        for i in range(100):
            self.make(f"f{i:02}", b"%d" % i)
        self.assertEqual(self.sync().count("published"), 100)

    def again(self, count=100):
        run = self.sync()
        self.assertEqual((run.status, run.count("unchanged")), (0, count), run.err)
        self.assertEqual(run.report["bytes"]["received"], 0)

    def test_B079_a_listing_that_was_cut_forgets_nothing(self):
        self.hundred()
        before = self.lines()
        base64 = shutil.which("base64")
        cuts = {
            "records": (self.env(), ["--max-records", "10"]),
            "bytes": (self.env(), ["--max-listing", "100"]),
            "stream": (self.stub({"base64": f'#!/bin/sh\n{base64} "$@" | head -c 100\n'}), []),
            "find dies": (self.stub({"base64": f'#!/bin/sh\nexec {base64} "$@"\n',
                                     "find": f'#!/bin/sh\n{shutil.which("find")} "$@" | head -c 300'
                                             "\nkill -9 $$\n"}), []),
        }
        for why, (env, options) in cuts.items():
            with self.subTest(why):
                run = self.sync(*options, env=env)
                self.assertEqual(run.status, 3, run.err)
                self.assertEqual(self.lines(), before)
        self.assertEqual(len(self.published()), 100)
        self.again()

    def test_B079_a_walk_with_errors_keeps_lines(self):
        self.hundred()
        find = shutil.which("find")
        env = self.stub({"find": f'#!/bin/sh\n{find} "$@" | head -z -n 50; exit 1\n'})
        run = self.sync(env=env)
        self.assertEqual((run.status, run.report["warnings"]), (1, ["find-errors"]))
        self.assertEqual(len(self.lines()), 100)
        self.again()

    def test_a_whole_listing_lets_go_of_lines_and_of_no_file(self):
        self.hundred()
        for i in range(50):
            os.unlink(self.at(f"f{i:02}", self.src))
        self.again(50)
        self.assertEqual((len(self.lines()), len(self.published())), (50, 100))

    def test_a_missing_or_empty_source_removes_nothing(self):
        self.hundred()
        before = self.lines()
        self.assertEqual(self.sync(source=self.src + "x").status, 3)
        self.assertEqual(self.lines(), before)
        shutil.rmtree(self.src)
        os.mkdir(self.src)
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(len(self.published()), 100)

    def test_what_is_excluded_keeps_its_lines(self):
        self.hundred()
        self.make("deep/er/x", b"x")
        self.sync()
        for pattern in ("f1*", "deep", "f05"):
            run = self.sync("--exclude", pattern)
            self.assertEqual((run.status, run.report["bytes"]["received"]), (0, 0))
            self.assertEqual(len(self.lines()), 101)
        self.again(101)

    def test_another_identity_fetches_all_anew(self):
        self.make("a", b"1")
        self.make("b", b"2")
        self.sync("--identity", "one")
        self.assertEqual(self.sync("--identity", "one").count("unchanged"), 2)
        run = self.sync("--identity", "two")
        self.assertEqual((run.status, run.count("published")), (0, 2))
        self.assertEqual(self.sync("--identity", "two").count("unchanged"), 2)
        run = self.sync(source="exec:" + self.src, command=["sh"])
        self.assertEqual(run.count("published"), 2)


class Manifests(Case):
    def damaged(self, write, warns=True):
        """A pass with a damaged manifest fetches all, and leaves a good one."""
        write()
        run = self.sync()
        self.assertEqual((run.status, run.count("published")), (0, 3), run.err)
        self.assertEqual(run.report["warnings"], ["manifest"] if warns else [])
        self.assertEqual(set(self.lines()), set(map(os.fsdecode, self.published())))

    def put(self, data):
        with open(self.manifest, "wb") as file:
            file.write(data)

    def test_B081_a_damaged_manifest_costs_a_warning_and_a_full_pass(self):
        for name in ("a", "b", "d/c"):
            self.make(name, b"1")
        self.sync()
        with open(self.manifest, "rb") as file:
            good = file.read()
        lines = good.splitlines(keepends=True)
        dead = lines[1].replace(b'"path":"a"', b'"path":"a","path":"a"')
        self.assertNotEqual(dead, lines[1])
        for why, data in (
            ("no bytes", b""),
            ("cut", good[: len(good) // 2]),
            ("cut before the trailer", b"".join(lines[:-1])),
            ("a line less", b"".join(lines[:1] + lines[2:])),
            ("lines swapped", b"".join([lines[0], lines[2], lines[1], *lines[3:]])),
            ("a bit", good.replace(b'"size":1', b'"size":2', 1)),
            ("a newer schema", good.replace(b"manifest/1", b"manifest/2", 1)),
            ("nesting", b"[" * 100000 + b"\n" + good),
            ("nesting in a line", lines[0] + b"[" * 100000 + b"\n" + b"".join(lines[1:])),
            ("a key twice", b"".join([lines[0], dead, *lines[2:]])),
            ("garbage", os.urandom(5000)),
            ("zeros", bytes(5000)),
            ("no line end", good[:-1]),
            ("more", good + b"{}\n"),
        ):
            with self.subTest(why):
                self.damaged(lambda data=data: self.put(data))
        self.assertEqual(self.sync().count("unchanged"), 3)

    def test_B081_a_manifest_of_a_gibibyte_is_not_read(self):
        for name in ("a", "b", "c"):
            self.make(name, b"1")
        self.sync()

        def write():
            with open(self.manifest, "rb+") as file:
                file.truncate(1 << 30)

        began = time.monotonic()
        self.damaged(write)
        self.assertLess(time.monotonic() - began, 20)

    def test_B081_a_manifest_that_is_gone_is_no_reason_to_warn(self):
        for name in ("a", "b", "c"):
            self.make(name, b"1")
        self.sync()
        self.damaged(lambda: os.unlink(self.manifest), warns=False)
        self.damaged(lambda: shutil.rmtree(self.at(".sbx-sync")), warns=False)

    def test_paths_of_a_manifest_lead_nowhere(self):
        """One that is whole, with paths that preflight refuses."""
        self.make("a", b"1")
        self.sync()
        with open(self.manifest, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        for path in (b"../outside/canary", b"/etc/passwd", b".sbx-sync/lock", b"a\\u0000b"):
            with self.subTest(path):
                body = lines[0] + lines[1].replace(b'"path":"a"', b'"path":"' + path + b'"')
                trailer = json.loads(lines[-1])
                key = [key for key, value in trailer.items() if isinstance(value, str)][0]
                trailer[key] = hashlib.blake2b(body, digest_size=32).hexdigest()
                self.put(body + json.dumps(trailer).encode() + b"\n")
                run = self.sync()
                self.assertEqual((run.status, run.report["warnings"]), (0, ["manifest"]), run.err)


class Stamps(Case):
    """What moves on the host alone costs reading, and no download."""

    def setUp(self):
        super().setUp()
        for name in ("a", "b", "d/c"):
            self.make(name, b"some content")
        self.sync()

    def unchanged(self, count=3):
        run = self.sync()
        self.assertEqual((run.status, run.count("unchanged")), (0, count), run.err)
        if count == 3:
            self.assertEqual(run.report["bytes"]["received"], 0)
        return run

    def test_a_copy_of_the_destination_is_taken_for_what_it_is(self):
        copy = os.path.join(self.work, "copy")
        for flags in ("-al", "-a", "-r"):
            with self.subTest(flags):
                subprocess.run(["cp", flags, self.dst, copy], check=True)
                shutil.rmtree(self.dst)
                os.rename(copy, self.dst)
                before = self.lines()
                self.unchanged()
                after = self.lines()
                if flags != "-al":
                    self.assertNotEqual(before, after)  # the stamps were renewed
                self.assertEqual([line["digest"] for line in before.values()],
                                 [line["digest"] for line in after.values()])
                self.assertEqual(self.reads(), 0)

    def reads(self):
        """How many files below dst a pass reads."""
        self.assertEqual(self.sync(env=self.shim()).count("unchanged"), 3)
        return len([path for call, _, path in self.calls()
                    if call == "openat" and path in ("a", "b", "d/c")])

    def test_chmod_touch_and_links_cost_one_reading(self):
        self.assertEqual(self.reads(), 0)
        os.chmod(self.at("a"), 0o600)
        os.utime(self.at("b"), (1, 1))
        os.link(self.at("d/c"), os.path.join(self.work, "link"))
        self.assertEqual(self.reads(), 3)
        self.assertEqual(self.reads(), 0)
        self.assertEqual(os.stat(self.at("b")).st_mtime, 1)

    def test_other_content_on_the_host_is_replaced(self):
        facts = os.lstat(self.at("a"))
        with open(self.at("a"), "rb+") as file:
            file.write(b"Some")
        os.utime(self.at("a"), ns=(facts.st_atime_ns, facts.st_mtime_ns))
        with open(self.at("b"), "ab") as file:
            file.write(b"more")
        os.unlink(self.at("d/c"))
        run = self.sync()
        self.assertEqual((run.status, run.count("published")), (0, 3))
        self.assertEqual(set(self.published().values()), {b"some content"})

    def test_B087_rounded_times_cost_no_download(self):
        shutil.rmtree(self.dst)
        for i, name in enumerate(("a", "b", "d/c")):
            os.utime(self.at(name, self.src), (1700000001.5 + i, 1700000001.5 + i))
        run = self.sync(env=self.shim("mtime2"))
        self.assertEqual(run.count("published"), 3)
        self.assertEqual(os.lstat(self.at("a")).st_mtime, 1700000000)
        self.assertEqual(self.sync(env=self.shim("mtime2")).count("unchanged"), 3)
        os.utime(self.at("b"), (1700000004, 1700000004))  # rounded only once it left the cache
        self.unchanged()
        self.assertEqual(self.reads(), 0)

    def test_a_file_that_was_made_elsewhere_is_replaced_and_said_so_by_a_dry_run(self):
        shutil.rmtree(self.at(".sbx-sync"))
        before = harness.snapshot(self.dst)
        run = self.sync("--dry-run")
        self.assertEqual(run.count("would-publish"), 3)
        self.assertTrue(all(entry["replaces"] for entry in run.files.values()))
        self.assertEqual(harness.snapshot(self.dst), before)
        self.assertEqual(self.sync().count("published"), 3)

    def test_a_dry_run_beside_a_running_pass_writes_nothing(self):
        self.make("a", b"new")
        process = self.start("exec:/", self.dst, "--", *HANGS)
        time.sleep(0.3)
        before = harness.snapshot(self.dst)
        run = self.sync("--dry-run")
        self.assertEqual((run.status, run.outcome("a"), run.outcome("b")),
                         (0, "would-publish", "unchanged"))
        self.assertEqual(harness.snapshot(self.dst), before)
        process.kill()


class Ends(Case):
    def files(self):
        self.make("a", b"a")
        self.make("f", b"f" * ALONE)
        self.make("f", b"old", root=self.dst)
        self.make("g", b"g")

    def look(self, run, why):
        self.assertEqual(run.why("f"), why)
        self.assertEqual(self.temporaries(), [])
        published = self.published()
        self.assertEqual(published[b"f"], b"old")
        for name, data in published.items():
            self.assertIn(data, (b"old", b"a", b"g"), name)

    def test_B085_SIGTERM_ends_a_pass_within_a_second(self):
        self.files()
        process = self.start("--json", "--deadline", "60", "exec:" + self.src, self.dst, "--",
                             "sh", env=self.slow_head())
        self.until(lambda: self.temporaries(), "a file to arrive")
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        run = self.finish(process).read_report()
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(run.status, 143)
        self.look(run, "cancelled")
        self.assertEqual(self.sync().status, 0)

    def test_B085_a_deadline_with_a_source_that_stalls(self):
        self.files()
        began = time.monotonic()
        run = self.sync("--deadline", "3", source="exec:" + self.src, command=["sh"],
                        env=self.slow_head())
        self.assertLess(time.monotonic() - began, 4.5)
        self.assertEqual(run.status, 1, run.err)
        self.look(run, "deadline")
        self.assertEqual(run.outcome("a"), "published")  # the last batch had its time
        self.assertEqual(self.sync().status, 0)

    def test_B085_a_deadline_before_the_listing_has_ended(self):
        self.make("a", b"1")
        self.make("a", b"old", root=self.dst)
        env = self.stub({"find": "#!/bin/sh\nsleep 60\n"})
        began = time.monotonic()
        run = self.sync("--deadline", "2", env=env)
        self.assertLess(time.monotonic() - began, 3.5)
        self.assertEqual((run.status, run.report["listing"]["state"]), (3, "deadline"))
        self.assertEqual(self.published(), {b"a": b"old"})

    def test_B085_signals_at_any_instant_end_in_order(self):
        chance = random.Random(85)
        for i in range(60):
            self.make(f"d{i % 5}/f{i}", b"x" * i)
        began = time.monotonic()
        self.sync()
        whole = time.monotonic() - began
        for n in range(12):
            process = self.start("--json", "-q", "--identity", str(n), self.src, self.dst)
            time.sleep(chance.uniform(0.1, 1.1) * whole)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            run = self.finish(process)
            self.assertLess(time.monotonic() - began, 2)
            if run.status == -signal.SIGTERM:
                continue  # it had not come to watching signals yet, or had ended that already
            run.read_report()
            self.assertIn(run.status, (0, 143), run.err)
            self.assertEqual(self.temporaries(), [])
        self.assertEqual(self.sync().status, 0)


if __name__ == "__main__":
    unittest.main()
