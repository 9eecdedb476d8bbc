"""Hostile names, byte by byte: field failures B020 to B040 and the table of hostile names."""

import os
import subprocess
import unittest

import sandbox

# Each name by itself, and the reason why it is refused; None for one that is published.
# Nothing but "/", NUL and what looks upwards is impossible as a file: those are only listed.
LISTED = [
    (b"../../tmp/p", "traversal"),
    (b"..", "traversal"),
    (b".", "traversal"),
    (b"a/../../b", "traversal"),
    (b"a/..", "traversal"),
    (b"/etc/x", "traversal"),
    (b"/", "traversal"),
    (b"//", "traversal"),
    (b"a//b", "traversal"),
    (b"./a", "traversal"),
    (b"a/./b", "traversal"),
    (b"", "traversal"),
    (b"a/", "traversal"),
    (b"..\xe2\x80\x8c/x", "traversal"),  # a file system that ignores U+200C sees ".."
    (b".\xef\xbb\xbf./x", "traversal"),
    (b"\xe2\x80\x8b/x", "traversal"),
    (b"x" * 256, "too-long"),
    (b"/".join([b"d" * 200] * 21), "too-long"),
    (b"d/" * 100 + b"f", "too-deep"),
    (b"d/" * 2000 + b"f", "too-deep"),
    (b"\xf0\x9f\x98\x80" * 64, "too-long"),  # 256 bytes, 128 UTF-16 units
    (b"\xc3\xa9" * 128, "too-long"),
    (b".sbx-sync", "reserved-name"),
    (b".sbx-sync/manifest.jsonl", "reserved-name"),
    (b".SBX-sync.x", "reserved-name"),
    (b"d/.sbx-sync.0123456789abcdef01234567.1", "reserved-name"),
    (b".sbx\xe2\x80\x8d-sync/run", "reserved-name"),
]

PORTABLE = [
    (b"foo\\..\\..\\evil", "separator"),
    (b"foo\\..\\evil", "separator"),
    (b"a\\b", "separator"),
    (b"\\", "separator"),
    (b"CON", "reserved-name"),
    (b"nul.txt", "reserved-name"),
    (b"Aux.c", "reserved-name"),
    (b"com1", "reserved-name"),
    (b"COM0.a", "reserved-name"),
    (b"com\xc2\xb9", "reserved-name"),
    (b"LPT9.tar.gz", "reserved-name"),
    (b"dir/PRN/x", "reserved-name"),
    (b"CONIN$", "reserved-name"),
    (b"conout$.log", "reserved-name"),
    (b"nul .txt", "reserved-name"),
    (b"notes.txt ", "trailing"),
    (b"trail/a /b", "trailing"),
    (b"report ", "trailing"),
    (b"dots...", "trailing"),
    (b"dir./x", "trailing"),
    (b"a:b", "reserved-char"),
    (b"a.txt:evil", "reserved-char"),
    (b".git::$INDEX_ALLOCATION", "reserved-char"),
    (b"a?b", "reserved-char"),
    (b"a*b", "reserved-char"),
    (b"a<b", "reserved-char"),
    (b"a>b", "reserved-char"),
    (b"a|b", "reserved-char"),
    (b'a"b', "reserved-char"),
    (b"a\x07", "control"),
    (b"a\nb", "control"),
    (b"a\rb", "control"),
    (b"a\x7f", "control"),
    (b"\x1b]0;pwn\x07", "control"),
    (b"\xc2\x9b3J", "control"),
]

ALWAYS = [
    (b"a\xff", "encoding"),
    (b"a\xfe", "encoding"),
    (b"ab\xe9", "encoding"),
    (b"b\xff\n", "encoding"),
    (b"\xc0\xaf", "encoding"),
    (b"\xed\xa0\x80", "encoding"),
    (b"\xf4\x90\x80\x80", "encoding"),
    (b"cut\xe8\xaa", "encoding"),
    (b"dir\xff/fine", "encoding"),
    (b"dir/\x80", "encoding"),
]

FINE = [
    b"console.txt", b"com10", b"nullable", b"lpt", b"CON1x", b"a.con", b"61\xc2\xa0", b"...x",
    b"..data", b"\xe8\xaa\x9e" * 85, b"y" * 255, b"d" * 200 + b"/" + b"e" * 200, b"GIT~1/config",
    b".git/config", b".gi\xe2\x80\x8cx/config", b"-n", b"--help", b"-", b"$(id)", b"$HOME",
    b"`id`", b"a'b", b"a;b", b"a&b", b"$(touch pwn)", b"`touch pwn`", b"%41", b"%s%n", b"x#y",
    b"~", b"!", b"(", b"[a]", b"{a,b}", b"a=b", b" lead", b"a  b", b"x\xe2\x80\xaetxt.exe",
    b"caf\xc3\xa9.txt", b"cafe\xcc\x81s", b"k/" * 99 + b"f", b"end 0", b"\xef\xbf\xbd",
]

# Names of which none may be published while the others are listed.
ALIASES = [
    ("two compositions", [b"caf\xc3\xa9.txt", b"cafe\xcc\x81.txt"]),
    ("three signs for one", [b"\xe2\x84\xab.md", b"\xc3\x85.md", b"A\xcc\x8a.md"]),
    ("marks in another order", [b"q\xcc\x87\xcc\xa3", b"q\xcc\xa3\xcc\x87"]),
    ("case", [b"DSC03540.JPG", b"DSC03540.jpg"]),
    ("case of directories", [b"Blah/x", b"blah/y"]),
    ("case of parents with all below", [b"Data/a", b"data/b", b"Data/deep/er", b"data/b2"]),
    ("case beyond ASCII", [b"\xc3\x84RGER", b"\xc3\xa4rger"]),
    ("sharp s", [b"stra\xc3\x9fe", b"STRASSE"]),
    ("a final sigma", [b"\xcf\x83\xce\xb1\xcf\x83", b"\xcf\x83\xce\xb1\xcf\x82"]),
    ("the sign for Kelvin", [b"\xe2\x84\xaa", b"k"]),
    ("ignorable code points", [b"a\xef\xbb\xbf.md", b"a.md"]),
    ("ignorable in a parent", [b".gi\xe2\x80\x8ct/config", b".git/config"]),
    ("a file and a directory", [b"A/x", b"a"]),
    ("a long spelling", [b"i\xcc\x87" * 40, b"\xc4\xb0" * 40]),
]


def decoded(entry):
    return [name.encode() for name in entry.get("with", [])]


class Names(sandbox.Case):
    def refuse(self, listed, *options):
        """A pass in which names are listed that are no files."""
        self.make("good", b"good")
        code = f"if n == 1: answer.list_names({[name for name, _ in listed]!r})"
        run = self.sync_fake(code, *options)
        self.assertEqual(run.status, 1, run.err)
        self.assertEqual({name: run.why(name) for name, _ in listed}, dict(listed))
        self.assertEqual({run.outcome(name) for name, _ in listed}, {"refused"})
        self.assertEqual(self.published(), {b"good": b"good"})

    def make_all(self, names):
        for name in names:
            self.make(name, b"content of " + name)

    def test_B020_B038_names_that_lead_out_or_are_too_long_are_refused_and_nothing_is_made(self):
        self.refuse(LISTED)
        self.assertEqual(set(os.listdir(self.dst)), {".sbx-sync", "good"})
        self.refuse(LISTED, "--names", "posix")

    def test_B020_each_name_that_leads_out_is_refused_alone(self):
        for name, why in LISTED[:13:2]:
            with self.subTest(name):
                self.refuse([(name, why)])

    def test_B028_B030_B032_B036_a_refused_name_stops_no_other(self):
        rows = PORTABLE + ALWAYS
        self.make_all([name for name, _ in rows] + FINE)
        for transport in ("local", "exec"):
            with self.subTest(transport):
                run = self.sync_by(transport, "--identity", transport)
                self.assertEqual(run.status, 1, run.err)
                self.assertEqual({name: run.why(name) for name, _ in rows}, dict(rows))
                self.assertEqual(self.published(), {n: b"content of " + n for n in FINE})
        self.assertFalse(os.path.exists(os.path.join(self.src, "pwn")))
        self.assertFalse(os.path.exists(os.path.join(self.tmp, "pwn")))

    def test_B040_names_reach_no_shell_and_no_option_whatever_the_tools(self):
        names = FINE + [name for name, _ in PORTABLE]
        for name in (b"file\nx", b"a\n", b"\n", b"-", b"-exec", b"a\tb", b"\x01", b"x'\n'y"):
            names.append(name)
        names = sorted(set(names) - {b".git/config"})
        self.make_all(names)
        content = self.content()
        for kind in ("gnu", "busybox", "toybox"):
            with self.subTest(kind):
                run = self.sync_by("exec", "--names", "posix", "--identity", kind,
                                   command=self.bare(self.tools(kind)))
                self.assert_mirrored(run, content)
                self.assertEqual(run.count("published"), len(names))
        self.assert_mirrored(self.sync("--names", "posix", "--identity", "local"), content)
        self.assertEqual(self.content(), content)  # no command ran at the source

    def test_B036_each_name_that_is_not_UTF_8_can_be_got_back(self):
        names = [name for name, _ in ALWAYS] + [bytes([c]) for c in range(128, 256)]
        self.make_all(names)
        run = self.sync()
        self.assertEqual(set(run.files), set(names))
        self.assertEqual(run.report["reasons"], {"encoding": len(names)})
        self.assertEqual(self.published(), {})

    def test_B023_B025_B034_of_aliases_none_is_published_and_each_names_its_partners(self):
        self.make("good", b"good")
        for why, names in ALIASES:
            with self.subTest(why):
                self.make_all(names)
                run = self.sync("--identity", why)
                self.assertEqual((run.status, run.report["reasons"]), (1, {"alias": len(names)}))
                for name in names:
                    self.assertEqual(run.why(name), "alias")
                    self.assertGreater(len(run.files[name]["with"]), 0)
                    self.assertNotIn(name, decoded(run.files[name]))
                self.assertEqual(self.published(), {b"good": b"good"})
                for name in names:
                    os.unlink(os.path.join(os.fsencode(self.src), name))

    def test_B023_a_spelling_that_stands_on_the_host_is_kept_and_named(self):
        for why, (first, second, *_) in ALIASES:
            if why in ("case of parents with all below", "a file and a directory"):
                continue
            with self.subTest(why):
                path = self.make(first, b"first")
                self.assert_mirrored(self.sync("--identity", why), self.kept({first: b"first"}))
                os.unlink(path)
                self.remove_empty(self.src)
                path = self.make(second, b"second")
                run = self.sync("--identity", why)
                self.assertEqual((run.status, run.why(second)), (1, "alias-local"), run.err)
                self.assertEqual(self.published(), self.seen)
                os.unlink(path)
                self.remove_empty(self.src)

    def kept(self, more):
        """What has been published so far, as it mounts up."""
        self.seen = {**getattr(self, "seen", {}), **more}
        return self.seen

    @staticmethod
    def remove_empty(root):
        for parent, dirs, _ in os.walk(root, topdown=False):
            for name in dirs:
                if not os.listdir(os.path.join(parent, name)):
                    os.rmdir(os.path.join(parent, name))

    def test_B023_old_copies_of_aliases_stay(self):
        self.keep({"caf\u00e9.txt": b"old", "Blah/x": b"old x"})
        self.make_all([b"cafe\xcc\x81.txt", b"blah/y"])
        run = self.sync()
        self.assertEqual(run.report["reasons"], {"alias": 4})
        self.assertEqual(self.published(), {"caf\u00e9.txt".encode(): b"old", b"Blah/x": b"old x",
                                            b"new": b"content"})

    def test_B023_refused_names_count_for_aliases_too(self):
        self.make_all([b"A:", b"a:", b"con", b"CON", b"good"])
        run = self.sync()
        reasons = {name: run.why(name) for name in (b"A:", b"a:", b"con", b"CON")}
        self.assertEqual(set(reasons.values()), {"reserved-char", "reserved-name"})
        run = self.sync("--names", "posix")
        self.assertEqual({run.why(name) for name in reasons}, {"alias"})
        self.assertEqual(self.published(), {b"good": b"content of good"})

    def test_B034_a_name_with_an_ignorable_code_point_alone_is_published(self):
        names = [b".gi\xe2\x80\x8ct/config", b"a\xef\xbb\xbf.md", b"GIT~1/config"]
        self.make_all(names)
        self.assert_mirrored(self.sync())

    def test_B034_every_check_runs_for_every_name(self):
        """What one rule takes is still looked at by the others."""
        self.make_all([b".gi\xe2\x80\x8ct:x", b".git:x", b"c\xe2\x80\x8bon", b"con\xef\xbb\xbf.txt",
                       b"t\xe2\x80\x8b ", b"nu\xcc\x88l"])
        run = self.sync()
        self.assertEqual({name: run.why(name) for name in run.files}, {
            b".gi\xe2\x80\x8ct:x": "reserved-char",
            b".git:x": "reserved-char",
            b"c\xe2\x80\x8bon": None,
            b"con\xef\xbb\xbf.txt": None,
            b"t\xe2\x80\x8b ": "trailing",
            b"nu\xcc\x88l": None,
        })

    def test_a_path_listed_twice_is_one_file_or_none(self):
        self.make("a", b"x")
        self.make("b", b"y")
        run = self.sync_fake("if answer.begin: answer.add(*answer.records()[:-1])")
        self.assertEqual((run.status, run.report["warnings"]), (1, ["duplicate"]))
        self.assertEqual(self.published(), self.content())
        run = self.sync_fake("if answer.begin: answer.add(b'3 1.5 1.5 a')", "--identity", "2")
        self.assertEqual((run.status, run.why("a"), run.outcome("b")), (1, "alias", "published"))

    def test_hostile_names_are_shown_escaped(self):
        self.make_all([name for name, _ in PORTABLE + ALWAYS] + [b"x\xe2\x80\xaetxt:exe"])
        run = self.run_command("-v", self.src, self.dst)
        self.assertEqual([c for c in run.err if c != "\n" and not " " <= c <= "~"], [])
        self.assertIn("refused (control): \\x1b]0;pwn\\x07\n", run.err)
        self.assertIn("refused (control): \\xc2\\x9b3J\n", run.err)
        self.assertIn("refused (reserved-char): x\\xe2\\x80\\xaetxt:exe\n", run.err)


class Lengths(sandbox.Case):
    def deep(self, component, levels, name=b"f"):
        """A file that no path can name."""
        self.addCleanup(subprocess.run, ["rm", "-rf", self.src], check=False)
        at = os.open(self.src, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir(component, dir_fd=at)
            below = os.open(component, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)
        return b"/".join([component] * levels + [name])

    def test_B038_the_longest_names_are_published_and_longer_ones_refused(self):
        longest = [b"\xe8\xaa\x9e" * 85, b"a" * 255, b"\xf0\x9f\x98\x80" * 63]
        for name in longest:
            self.make(name, name)
            self.make(b"below/" + name + b"/" + name, name)
        self.make("/".join(["p" * 250] * 15), b"deep")
        for transport in ("local", "exec"):
            with self.subTest(transport):
                self.assert_mirrored(self.sync_by(transport, "--identity", transport))

    def test_B038_a_path_of_4090_bytes_and_one_beyond(self):
        name = self.deep(b"d" * 254, 15, b"f" * 255)  # 15 * 255 + 255 = 4080
        self.assertEqual(len(name), 4080)
        for transport in ("local", "exec"):
            with self.subTest(transport):
                run = self.sync_by(transport)
                self.assertIn(run.outcome(name), ("published", "unchanged"), run.err)
                self.assertEqual(run.status, 0)
        beyond = self.deep(b"e" * 254, 17)
        run = self.sync()
        self.assertEqual((run.status, run.why(beyond)), (1, "too-long"), run.err)
        subprocess.run(["rm", "-rf", self.dst], check=True)

    def test_B038_2000_levels_are_refused_without_running_out_of_anything(self):
        name = self.deep(b"d", 2000)
        fine = self.make("/".join(["k"] * 99) + "/f", b"x")
        self.make("/".join(["l"] * 100) + "/f", b"x")
        for kind in ("gnu", "busybox", "toybox"):
            for limit in ("ulimit -n 300", "ulimit -s 512"):
                with self.subTest(kind, limit=limit):
                    run = self.sync_by("exec", "--dry-run", command=[
                        "sh", "-c", limit + '; exec "$@"', "sh", *self.bare(self.tools(kind))])
                    self.assertEqual(run.count("would-publish"), 1, run.err)
        run = self.sync()
        self.assertEqual(run.report["reasons"], {"too-deep": 2})
        self.assertEqual(run.why(name), "too-deep")
        self.assertEqual(list(self.published()), [os.path.relpath(fine, os.fsencode(self.src))])


if __name__ == "__main__":
    unittest.main()
