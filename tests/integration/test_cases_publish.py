"""Failures from the field while files get their names: what stands in the destination already, and
file systems that refuse."""

import ctypes
import errno
import os
import shutil
import socket
import stat
import subprocess
import threading
import time
import unittest

import harness

ALONE = 200001  # bytes of a file that exec fetches by a command of its own, not with others
EXCHANGE = 2  # RENAME_EXCHANGE
LIBC = ctypes.CDLL(None, use_errno=True)


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.before = os.umask(0o022)
        self.addCleanup(os.umask, self.before)

    def at(self, name, root=None):
        return os.path.join(root or self.dst, name)

    def mount(self, what, path, *options):
        """Mounts something until the test ends. Skips without the right to mount, which at a desk
        or in a container few have."""
        os.makedirs(path, exist_ok=True)
        done = subprocess.run(["mount", *options, what, path], stderr=subprocess.PIPE, check=False)
        if done.returncode:
            self.skipTest(f"cannot mount: {done.stderr.decode()}")
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)

    def mode(self, name):
        return stat.S_IMODE(os.lstat(self.at(name)).st_mode)

    def while_fetching(self, code, size=ALONE):
        """A COMMAND that runs `code` in dst while a file of `size` bytes is on its way."""
        bin_dir = os.path.join(self.work, "bin")
        os.makedirs(bin_dir, exist_ok=True)
        head = shutil.which("head")
        self.script(
            "bin/head",
            f'#!/bin/sh\n{head} "$@"; [ "$2" = {size} ] || exit 0\n'
            f"{{ cd {self.dst}; {code}; }} </dev/null >/dev/null 2>&1\n",
        )
        path = bin_dir + ":" + os.environ["PATH"]
        return {"source": "exec:" + self.src, "command": ["env", "PATH=" + path, "sh"]}


class Planted(Case):
    """Whatever stands in the destination: links, FIFOs, directories, sockets."""

    def test_B058_links_on_the_way_are_not_followed(self):
        for name in ("a/x", "b/c/y", "fine"):
            self.make(name, b"new")
        os.makedirs(self.at("b"))
        os.symlink(self.outside, self.at("a"))
        os.symlink("../../outside", self.at("b/c"))
        run = self.sync()
        self.assertEqual(run.status, 1, run.err)
        self.assertEqual(run.report["reasons"], {"linked": 2})
        self.assertEqual(run.files[b"b/c/y"]["with"], ["c"])
        self.assertEqual(os.listdir(self.outside), ["canary"])
        self.assertEqual(os.readlink(self.at("a")), self.outside)
        with open(self.at("fine"), "rb") as file:
            self.assertEqual(file.read(), b"new")

    def test_B058_a_link_in_place_of_the_file_is_refused(self):
        target = os.path.join(self.outside, "canary")
        for name, to in (("a", target), ("b", "../outside/canary"), ("c", "nowhere"), ("d", "d"),
                         ("e", self.outside), ("f", "/etc/passwd")):
            self.make(name, b"new")
            os.makedirs(self.dst, exist_ok=True)
            os.symlink(to, self.at(name))
        run = self.sync()
        self.assertEqual((run.status, run.report["reasons"]), (1, {"linked": 6}))
        self.assertEqual(run.report["bytes"]["received"], 0)
        self.assertTrue(all(os.path.islink(self.at(name)) for name in "abcdef"))

    def test_what_is_no_file_is_refused_without_waiting(self):
        for name in ("fifo", "socket", "device", "dir", "fifo-dir/x", "file/x"):
            self.make(name, b"new")
        os.makedirs(self.at("dir/full"))
        os.mkfifo(self.at("fifo"))
        os.mkfifo(self.at("fifo-dir"))
        self.make("file", b"old", root=self.dst)
        os.mknod(self.at("device"), 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        with socket.socket(socket.AF_UNIX) as waits:
            waits.bind(self.at("socket"))
            began = time.monotonic()
            run = self.sync()
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(run.status, 1, run.err)
        self.assertEqual(
            {os.fsdecode(name): entry["reason"] for name, entry in run.files.items()},
            {"fifo": "special", "socket": "special", "device": "special", "dir": "type-conflict",
             "fifo-dir/x": "type-conflict", "file/x": "type-conflict"},
        )
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.at("fifo")).st_mode))

    def test_B063_a_file_that_became_a_directory_stops_itself_only(self):
        self.make("A1", b"file")
        self.make("old/x", b"1")
        self.assertEqual(self.sync().status, 0)
        os.unlink(self.at("A1", self.src))
        shutil.rmtree(self.at("old", self.src))
        self.make("A1/x", b"x")
        self.make("B", b"b")
        self.make("old", b"file now")
        for outcome in ("published", "unchanged"):
            run = self.sync()
            self.assertEqual((run.status, run.why("A1/x")), (1, "type-conflict"), run.err)
            self.assertEqual(run.files[b"A1/x"]["with"], ["A1"])
            self.assertEqual(run.why("old"), "type-conflict")
            self.assertEqual(run.outcome("B"), outcome)
            self.assertEqual(self.published(), {b"A1": b"file", b"B": b"b", b"old/x": b"1"})

    def test_another_spelling_on_the_host_is_named(self):
        self.make("a.txt", b"new")
        self.make("d/x", b"new")
        self.make("A.TXT", b"old", root=self.dst)
        self.make("D/y", b"old", root=self.dst)
        run = self.sync()
        self.assertEqual((run.status, run.report["reasons"]), (1, {"alias-local": 2}))
        self.assertEqual(run.files[b"a.txt"]["with"], ["A.TXT"])
        self.assertEqual(run.files[b"d/x"]["with"], ["D"])
        os.rename(self.at("A.TXT"), self.at("a.txt"))
        os.rename(self.at("D"), self.at("d"))
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(self.published(), {b"a.txt": b"new", b"d/x": b"new", b"d/y": b"old"})

    def test_B062_a_hard_link_elsewhere_keeps_the_old_bytes(self):
        backup = os.path.join(self.work, "backup")
        for way in ("update", "foreign file"):
            with self.subTest(way):
                self.make("a", b"old")
                if way == "update":
                    self.sync()
                else:
                    shutil.rmtree(self.dst)
                    self.make("a", b"old", root=self.dst)
                os.link(self.at("a"), backup)
                self.make("a", b"newer")
                self.assertEqual(self.sync().status, 0)
                self.assertEqual(self.published(), {b"a": b"newer"})
                with open(backup, "rb") as file:
                    self.assertEqual(file.read(), b"old")
                os.unlink(backup)

    def test_B060_names_of_temporaries_cannot_be_foreseen(self):
        self.make("r.md", b"1")
        self.make("d/s.md", b"1")
        self.assertEqual(self.sync(env=self.shim()).status, 0)
        made = [(call, path) for call, _, path in self.calls() if "sbx-sync." in path
                and call in ("exclusive", "create", "tmpfile")]
        self.assertGreaterEqual(len(made), 3)
        self.assertEqual({call for call, _ in made}, {"exclusive"})
        for _, path in made:
            self.assertRegex(path, r"^(d/|\.sbx-sync/)?\.sbx-sync\.[0-9a-f]{24}\.[0-9]+$")
        victim = os.path.join(self.outside, "canary")
        planted = [path for _, path in made] + [
            "r.md.tmp", ".r.md.tmp", ".r.md.sbx", "r.md.e2bsync.tmp", ".sbx-sync.tmp", "r.md~"]
        for path in planted:
            os.symlink(victim, self.at(path))
        self.make("r.md", b"22")
        self.make("d/s.md", b"22")
        self.assertEqual(self.sync().status, 0)
        for path in planted:
            self.assertEqual(os.readlink(self.at(path)), victim)
            os.unlink(self.at(path))
        self.assertEqual(self.published(), {b"r.md": b"22", b"d/s.md": b"22"})

    def test_what_appears_while_a_file_is_fetched_is_kept(self):
        for code, why, kind in (
            ("printf mine >new", "appeared", stat.S_ISREG),
            ("mkfifo new", "special", stat.S_ISFIFO),
            ("mkdir new", "type-conflict", stat.S_ISDIR),
            ("ln -s ../outside/canary new", "linked", stat.S_ISLNK),
        ):
            with self.subTest(code):
                shutil.rmtree(self.dst, ignore_errors=True)
                self.make("new", b"x" * ALONE)
                self.make("other", b"o")
                run = self.sync(**self.while_fetching(code))
                self.assertEqual((run.status, run.why("new")), (1, why), run.err)
                self.assertTrue(kind(os.lstat(self.at("new")).st_mode))
                if kind is stat.S_ISREG:
                    with open(self.at("new"), "rb") as file:
                        self.assertEqual(file.read(), b"mine")

    def test_a_directory_that_is_replaced_while_a_file_is_fetched_is_noticed(self):
        """What was moved away keeps the temporary, which is out of reach."""
        for code in ("mv d d2; ln -s ../outside d", "mv d d2; mkdir d"):
            with self.subTest(code):
                shutil.rmtree(self.dst, ignore_errors=True)
                self.make("d/f", b"x" * ALONE)
                self.make("d/old", b"old", root=self.dst)
                run = self.sync(**self.while_fetching(code))
                self.assertEqual((run.status, run.why("d/f")), (1, "linked"), run.err)
                self.assertEqual(os.listdir(self.outside), ["canary"])
                for name in self.temporaries():
                    self.assertTrue(name.startswith(os.fsencode(self.at("d2/"))))
                shutil.rmtree(self.at("d2"))

    def test_a_directory_that_was_moved_and_came_back_is_the_same(self):
        self.make("d/f", b"x" * ALONE)
        run = self.sync(**self.while_fetching("mv d d2; mv d2 d"))
        self.assertEqual(run.status, 0, run.err)


class State(Case):
    """What somebody has put into or in place of .sbx-sync."""

    def refused(self, says=""):
        self.make("a", b"new")
        began = time.monotonic()
        run = self.sync("--wait", "0.1")
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(run.status, 4, run.err)
        self.assertIn(says, run.report["error"]["message"])
        self.assertEqual(run.report["files"], [])
        self.assertFalse(os.path.exists(self.at("a")))
        return run

    def test_the_state_directory_is_no_link_file_or_fifo(self):
        os.mkdir(self.dst)
        state = self.at(".sbx-sync")
        os.symlink(self.outside, state)
        self.refused("a link?")
        os.unlink(state)
        os.mkfifo(state)
        self.refused("remove it")
        os.unlink(state)
        self.make(".sbx-sync", b"", root=self.dst)
        self.refused("remove it")

    def test_the_state_directory_is_ours_alone(self):
        os.makedirs(self.at(".sbx-sync"))
        os.chmod(self.at(".sbx-sync"), 0o777)
        self.refused("writable by others")
        os.chmod(self.at(".sbx-sync"), 0o755)
        os.chown(self.at(".sbx-sync"), 65534, 65534)
        self.refused("belongs to another user")

    def test_what_lies_in_it_is_ours_and_regular(self):
        victim = os.path.join(self.outside, "canary")
        for name in ("lock", "run", "manifest.jsonl"):
            path = self.at(".sbx-sync/" + name)

            def mode(path, bits):
                with open(path, "wb"):
                    pass
                os.chmod(path, bits)

            def foreign(path):
                mode(path, 0o644)
                os.chown(path, 65534, 65534)

            def bound(path):
                with socket.socket(socket.AF_UNIX) as waits:
                    waits.bind(path)

            for kind, plant in (
                ("link", lambda path: os.symlink(victim, path)),
                ("dangling link", lambda path: os.symlink("nowhere", path)),
                ("fifo", os.mkfifo),
                ("directory", os.mkdir),
                ("socket", bound),
                ("writable by a group", lambda path: mode(path, 0o664)),
                ("writable by others", lambda path: mode(path, 0o646)),
                ("of another user", foreign),
            ):
                with self.subTest(name, kind=kind):
                    shutil.rmtree(self.dst, ignore_errors=True)
                    os.makedirs(self.at(".sbx-sync"))
                    plant(path)
                    before = os.lstat(path)
                    run = self.refused()
                    self.assertIn(name, run.report["error"]["message"])
                    self.assertEqual(os.lstat(path).st_ino, before.st_ino)

    def test_links_of_the_state_elsewhere_keep_what_they_hold(self):
        """As cp -al of a destination makes them."""
        self.make("a", b"1")
        self.sync()
        copy = os.path.join(self.work, "copy")
        subprocess.run(["cp", "-al", self.dst, copy], check=True)
        before = harness.snapshot(copy)
        self.make("a", b"22")
        for rules in ([f"lock={errno.ENOLCK}"], []):  # without the sweep the run record stays
            self.assertEqual(self.sync(env=self.shim(*rules)).status, 0)
            self.assertEqual(harness.snapshot(copy), before)
        with open(os.path.join(copy, "a"), "rb") as file:
            self.assertEqual(file.read(), b"1")


class Race(Case):
    """Another process exchanges a directory with a link, as fast as it can."""

    def exchange(self, parent, one, other, until):
        """By descriptor, or the other exchange would lead this one outside."""
        parent = os.open(parent, os.O_PATH)
        while not until.is_set():
            LIBC.renameat2(parent, one, parent, other, EXCHANGE)
            time.sleep(0)
        os.close(parent)

    def test_nothing_happens_through_links_that_come_and_go(self):
        """A temporary may stay in a directory that was away each time it should have gone."""
        self.leftovers = True
        until = threading.Event()
        inside = os.path.join(self.outside, "deep")
        os.mkdir(inside)
        self.guard()
        os.makedirs(self.at("d/deep"))
        os.symlink(self.outside, self.at("link"))
        os.symlink(inside, self.at("d/link"))
        threads = [threading.Thread(target=self.exchange, args=(*three, until))
                   for three in ((self.dst, b"d", b"link"), (self.at("d"), b"deep", b"link"))]
        for thread in threads:
            thread.start()
        reasons, statuses, passes = set(), set(), 0
        try:
            end = time.monotonic() + 6
            while time.monotonic() < end:
                for i in range(20):
                    self.make(f"d/{i}", b"%d" % passes)
                    self.make(f"d/deep/{i}", b"%d" % passes)
                run = self.sync("--durability", "none")
                reasons |= set(run.report["reasons"])
                statuses.add(run.status)
                passes += 1
        finally:
            until.set()
            for thread in threads:
                thread.join()
        self.assertLessEqual(statuses, {0, 1})
        self.assertLessEqual(reasons, {"linked", "host", "appeared"})
        self.assertIn("linked", reasons)
        self.assertGreater(passes, 2)
        for path in ("link", "d/link"):
            if os.path.islink(self.at("d")):
                os.rename(self.at("link"), self.at("kept"))
                os.rename(self.at("d"), self.at("link"))
                os.rename(self.at("kept"), self.at("d"))
            self.assertTrue(os.path.lexists(self.at(path)))
        if os.path.islink(self.at("d/deep")):
            os.rename(self.at("d/link"), self.at("d/kept"))
            os.rename(self.at("d/deep"), self.at("d/link"))
            os.rename(self.at("d/kept"), self.at("d/deep"))
        self.assertEqual(self.sync().status, 0)
        for path in self.temporaries():
            self.assertTrue(path.startswith(os.fsencode(self.at("d/"))), path)


class Modes(Case):
    def test_B065_new_files_follow_the_umask_and_replaced_ones_keep_their_bits(self):
        os.umask(0o027)
        for name, bits in (("dir/new", 0o600), ("kept", 0o777), ("set-id", 0o6755),
                           ("script", 0o755)):
            os.chmod(self.make(name, b"new"), bits)
        for name, bits in (("kept", 0o644), ("set-id", 0o4755)):
            os.chmod(self.make(name, b"old", root=self.dst), bits)
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(
            {name: oct(self.mode(name)) for name in ("dir", "dir/new", "kept", "set-id", "script")},
            {"dir": "0o750", "dir/new": "0o640", "kept": "0o644", "set-id": "0o755",
             "script": "0o640"},
        )
        self.assertEqual(
            [oct(self.mode(".sbx-sync" + name)) for name in ("", "/lock", "/run",
                                                             "/manifest.jsonl")],
            ["0o750", "0o600", "0o600", "0o640"],
        )

    def test_B065_nobody_else_may_write_the_state_whatever_the_umask(self):
        os.umask(0)
        self.make("a", b"1")
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(oct(self.mode("a")), "0o666")
        self.assertEqual(
            [oct(self.mode(".sbx-sync" + name)) for name in ("", "/lock", "/manifest.jsonl")],
            ["0o755", "0o600", "0o644"],
        )
        os.chmod(self.at(".sbx-sync/manifest.jsonl"), 0o600)
        self.make("a", b"22")
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(oct(self.mode(".sbx-sync/manifest.jsonl")), "0o644")

    def test_B065_an_update_keeps_the_bits_that_somebody_set(self):
        self.make("a", b"1")
        self.sync()
        os.chmod(self.at("a"), 0o604)
        self.make("a", b"22")
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(oct(self.mode("a")), "0o604")

    def test_B067_a_file_system_without_times_or_modes_costs_a_warning(self):
        for number in (errno.EPERM, errno.ENOTSUP):
            with self.subTest(errno.errorcode[number]):
                shutil.rmtree(self.dst, ignore_errors=True)
                self.make("a", b"new")
                self.make("b", b"new")
                os.chmod(self.make("b", b"old", root=self.dst), 0o700)
                env = self.shim(f"fchmod={number}", f"futimens={number}")
                run = self.sync(env=env)
                self.assertEqual((run.status, run.count("published")), (0, 2), run.err)
                self.assertEqual(run.report["warnings"], ["times", "mode"])
                run = self.sync(env=env)
                self.assertEqual((run.count("unchanged"), run.report["warnings"]), (2, []))

    def test_times_beyond_what_the_destination_can_hold_cost_no_download(self):
        self.mount("tmpfs", self.src, "-t", "tmpfs")
        now = {}
        for name, seconds in (("a", 2 ** 40), ("b", -(2 ** 40)), ("c", -5), ("d", 15032385535),
                              ("e", 4294967296)):
            path = self.make(name, b"x")
            os.utime(path, ns=(0, seconds * 10 ** 9 if abs(seconds) < 2 ** 33 else 0))
            if abs(seconds) >= 2 ** 33:
                subprocess.run(["touch", "-d", f"@{seconds}", path], check=True)
            now[name] = os.lstat(path).st_mtime
        run = self.sync()
        self.assertEqual((run.status, run.count("published")), (0, 5), run.err)
        self.assertEqual(os.lstat(self.at("c")).st_mtime, now["c"])
        self.assertEqual(os.lstat(self.at("e")).st_mtime, now["e"])
        run = self.sync()
        self.assertEqual((run.count("unchanged"), run.report["bytes"]["received"]), (5, 0))


class Names(Case):
    def test_names_that_the_file_system_cannot_hold_are_refused_alone(self):
        for rule, name in (("long", "x" * 144), ("ascii", "caf\u00e9")):
            with self.subTest(rule):
                shutil.rmtree(self.src)
                os.mkdir(self.src)
                self.make("fine" * 30, b"1")
                self.make(name, b"2")
                self.make(name + "d/f", b"3")
                run = self.sync(env=self.shim(rule))
                self.assertEqual((run.status, run.report["reasons"]), (1, {"host-name": 2}))
                self.assertEqual(run.outcome("fine" * 30), "published")
                self.assertEqual(run.report["bytes"]["received"], 1)

    def test_B073_the_destination_may_be_spelled_in_any_way(self):
        self.make("a", b"1")
        os.mkdir(self.dst)
        os.symlink("dst", os.path.join(self.tmp, "to-dst"))
        os.symlink(self.tmp, os.path.join(self.tmp, "to-tmp"))
        self.guard()
        spellings = [
            (".", self.dst), ("./", self.dst), ("dst", self.tmp), ("dst/", self.tmp),
            ("./dst/.", self.tmp), (f"/{self.dst}//.", "/"), ("to-dst", self.tmp),
            ("to-dst/", self.tmp), ("to-tmp/dst", self.tmp), ("src/../dst", self.tmp),
        ]
        for spelling, cwd in spellings:
            with self.subTest(spelling):
                shutil.rmtree(self.at("a"), ignore_errors=True)
                run = self.run_command("--json", self.src, spelling, cwd=cwd).read_report()
                self.assertEqual(run.status, 0, run.err)
                self.assertEqual(self.published(), {b"a": b"1"})
        os.mkdir(self.at("new", self.work))
        for spelling in ("n1", "n2/", "n3//", "n4/.", "./n5/./"):
            with self.subTest(spelling):
                run = self.run_command(self.src, spelling, cwd=self.work)
                self.assertEqual(run.status, 0, run.err)
                self.assertTrue(os.path.exists(os.path.join(self.work, spelling, "a")))

    def test_source_and_destination_may_not_contain_each_other_in_any_spelling(self):
        self.make("in/x", b"1")
        os.symlink(self.src, os.path.join(self.work, "link"))
        for source, dest in (
            (self.src, self.src), (self.src, self.at("in", self.src)),
            (self.at("in", self.src), self.src), (self.src, self.at("in/new", self.src)),
            (self.src, self.at("in/new/.", self.src)), (self.src, self.at("new/./", self.src)),
            (self.src, os.path.join(self.work, "link")), (self.src, self.work + "/link/in"),
            ("local:" + self.src + "/in/..", self.src + "/"), (self.tmp, self.dst),
        ):
            with self.subTest(source=source, dest=dest):
                run = self.run_command(source, dest)
                self.assertEqual(run.status, 2, run.err)
                self.assertIn("contain each other", run.err)
        self.assertEqual(os.listdir(self.src), ["in"])
        self.make("src2/x", b"1", root=self.work)  # a neighbour with the same beginning
        run = self.run_command(os.path.join(self.work, "src2"), os.path.join(self.work, "src"))
        self.assertEqual(run.status, 0, run.err)


class Order(Case):
    def synced(self, durability):
        self.make("d/a", b"1")
        self.make("b", b"2")
        run = self.sync("--durability", durability, env=self.shim())
        self.assertEqual(run.status, 0, run.err)
        return [(call, path) for call, _, path in self.calls()]

    def test_B069_full_syncs_each_file_before_its_name_and_the_directory_after_it(self):
        calls = self.synced("full")
        temporaries = [path for call, path in calls if call == "exclusive" and
                       not path.startswith(".sbx-sync/")]
        self.assertEqual(len(temporaries), 2)
        for path in temporaries:
            at = [calls.index((call, path)) for call in ("exclusive", "write", "fsync", "close")]
            self.assertEqual(at, sorted(at))
            name = "d/a" if path.startswith("d/") else "b"
            renamed = calls.index(("renameat2", name))
            self.assertLess(at[-1], renamed)
            parent = os.path.dirname(name) or "."
            synced = calls.index(("fsync", parent), renamed)
            self.assertLess(synced, self.manifest_at(calls))

    def manifest_at(self, calls):
        """Where the manifest gets its name, which is synced on both sides."""
        at = calls.index(("renameat", ".sbx-sync/manifest.jsonl"))
        path = [path for call, path in calls if call == "exclusive" and
                path.startswith(".sbx-sync/")][0]
        self.assertLess(calls.index(("fsync", path)), at)
        self.assertIn(("fsync", ".sbx-sync"), calls[at:])
        return at

    def test_B069_batch_syncs_before_the_first_name_and_after_the_last(self):
        calls = self.synced("batch")
        names = [i for i, (call, _) in enumerate(calls) if call == "renameat2"]
        syncs = [i for i, (call, _) in enumerate(calls) if call == "syncfs"]
        closes = [i for i, (call, path) in enumerate(calls)
                  if call == "close" and os.path.basename(path).startswith(".sbx-sync.")]
        self.assertEqual((len(names), len(syncs)), (2, 2))
        self.assertLess(max(closes[:2]), syncs[0])
        self.assertLess(syncs[0], names[0])
        self.assertLess(names[-1], syncs[1])
        self.assertLess(syncs[1], self.manifest_at(calls))

    def test_B069_none_leaves_it_to_the_kernel(self):
        calls = self.synced("none")
        self.assertEqual([c for c in calls if c[0] in ("fsync", "fdatasync", "syncfs")], [])

    def test_B069_syncs_that_fail_fail_the_file_and_the_old_copy_stays(self):
        for durability, rule in (("full", "fsync:.sbx-sync.*"), ("batch", "syncfs")):
            with self.subTest(durability):
                self.make("a", b"new")
                self.make("a", b"old", root=self.dst)
                more = [f"fsync:.sbx-sync.*={errno.EIO}"] if durability == "batch" else []
                run = self.sync("--durability", durability,
                                env=self.shim(f"{rule}={errno.EIO}", *more))
                self.assertEqual((run.status, run.why("a")), (1, "host"), run.err)
                self.assertEqual((run.files[b"a"]["step"], run.files[b"a"]["errno"]),
                                 ("fsync", "EIO"))
                self.assertEqual(self.published(), {b"a": b"old"})

    def test_B069_a_batch_whose_syncfs_fails_is_synced_file_by_file(self):
        self.make("a", b"new")
        run = self.sync(env=self.shim(f"syncfs={errno.EIO}"))
        self.assertEqual(run.status, 0, run.err)
        calls = [(call, os.path.basename(path)) for call, _, path in self.calls()]
        self.assertTrue(any(call == "fsync" and name.startswith(".sbx-sync.") for call, name
                            in calls[:calls.index(("renameat2", "a"))]))

    def test_a_file_system_that_cannot_sync_a_directory_costs_a_warning(self):
        self.make("d/a", b"new")
        run = self.sync("--durability", "full", env=self.shim(f"fsync:d={errno.EINVAL}"))
        self.assertEqual((run.status, run.report["warnings"]), (0, ["dir-sync"]))


class Ways(Case):
    """File systems that lack a way to name a file."""

    def test_B071_temporaries_have_names_and_replace_in_one_step(self):
        self.make("new", b"new")
        self.make("old", b"new")
        self.make("old", b"old", root=self.dst)
        rules = [f"tmpfile={number}" for number in (errno.EOPNOTSUPP, errno.EISDIR)]
        run = self.sync(env=self.shim(*rules))
        self.assertEqual(run.status, 0, run.err)
        calls = self.calls()
        self.assertEqual([c for c in calls if c[0] in ("tmpfile", "linkat", "unlinkat")], [])
        self.assertIn(("renameat", "0", "old"), calls)
        self.assertIn(("renameat2", "0", "new"), calls)

    def test_B071_without_proc(self):
        self.make("a", b"1")
        code = 'umount -l /proc && exec "$@"'
        process = subprocess.run(
            ["unshare", "-m", "sh", "-c", code, "sh", harness.COMMAND, "-q", self.src, self.dst],
            env=self.env(), capture_output=True, check=False)
        if b"unshare" in process.stderr or b"umount" in process.stderr:
            self.skipTest(process.stderr.decode())  # the right to mount, as above
        if b"LeakSanitizer" not in process.stderr:  # which cannot do without
            self.assertEqual((process.returncode, process.stderr), (0, b""))
        self.assertEqual(self.published(), {b"a": b"1"})

    def test_a_file_system_without_noreplace_uses_links(self):
        self.make("a", b"1")
        for number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            with self.subTest(errno.errorcode[number]):
                shutil.rmtree(self.dst, ignore_errors=True)
                run = self.sync(env=self.shim(f"renameat2={number}"))
                self.assertEqual((run.status, run.report["warnings"]), (0, []), run.err)
                self.assertEqual(os.lstat(self.at("a")).st_nlink, 1)
                self.assertIn(("linkat", "0", "a"), self.calls())

    def test_a_file_system_with_neither_renames_and_warns(self):
        self.make("a", b"1")
        rules = [f"renameat2={errno.EINVAL}", f"linkat={errno.EPERM}"]
        run = self.sync(env=self.shim(*rules))
        self.assertEqual((run.status, run.report["warnings"]), (0, ["no-noreplace"]), run.err)
        self.assertEqual(self.published(), {b"a": b"1"})

    def test_what_appears_is_kept_in_each_way(self):
        for rules in ([], [f"renameat2={errno.EINVAL}"],
                      [f"renameat2={errno.EINVAL}", f"linkat={errno.EPERM}"]):
            with self.subTest(rules):
                shutil.rmtree(self.dst, ignore_errors=True)
                self.make("new", b"x" * ALONE)
                run = self.sync(env=self.shim(*rules), **self.while_fetching("echo mine >new"))
                self.assertEqual((run.status, run.why("new")), (1, "appeared"), run.err)
                self.assertEqual(self.published(), {b"new": b"mine\n"})

    def test_B075_inodes_that_differ_at_each_lookup_stop_nothing(self):
        for name in ("a", "d/b", "d/e/c"):
            self.make(name, b"new")
        self.make("a", b"old", root=self.dst)
        run = self.sync(env=self.shim("ino"))
        self.assertEqual((run.status, run.count("published")), (0, 3), run.err)
        run = self.sync(env=self.shim("ino"))
        self.assertEqual((run.status, run.count("unchanged")), (0, 3), run.err)
        self.assertEqual(run.report["bytes"]["received"], 0)

    def test_B076_a_mount_below_the_destination_has_temporaries_of_its_own(self):
        self.mount("tmpfs", self.at("sub"), "-t", "tmpfs")
        for durability in ("batch", "full"):
            with self.subTest(durability):
                for name in ("sub/x", "sub/deep/y", "z"):
                    self.make(name, durability.encode())
                run = self.sync("--durability", durability, env=self.shim())
                self.assertEqual((run.status, run.count("published")), (0, 3), run.err)
                made = [os.path.dirname(path) for call, _, path in self.calls()
                        if call == "exclusive"]
                self.assertEqual(set(made), {"", "sub", "sub/deep", ".sbx-sync"})
                self.assertEqual(set(self.published().values()), {durability.encode()})
                if durability == "batch":
                    synced = [path for call, _, path in self.calls() if call == "syncfs"]
                    self.assertEqual(len(synced), 4)  # two file systems, before and after


class Full(Case):
    """The old copies stay, temporaries go, and the report names the call and the error."""

    def prepare(self, root=None):
        for name in ("a", "b", "c"):
            self.make(name, b"new" * 400000)
            if root:
                self.make(name, b"old", root=root)

    def ended(self, run, step, number):
        self.assertEqual(run.status, 4, run.err)
        failed = [entry for entry in run.files.values() if entry["outcome"] == "failed"]
        self.assertEqual([(e["step"], e["errno"]) for e in failed], [(step, number)] * len(failed))
        self.assertEqual(len(failed), run.report["reasons"].get("host", 0))
        error = run.report["error"]
        self.assertEqual((error["step"], error["errno"]), (step, number))
        self.assertIn(step, run.err)
        self.assertIn(errno_text(number), run.err)

    def test_a_full_disk(self):
        self.mount("tmpfs", self.dst, "-t", "tmpfs", "-o", "size=2M")
        self.prepare(self.dst)
        run = self.sync()
        self.ended(run, "write", "ENOSPC")
        # What was complete before the disk was full still gets its name, which takes no room.
        self.assertEqual(run.report["reasons"], {"host": 1, "host-full": 1})
        self.assertEqual(
            self.published(), {b"a": b"new" * 400000, b"b": b"old", b"c": b"old"}
        )
        self.assertEqual(self.temporaries(), [])
        subprocess.run(["mount", "-o", "remount,size=20M", self.dst], check=True)
        self.assertEqual(self.sync().status, 0)
        self.assertEqual(set(self.published().values()), {b"new" * 400000})

    def test_a_disk_without_inodes(self):
        self.mount("tmpfs", self.dst, "-t", "tmpfs", "-o", "nr_inodes=8")
        for i in range(9):
            self.make(f"f{i}", b"x")
        run = self.sync()
        self.ended(run, "openat", "ENOSPC")
        self.assertEqual(self.temporaries(), [])
        self.assertEqual(run.count("published"), len(self.published()))

    def test_a_read_only_destination(self):
        self.prepare(self.dst)
        self.sync("--max-files", "1")  # so that there is a state
        self.mount(self.dst, self.dst, "--bind")
        subprocess.run(["mount", "-o", "remount,bind,ro", self.dst], check=True)
        before = self.published()
        run = self.sync()
        self.assertEqual((run.status, run.report["error"]["errno"]), (4, "EROFS"), run.err)
        self.assertEqual(self.published(), before)

    def test_a_read_only_directory_of_the_destination(self):
        self.make("sub/x", b"new")
        self.make("sub/x", b"old", root=self.dst)
        sub = self.at("sub")
        self.mount(sub, sub, "--bind")
        subprocess.run(["mount", "-o", "remount,bind,ro", sub], check=True)
        run = self.sync()
        self.ended(run, "openat", "EROFS")
        self.assertEqual(self.published(), {b"sub/x": b"old"})

    def test_each_call_that_meets_a_full_disk_or_quota(self):
        for call, step, options in (
            ("exclusive", "openat", ()), ("write", "write", ()), ("futimens", "futimens", ()),
            ("fsync", "fsync", ("--durability", "full")), ("close", "close", ()),
        ):
            for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                code = errno.errorcode[number]
                with self.subTest(call, errno=code):
                    shutil.rmtree(self.dst, ignore_errors=True)
                    self.prepare(self.dst)
                    run = self.sync(*options, env=self.shim(f"{call}:.sbx-sync.*={number}"))
                    self.ended(run, step, code)
                    self.assertEqual(set(self.published().values()), {b"old"})

    def test_renames_that_meet_a_full_disk(self):
        for number in (errno.ENOSPC, errno.EDQUOT):
            for call in ("renameat", "renameat2"):
                code = errno.errorcode[number]
                with self.subTest(call, errno=code):
                    shutil.rmtree(self.dst, ignore_errors=True)
                    self.prepare(self.dst if call == "renameat" else None)
                    run = self.sync(env=self.shim(f"{call}:[abc]={number}"))
                    self.ended(run, call, code)
                    self.assertEqual(set(self.published().values()),
                                     {b"old"} if call == "renameat" else set())

    def test_one_file_that_cannot_be_written_stops_nothing(self):
        for number in (errno.EIO, errno.EACCES, errno.EMFILE):
            with self.subTest(errno.errorcode[number]):
                shutil.rmtree(self.dst, ignore_errors=True)
                self.prepare(self.dst)
                run = self.sync(env=self.shim(f"exclusive:.sbx-sync.*={number}@2+1"))
                self.assertEqual((run.status, run.report["reasons"]), (1, {"host": 1}), run.err)
                self.assertEqual(run.files[b"b"]["errno"], errno.errorcode[number])
                self.assertEqual(self.published()[b"b"], b"old")

    def test_three_times_EIO_ends_the_transfer(self):
        for i in range(6):
            self.make(f"f{i}", b"x")
        run = self.sync(env=self.shim(f"write:.sbx-sync.*={errno.EIO}"))
        self.ended(run, "write", "EIO")
        self.assertEqual(run.report["reasons"], {"host": 3, "host-full": 3})

    def test_a_manifest_that_cannot_be_written_is_a_warning(self):
        self.make("a", b"new")
        run = self.sync(env=self.shim(f"renameat:manifest.jsonl={errno.EIO}"))
        self.assertEqual((run.status, run.report["warnings"]), (0, ["manifest-write"]))
        self.assertEqual(self.sync().status, 0)


def errno_text(name):
    return os.strerror(getattr(errno, name))


if __name__ == "__main__":
    unittest.main()
