"""Roots of all names and states, and what below them cannot be read: B012, B017, B040."""

import os
import subprocess
import unittest

import sandbox


class Roots(sandbox.Case):
    def test_B012_a_root_that_is_no_readable_directory_is_told_apart_from_an_empty_one(self):
        self.let_others_in()
        self.keep()
        os.mkdir(os.path.join(self.src, "shut"), 0o000)
        os.mkdir(os.path.join(self.src, "listable"), 0o444)
        os.mkdir(os.path.join(self.src, "searchable"), 0o111)
        self.make("shut/inner/f", b"x")
        os.symlink("a", os.path.join(self.src, "to a file"))
        os.symlink("nowhere", os.path.join(self.src, "dangling"))
        os.symlink("loop", os.path.join(self.src, "loop"))
        os.symlink("shut", os.path.join(self.src, "to a shut one"))
        os.mkfifo(os.path.join(self.src, "fifo"))
        for name, state in (
            ("missing", "missing"),
            ("missing/below", "missing"),
            ("a/below a file", "missing"),
            ("dangling", "missing"),
            ("loop", "missing"),
            ("a", "notdir"),
            ("to a file", "notdir"),
            ("fifo", "notdir"),
            ("/dev/null", "notdir"),
            ("shut", "denied"),
            ("shut/inner", "denied"),
            ("shut/inner/missing", "denied"),
            ("to a shut one", "denied"),
            ("listable", "denied"),
            ("searchable", "denied"),
        ):
            root = os.path.join(self.src, name)
            with self.subTest(name, transport="exec"):
                run = self.sync_by("exec", root=root, command=self.as_nobody("sh"))
                self.assert_kept(run, state)
            if state != "denied":  # which our own user is never
                with self.subTest(name, transport="local"):
                    self.assert_kept(self.sync_by("local", root=root), state)

    def test_B012_an_empty_root_is_complete_and_removes_nothing(self):
        self.keep()
        os.mkdir(os.path.join(self.src, "nothing"))
        for transport in ("local", "exec"):
            with self.subTest(transport):
                run = self.sync_by(transport, root=os.path.join(self.src, "nothing"))
                self.assertEqual((run.status, run.report["listing"]["state"]), (0, "complete"))
                self.assertEqual((run.count("listed"), self.facts()[0]), (0, self.old[0]))

    def test_B012_a_root_that_is_a_link_is_listed(self):
        for i in range(7):
            self.make(f"real/{i}", b"x")
        os.symlink("real", os.path.join(self.src, "link"))
        os.symlink("link", os.path.join(self.src, "link to link"))
        os.symlink(".", os.path.join(self.src, "here"))
        for kind in ("gnu", "busybox", "toybox"):
            for name in ("link", "link/", "link to link", "here/link", "here/here/real//"):
                with self.subTest(name, tools=kind):
                    run = self.sync_by("exec", "--dry-run", root=os.path.join(self.src, name),
                                       command=self.bare(self.tools(kind)))
                    self.assertEqual((run.status, run.count("would-publish")), (0, 7), run.err)
        for name in ("link", "link/", "link to link"):
            with self.subTest(name, transport="local"):
                run = self.sync_by("local", "--identity", name, root=os.path.join(self.src, name))
                self.assertEqual((run.status, run.count("published")), (0, 7), run.err)

    def test_B040_a_root_of_any_name_is_listed(self):
        roots = [
            *(b"-n", b"--help", b"-H", b"(", b"a'b\"c", b"line\nbreak", b"ends\n", b"$(touch pwn)"),
            *(b"`touch pwn`", b"*", b"back\\", b"\\061", b"%s", b" ", b"a;touch pwn", b"\xff\xfe"),
            *(b"a:b", b"exec:", b"~", b"=", b"\x1b[2J"),
        ]
        for root in roots:
            self.make(root + b"/-f", b"1")
            self.make(root + b"/d/g", b"22")
            with self.subTest(root):
                path = os.path.join(os.fsencode(self.src), root)
                for source, command in ((b"exec:" + path, ("sh",)), (b"./" + root, ())):
                    run = self.sync("--dry-run", source=source, command=command, cwd=self.src)
                    self.assertEqual(
                        {name: entry["size"] for name, entry in run.files.items()},
                        {b"-f": 1, b"d/g": 2}, run.err)
        for kind in ("gnu", "busybox", "toybox"):
            for root in roots[:2] + roots[4:6]:
                with self.subTest(root, tools=kind):
                    source = b"exec:" + os.path.join(os.fsencode(self.src), root)
                    run = self.sync("--identity", kind + repr(root), source=source,
                                    command=self.bare(self.tools(kind)))
                    self.assert_mirrored(run, {b"-f": b"1", b"d/g": b"22"})
        self.assertNotIn("pwn", os.listdir(self.src))

    def test_B017_what_cannot_be_read_costs_itself_alone(self):
        self.let_others_in()
        self.keep({"out/gone": b"kept"})
        os.unlink(os.path.join(self.src, "out/gone"))
        os.unlink(os.path.join(self.src, "new"))
        files = {b"out/%d" % i: b"readable" for i in range(5)}
        for name, data in files.items():
            self.make(name, data)
        self.make("out/private/secret", b"x")
        os.chmod(os.path.join(self.src, "out/private"), 0o000)
        expected = {**files, b"out/gone": b"kept"}
        for kind in ("gnu", "busybox", "toybox"):
            with self.subTest(kind):
                command = self.as_nobody(*self.bare(self.tools(kind)))
                run = self.sync_by("exec", "--identity", kind, command=command)
                self.assertEqual((run.status, run.count("published")), (1, 5), run.err)
                self.assertEqual(run.report["listing"]["state"], "warned")
                self.assertIn("find-errors", run.report["warnings"])
                self.assertEqual(self.published(), expected)
        os.chmod(self.make("out/secret", b"y"), 0o000)
        for transport in ("exec", "local"):
            with self.subTest(transport):
                subprocess.run(["chown", "-R", str(sandbox.NOBODY), self.dst], check=True)
                run = self.sync_by(transport, "--identity", transport, user=sandbox.NOBODY,
                                   group=sandbox.NOBODY, extra_groups=[])
                self.assertEqual((run.status, run.count("published")), (1, 5), run.err)
                self.assertEqual(run.why("out/secret"), "denied")
                self.assertEqual(self.published(), expected)

    def test_B017_a_root_of_which_nothing_can_be_read_is_no_empty_one(self):
        self.let_others_in()
        self.keep()
        os.makedirs(os.path.join(self.src, "r", "private"))
        os.chmod(os.path.join(self.src, "r", "private"), 0o000)
        for kind in ("gnu", "busybox", "toybox"):
            with self.subTest(kind):
                run = self.sync_by("exec", root=os.path.join(self.src, "r"),
                                   command=self.as_nobody(*self.bare(self.tools(kind))))
                self.assert_kept(run, "damaged", "listed nothing")


if __name__ == "__main__":
    unittest.main()
