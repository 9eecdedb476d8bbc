"""The command line, what is written where, exit statuses and signals."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness

HANGS = ("sh", "-c", "sleep 60")  # a COMMAND that never answers
NOISY = "i=0; while [ $i -lt 25 ]; do echo line$i >&2; i=$((i+1)); done; exec sh"


def usage_cases():
    """Arguments, and what the line about them must say."""
    size = "is not a size"
    return [
        ("no operand", [], "missing SOURCE and DEST"),
        ("one operand", ["a"], "missing DEST after SOURCE 'a'"),
        ("a third operand", ["a", "b", "c"], "unexpected operand 'c'"),
        ("a command without --", ["exec:/a", "b", "sh"], "a COMMAND goes after '--'"),
        ("operands after -- only", ["--", "a", "b"], "missing SOURCE and DEST before '--'"),
        ("exec without a command", ["exec:/a", "b"], "sbx-sync exec:/a b -- docker exec -i BOX sh"),
        ("exec with nothing after --", ["exec:/a", "b", "--"], "needs a COMMAND"),
        ("a command that nobody needs", ["a", "b", "--", "sh"], ""),
        ("an unknown scheme", ["gopher:/a", "b"], ""),
        ("a relative exec directory", ["exec:a", "b", "--", "sh"], ""),
        ("an empty source", ["", "b"], "SOURCE is empty"),
        ("an empty destination", ["a", ""], "DEST is empty"),
        ("an unknown option", ["--bogus"], "'--bogus'"),
        ("an unknown letter", ["-x"], "'-x'"),
        ("an ambiguous option", ["--max", "1"], "'--max'"),
        ("an option escaped", ["--b\x1b[2J"], "'--b\\x1b[2J'"),
        ("a value that is missing", ["a", "b", "--jobs"], "--jobs needs a value"),
        ("a value nobody asked for", ["--json=yes"], "--json takes no value"),
        ("an empty pattern", ["--exclude", ""], "--exclude: '' is empty"),
        ("an empty identity", ["--identity="], "--identity: '' is empty"),
        ("an unknown profile", ["--names", "dos"], "'dos' is not one of portable, posix"),
        ("an unknown durability", ["--durability=x"], "'x' is not one of batch, full, none"),
        ("a count of letters", ["--max-files", "many"], "--max-files: 'many' is not a whole"),
        ("a count with a unit", ["--max-records", "1k"], "--max-records: '1k'"),
        ("a count of 0", ["--max-files", "0"], "--max-files: '0' is too small"),
        ("a count beyond 64 bits", ["--max-files", "18446744073709551616"], "is too large"),
        ("no jobs", ["--jobs", "0"], "--jobs: '0' is too small"),
        ("jobs beyond an int", ["--jobs", "4294967296"], "--jobs: '4294967296' is too large"),
        ("jobs beyond the library's", ["--jobs", "65", "a", "b"], "jobs"),
        ("a negative report limit", ["--report-limit", "-1"], "--report-limit: '-1'"),
        ("a size of nothing", ["--max-bytes", ""], size),
        ("a size of 0", ["--max-bytes", "0"], "'0' is too small"),
        ("a size of 0G", ["--max-bytes", "0G"], "'0G' is too small"),
        ("a negative size", ["--max-bytes", "-1"], size),
        ("a signed size", ["--max-bytes", "+1"], size),
        ("a size after a blank", ["--max-bytes", " 1"], size),
        ("a size with a blank", ["--max-bytes", "1 k"], size),
        ("a unit alone", ["--max-bytes", "k"], size),
        ("a unit nobody knows", ["--max-bytes", "1x"], size),
        ("two units", ["--max-bytes", "1kk"], size),
        ("a hexadecimal size", ["--max-bytes", "0x10"], size),
        ("a size escaped", ["--max-bytes", "1\r\x1b[K"], "'1\\x0d\\x1b[K'"),
        ("a size beyond 64 bits", ["--max-bytes", "18446744073709551616"], "is too large"),
        ("a unit beyond 64 bits", ["--max-file-size", "17179869184G"], "is too large"),
        ("a deadline of 0", ["--deadline", "0"], "'0' is too small"),
        ("a deadline of 0.0", ["--deadline", "0.0"], "'0.0' is too small"),
        ("a negative deadline", ["--deadline", "-1"], "'-1' is not a number of seconds"),
        ("a deadline that never comes", ["--deadline", "inf"], "'inf'"),
        ("a deadline that is no number", ["--deadline", "nan"], "'nan'"),
        ("a deadline with an exponent", ["--deadline", "1e3"], "'1e3'"),
        ("a deadline that ends in a point", ["--deadline", "1."], "'1.'"),
        ("a deadline with two points", ["--deadline", "1.2.3"], "'1.2.3'"),
        ("a deadline beyond a year", ["--deadline", "99999999", "a", "b"], "deadline"),
        ("a wait of letters", ["--wait", "x"], "--wait: 'x'"),
    ]


class Usage(harness.Case):
    def test_each_mistake_has_a_line_and_status_2(self):
        os.mkdir(os.path.join(self.tmp, "a"))
        self.guard()
        for why, args, says in usage_cases():
            with self.subTest(why):
                run = self.run_command(*args)
                self.assertEqual(run.status, 2, run.err)
                self.assertEqual(run.out, b"")
                lines = run.err.splitlines()
                self.assertTrue(lines[0].startswith("sbx-sync: error: "), run.err)
                self.assertIn(says, lines[0])
                self.assertIn(lines[1:], ([], ["Try 'sbx-sync --help'."]))

    def test_sizes(self):
        """A file of as many bytes is published, one more is refused."""
        for text, size in (
            ("1", 1),
            ("999", 999),
            ("1k", 1024),
            ("1K", 1024),
            ("2kB", 2000),
            ("2KB", 2000),
            ("0001M", 1 << 20),
            ("1MB", 1000000),
        ):
            with self.subTest(text):
                self.make("fits", b"x" * size)
                self.make("larger", b"x" * (size + 1))
                run = self.sync("--max-file-size", text)
                self.assertEqual(run.outcome("fits"), "published")
                self.assertEqual(run.why("larger"), "too-large")

    def test_large_sizes_and_fractions_are_taken(self):
        self.make("a", b"1")
        for option in (
            ["--max-bytes", "16G"],
            ["--max-bytes=18446744073709551615"],
            ["--max-file-size", "5GB"],
            ["--max-listing", "1M"],
            ["--deadline", "30.25"],
            ["--wait", "0"],
            ["--jobs", "64"],
            ["--max-rec", "7"],
        ):
            with self.subTest(option):
                self.assertEqual(self.sync(*option).status, 0)

    def test_options_stand_anywhere_before_the_command(self):
        self.make("a.log", b"1")
        self.make("b", b"2")
        run = self.run_command(
            "--json", self.src, "--exclude", "*.log", self.dst, "-q"
        ).read_report()
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.why("a.log"), "excluded")

    def test_nothing_after_the_dashes_is_an_option(self):
        self.make("b", b"2")
        stub = self.script("stub", '#!/bin/sh\necho "$@" >"$0.args"\nexec sh\n')
        args = ["-i", "--json", "-v", "--", "--exclude", "b"]
        run = self.run_command("-q", "exec:" + self.src, self.dst, "--", stub, *args)
        self.assertEqual((run.status, run.out, run.err), (0, b"", ""))
        with open(stub + ".args", encoding="ascii") as file:
            self.assertEqual(file.read().split(), args)
        self.assertEqual(self.published(), {b"b": b"2"})

    def test_dashes_may_be_the_value_of_an_option(self):
        self.make("--", b"1")
        self.make("a", b"2")
        self.assertEqual(self.sync("--exclude", "--").status, 0)
        self.assertEqual(self.published(), {b"a": b"2"})

    def test_help_and_version(self):
        for args in (["--help"], ["-h"], ["-q", "--help", "--bogus"]):
            run = self.run_command(*args)
            self.assertEqual((run.status, run.err), (0, ""))
            text = run.out.decode("ascii")
            self.assertTrue(text.startswith("Usage: sbx-sync"))
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            for part in ("docker exec -i", "kubectl exec -i", "ssh HOST sh", "128+n", "--json"):
                self.assertIn(part, text)
        run = self.run_command("--version")
        self.assertEqual((run.status, run.out, run.err), (0, b"sbx-sync 0.1.0\n", ""))

    def test_every_option_is_documented(self):
        text = self.run_command("--help").out.decode()
        options = {word.strip(",") for word in text.split() if word.startswith("--")} - {"--"}
        with open(os.path.join(harness.SOURCE_DIR, "docs/sbx-sync.1"), encoding="ascii") as file:
            manual = file.read()
        for option in options:
            self.assertIn("Fl " + option[1:], manual)
        self.assertGreater(len(options), 20)


class Output(harness.Case):
    def test_standard_output_is_empty_without_json(self):
        self.make("a", b"1")
        for options in ([], ["-q"], ["-v"], ["--progress"], ["--dry-run"]):
            self.assertEqual(self.run_command(*options, self.src, self.dst).out, b"")

    def test_the_report_is_all_of_standard_output(self):
        self.make("a", b"1")
        self.make("b:", b"2")
        run = self.sync("-v", "--progress")
        self.assertEqual(run.count("published"), 1)
        self.assertIn("sbx-sync: published: a\n", run.err)

    def test_the_summary(self):
        self.make("a", b"x" * 1100)
        self.make("same", b"s")
        self.run_command("-q", "--exclude", "a", self.src, self.dst)
        self.make("caf\u00e9", b"1")
        self.make("cafe\u0301", b"2")
        self.make(b"b\xff", b"3")
        self.make("c:", b"4")
        run = self.run_command(self.src, self.dst)
        self.assertEqual(run.status, 1)
        self.assertRegex(
            run.err.splitlines()[-1],
            r"^sbx-sync: 1 published, 1 unchanged, 4 refused \(encoding 1, reserved-char 1, "
            r"alias 2\); 1\.1 kB received in [0-9.]+ s: partial; "
            r"--names posix would take 1 of the refused names$",
        )
        self.assertIn("sbx-sync: refused (alias): cafe\\xcc\\x81, also spelled caf\\xc3\\xa9\n",
                      run.err)

    def test_quiet_says_only_what_is_wrong(self):
        self.make("a", b"1")
        run = self.run_command("-q", self.src, self.dst)
        self.assertEqual((run.status, run.err), (0, ""))
        self.make("b:", b"1")
        run = self.run_command("-q", self.src, self.dst)
        self.assertEqual((run.status, run.err), (1, "sbx-sync: refused (reserved-char): b:\n"))

    def test_at_most_20_files_are_named(self):
        for i in range(25):
            self.make(f"{i}:", b"")
        run = self.run_command(self.src, self.dst)
        self.assertEqual(run.err.count("sbx-sync: refused (reserved-char): "), 20)
        self.assertIn("sbx-sync: ... and 5 more (use --json or -v)\n", run.err)
        run = self.run_command("-v", self.src, self.dst)
        self.assertEqual(run.err.count("sbx-sync: refused (reserved-char): "), 25)
        self.assertNotIn("more", run.err)

    def test_links_and_special_files_are_counted_in_the_summary(self):
        self.make("a", b"1")
        os.symlink("a", os.path.join(self.src, "link"))
        os.mkfifo(os.path.join(self.src, "fifo"))
        run = self.run_command(self.src, self.dst)
        self.assertIn("; 2 links or special files left out\n", run.err)
        self.assertEqual(run.status, 0)
        os.unlink(os.path.join(self.src, "fifo"))
        run = self.run_command(self.src, self.dst)
        self.assertIn("; 1 link or special file left out\n", run.err)

    def test_other_spellings_are_named_in_every_mode(self):
        self.make("a", b"1")
        self.make("A", b"2")
        for options in ([], ["-v"]):
            run = self.run_command(*options, self.src, self.dst)
            self.assertIn("sbx-sync: refused (alias): A, also spelled a\n", run.err)
            self.assertIn("sbx-sync: refused (alias): a, also spelled A\n", run.err)

    def test_a_spelling_that_stands_in_dest_is_said_to(self):
        self.make("a", b"1")
        self.make("A", b"2", root=self.dst)
        run = self.run_command(self.src, self.dst)
        self.assertIn("sbx-sync: refused (alias-local): a, in DEST as A\n", run.err)

    def test_what_stands_in_the_way_in_dest_is_no_spelling(self):
        self.make("d/a", b"1")
        os.mkdir(self.dst)
        os.symlink(self.outside, os.path.join(self.dst, "d"))
        run = self.run_command(self.src, self.dst)
        self.assertIn("sbx-sync: refused (linked): d/a, in DEST there is d\n", run.err)

    def test_a_dry_run_marks_what_it_would_replace(self):
        self.make("a", b"1")
        self.make("b", b"2")
        self.make("a", b"old", root=self.dst)
        run = self.run_command("--dry-run", "-v", self.src, self.dst)
        self.assertIn("would-publish (replaces a file that no run has made): a\n", run.err)
        self.assertIn("would-publish: b\n", run.err)

    def test_what_is_published_without_a_second_look_is_marked(self):
        self.make("a", b"1")
        run = self.run_command("--no-confirm", "-v", self.src, self.dst)
        self.assertIn("published (unconfirmed): a\n", run.err)

    def test_what_the_sandbox_leaves_out_of_the_listing_is_said_to(self):
        self.make("a", b"1")
        self.make("node_modules/x", b"2")
        run = self.run_command("--exclude", "node_modules", self.src, self.dst)
        self.assertIn("; --exclude node_modules: not listed, not counted\n", run.err)
        run = self.run_command("--exclude", "*.o", "--exclude", "x", "--exclude", "y", "--exclude",
                               "z", self.src, self.dst)
        self.assertIn("; --exclude x and 2 more: not listed, not counted\n", run.err)
        run = self.run_command("--exclude", "node_modules/*", self.src, self.dst)
        self.assertNotIn("not listed", run.err)
        self.assertIn("1 excluded", run.err)
        run = self.run_command("--exclude", "x", self.src + "/none", self.dst)
        self.assertNotIn("not listed", run.err)  # there was no listing at all

    def test_a_pass_that_finds_another_one_is_told_how_to_wait(self):
        holder = self.start("exec:/", self.dst, "--", *HANGS)
        lock = os.path.join(self.dst, ".sbx-sync", "lock")
        self.until(lambda: os.path.exists(lock), "the pass to begin")
        run = self.run_command("--wait", "0.1", self.src, self.dst)
        holder.terminate()
        holder.wait(timeout=10)
        self.assertEqual(run.status, 5)
        self.assertIn(f"another pass holds '{self.dst}'; --wait SECONDS waits for it\n", run.err)

    def test_a_dest_that_cannot_be_is_told_in_words(self):
        self.make("a", b"1")
        self.make("file", root=self.work)
        os.symlink("nowhere", self.work + "/link")
        for dest, said in (
            ("no/such/out", "the parent directory '{}/no/such' of '{}/no/such/out' does not exist, "
                            "and only the last component is made: ENOENT"),
            ("file", "'{}/file' is not a directory: ENOTDIR"),
            ("file/", "'{}/file/' is not a directory: ENOTDIR"),
            ("file/out", "'{}/file' is not a directory: ENOTDIR"),
            ("link", "'{}/link' is a symbolic link that leads nowhere: ENOENT"),
        ):
            for options in ([], ["--dry-run"]):
                with self.subTest(dest=dest, options=options):
                    run = self.run_command(*options, self.src, os.path.join(self.work, dest))
                    self.assertEqual(run.status, 4)
                    self.assertIn("error: " + said.replace("{}", self.work) + " (", run.err)

    def test_a_dest_without_permission_is_told_in_words(self):
        self.make("a", b"1")
        os.chmod(self.tmp, 0o755)
        os.makedirs(self.work + "/private/in", mode=0o700)
        os.chmod(self.work, 0o755)
        os.chmod(self.work + "/private", 0o700)
        for dest, said in (
            ("out", "no permission to make '{}/out': EACCES"),
            ("private", "no permission to open '{}/private': EACCES"),
            ("private/in", "no permission to reach '{}/private/in': EACCES"),
            ("", "destination '{}/': state directory: mkdirat: '.sbx-sync': EACCES"),
        ):
            with self.subTest(dest=dest):
                run = self.run_command(self.src, os.path.join(self.work, dest),
                                       user=65534, group=65534, extra_groups=[])
                self.assertEqual(run.status, 4)
                self.assertIn("error: " + said.replace("{}", self.work) + " (", run.err)

    def test_a_file_that_may_not_be_read_is_told_once(self):
        self.make("a", b"1")
        os.chmod(os.path.join(self.src, "a"), 0)
        os.chmod(os.path.dirname(self.dst), 0o755)
        os.mkdir(self.dst)
        os.chown(self.dst, 65534, 65534)
        run = self.run_command(self.src, self.dst, user=65534, group=65534, extra_groups=[])
        self.assertEqual((run.status, run.err.count("denied")), (1, 2), run.err)  # file, summary
        self.assertNotIn("source:", run.err)

    def test_standard_error_of_the_remote_side_is_bounded(self):
        self.make("a", b"1")
        args = ["exec:" + self.src, self.dst, "--", "sh", "-c", NOISY]
        run = self.run_command(*args)
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.err.count("source: line"), 20)
        self.assertIn("source: line0\n", run.err)
        self.assertIn("source: ... and 5 more lines\n", run.err)
        self.assertEqual(self.run_command("-q", *args).err, "")

    def test_the_report_names_as_many_files_as_wanted(self):
        for name in ("a", "b", "c:"):
            self.make(name, b"1")
        run = self.sync("--report-limit", "1")
        self.assertEqual(list(run.files), [b"c:"])
        run = self.sync("--report-limit", "0")
        self.assertEqual((run.files, run.report["files_omitted"]), ({}, 3))

    def test_a_report_that_cannot_be_written(self):
        self.make("a", b"1")
        with open("/dev/full", "wb") as full:
            run = self.run_command("--json", "-q", self.src, self.dst, stdout=full)
        self.assertEqual(run.status, 4)
        self.assertIn("No space left on device", run.err)
        self.assertEqual(self.published(), {b"a": b"1"})
        read, write = os.pipe()
        os.close(read)
        run = self.run_command("--json", "-q", self.src, self.dst, stdout=write)
        os.close(write)
        self.assertEqual(run.status, 4)
        self.assertIn("Broken pipe", run.err)
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_command("--version", stdout=full).status, 4)

    def test_a_pipe_that_does_not_block(self):
        for i in range(400):
            self.make(f"{i}:" + "x" * 200, b"")
        read, write = os.pipe()
        os.set_blocking(write, False)
        process = self.start("--json", "-q", self.src, self.dst, stdout=write)
        os.close(write)
        time.sleep(0.5)  # until the pipe is full
        with os.fdopen(read, "rb") as pipe:
            out = pipe.read()
        process.wait(timeout=20)
        run = harness.Run(process.returncode, out, process.stderr.read()).read_report()
        self.assertEqual((run.status, run.count("refused")), (1, 400))

    def test_nobody_reads_standard_error(self):
        for i in range(30):
            self.make(f"{i}:", b"1")
        self.make("a", b"1")
        read, write = os.pipe()
        os.close(read)
        run = self.run_command("-v", "--progress", self.src, self.dst, stderr=write)
        os.close(write)
        self.assertEqual(run.status, 1)
        self.assertEqual(self.published(), {b"a": b"1"})

    def test_closed_standard_descriptors(self):
        self.make("a", b"1")
        for closed, options, status in (
            ("<&-", [], 0),
            ("<&- >&- 2>&-", [], 0),
            ("2>&-", ["-v", "--progress"], 0),
            (">&-", ["--json"], 4),
        ):
            with self.subTest(closed):
                ended = subprocess.run(
                    ["sh", "-c", f'"$@" {closed}', "sh", harness.COMMAND, *options, self.src,
                     self.dst],
                    env=self.env(), cwd=self.tmp, check=False, timeout=30,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
                self.assertEqual(ended.returncode, status)
                self.assertEqual(self.published(), {b"a": b"1"})


    def test_no_file_takes_the_place_of_a_closed_descriptor(self):
        close = 'exec "$@" <&- >&- 2>&-'
        hangs = [harness.COMMAND, "exec:/", self.dst, "--", *HANGS]
        process = subprocess.Popen(
            ["sh", "-c", close, "sh", *hangs], env=self.env(), cwd=self.tmp
        )
        lock = os.path.join(self.dst, ".sbx-sync", "lock")
        self.until(lambda: os.path.exists(lock), "the pass to begin")
        fds = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)]
        process.terminate()
        process.wait(timeout=10)
        self.assertEqual(fds, ["/dev/null"] * 3)


class Terminal(harness.Case):
    """What is seen on a terminal."""

    def on_terminal(self, *args, columns=80):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.start(*args, stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        seen = b""
        while select.select([leader], [], [], 30)[0]:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            seen += part
        os.close(leader)
        process.wait(timeout=30)
        return seen.replace(b"\r\n", b"\n").decode("ascii")

    def test_progress_is_for_terminals(self):
        self.make("a", b"1")
        self.assertNotIn("\r", self.run_command(self.src, self.dst).err)
        self.assertIn("\rlist: ", self.run_command("--progress", self.src, self.dst).err)
        self.assertIn("\rlist: ", self.on_terminal(self.src, self.dst))
        self.assertNotIn("\r", self.on_terminal("--no-progress", self.src, self.dst))
        self.assertEqual(self.on_terminal("-q", self.src, self.dst), "")

    def test_the_line_fits_and_is_cleared_before_others(self):
        for i in range(50):
            self.make(f"{i}", b"1" * 100)
        seen = self.on_terminal("-v", self.src, self.dst, columns=20)
        for line in seen.rstrip("\n").split("\n"):
            *drawn, last = line.split("\r")
            self.assertLessEqual(max(map(len, drawn), default=0), 19)
            if drawn:
                self.assertEqual(drawn[-1].strip(), "", line)  # blanks
            self.assertTrue(last.startswith("sbx-sync: "), line)
        self.assertIn("transfer: ", seen)


class Names(harness.Case):
    hostile = {
        b"\x1b]0;pwn\x07": "control",
        b"a\x1b[2J": "control",
        b"b\xff\n": "encoding",
        b'"': "reserved-char",
        b"\\": "separator",
        b"\n": "control",
        b"a\rb": "control",
        b"\xc2\x9b3J": "control",
        b"x\xe2\x80\xae": None,  # beside other characters, a bidi override is a name as any
        b"\xe2\x80\xae": "traversal",
        b"\xe2\x80\xa8": None,
        b"\xff" * 200: "encoding",
    }

    def test_names_are_escaped_and_can_be_got_back(self):
        for name in self.hostile:
            self.make(name, b"x")
        for options in (["-v"], []):
            run = self.sync(*options)
            self.assertEqual(run.status, 1)
            # What is not printable ASCII has failed the test already, but for control characters.
            self.assertEqual([c for c in run.err if c < " " and c != "\n"], [])
            self.assertTrue(run.out.isascii())
            self.assertEqual({name: run.why(name) for name in self.hostile}, self.hostile)
        self.assertIn("refused (separator): \\\\\n", run.err)
        self.assertIn("refused (control): a\\x1b[2J\n", run.err)

    def test_posix_takes_what_linux_can_hold(self):
        for name in self.hostile:
            self.make(name, b"x")
        run = self.sync("--names", "posix")
        refused = [name for name in self.hostile if run.outcome(name) == "refused"]
        always = ("encoding", "traversal")
        self.assertEqual(refused, [name for name, why in self.hostile.items() if why in always])
        self.assertEqual(self.sync("--names", "posix").count("unchanged"), len(self.hostile) - 3)

    def test_what_the_remote_side_says_is_escaped_and_cut(self):
        say = r"printf 'ok\r\033[2K\302\233J\342\200\256\342\200\250\n' >&2; "
        run = self.sync(
            source="exec:" + self.src,
            command=["sh", "-c", say + "head -c 1048576 /dev/zero | tr '\\0' '\\033' >&2; exit 9"],
        )
        self.assertEqual(run.status, 3)
        self.assertEqual([c for c in run.err if c < " " and c != "\n"], [])
        self.assertIn("\\x1b[2K\\xc2\\x9bJ\\xe2\\x80\\xae", run.err)
        self.assertLess(len(run.err), 16384)
        self.assertLess(len(run.out), 16384)

    def test_long_names_are_cut_in_lines_and_whole_in_the_report(self):
        name = "/".join(["d" * 200] * 2) + "/x:"
        self.make(name, b"")
        run = self.sync()
        self.assertIn(name.encode(), run.files)
        self.assertLess(max(map(len, run.err.splitlines())), 400)
        self.assertIn("ddd...ddd", run.err)
        self.assertIn("/x:\n", run.err)

    def test_exclude(self):
        for name in (
            "node_modules/a",
            "x/node_modules/b",
            "x/node_modules2",
            "build/a",
            "x/build/a",
            "src/a.o",
            "src/deep/a.o",
            "LOG.log",
            "log.LOG",
        ):
            self.make(name, b"1")
        run = self.sync(
            *("--exclude", "node_modules", "--exclude", "/build/"),
            *("--exclude", "src/*.o", "--exclude=*.log"),
        )
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(
            set(self.published()),
            {b"x/node_modules2", b"x/build/a", b"src/deep/a.o", b"log.LOG"},
        )
        self.assertEqual(run.outcome("src/a.o"), "excluded")
        self.assertIn("src/deep/a.o", self.published_after("--exclude", "src/*.o"))
        self.assertNotIn("src/deep/a.o", self.published_after("--exclude", "src/**.o"))

    def published_after(self, *options):
        run = self.sync("--dry-run", "--identity", "another", *options)
        wanted = ("would-publish", "unchanged")
        return {os.fsdecode(p) for p, e in run.files.items() if e["outcome"] in wanted}


class Status(harness.Case):
    def test_complete_partial_and_failed_differ(self):
        self.make("fine", b"1")
        self.assertEqual(self.sync().status, 0)
        self.make("b:", b"1")
        self.assertEqual(self.sync().status, 1)
        run = self.sync(source=self.src + "-missing")
        self.assertEqual((run.status, run.report["listing"]["state"]), (3, "missing"))
        os.unlink(os.path.join(self.src, "b:"))
        self.assertEqual(self.sync().status, 0)

    def test_sources_that_fail(self):
        self.make("plain", b"1")
        for why, source, command in (
            ("no directory", os.path.join(self.src, "plain"), ()),
            ("a command that is missing", "exec:/", ["/nonexistent/command"]),
            ("a command that fails", "exec:/", ["false"]),
            ("a command that says nothing", "exec:/", ["true"]),
            ("a command that is no shell", "exec:/", ["cat"]),
        ):
            with self.subTest(why):
                run = self.sync("--deadline", "3", source=source, command=command)
                self.assertEqual(run.status, 3, run.err)
                self.assertEqual(run.report["outcome"], "failed")
                self.assertIsNotNone(run.report["error"])
                self.assertEqual(self.published(), {})

    def test_a_command_that_ends_early_is_asked_about(self):
        run = self.sync(source="exec:/", command=["sh", "-c", "exit 7"])
        self.assertEqual(run.status, 3)
        self.assertIn("7", run.report["error"]["message"])
        self.assertIn("does it end in 'sh'?", run.err)

    def test_destinations_that_fail(self):
        self.make("a", b"1")
        with open(self.dst, "wb") as file:
            file.write(b"kept")
        self.assertEqual(self.sync().status, 4)
        with open(self.dst, "rb") as file:
            self.assertEqual(file.read(), b"kept")
        os.unlink(self.dst)
        run = self.run_command(self.src, os.path.join(self.tmp, "no", "parent"))
        self.assertEqual(run.status, 4, run.err)

    def test_source_and_destination_contain_each_other(self):
        self.make("a/b", b"1")
        for source, dest in (("src", "src"), ("src", "src/a"), ("src/a", "src"), (".", "src")):
            with self.subTest(source=source, dest=dest):
                run = self.run_command(source, dest)
                self.assertEqual(run.status, 2, run.err)
        self.assertEqual(os.listdir(self.src), ["a"])

    def test_busy(self):
        os.mkdir(self.dst)
        holder = self.start("exec:/", self.dst, "--", *HANGS)
        run_file = os.path.join(self.dst, ".sbx-sync", "lock")
        self.until(lambda: os.path.exists(run_file), "the lock")
        time.sleep(0.1)
        run = self.sync()
        self.assertEqual((run.status, run.report["error"]["status"]), (5, "busy"))
        began = time.monotonic()
        self.assertEqual(self.run_command("--wait", "0.5", self.src, self.dst).status, 5)
        self.assertGreaterEqual(time.monotonic() - began, 0.5)
        holder.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(holder).status, 128 + signal.SIGTERM)
        self.assertEqual(self.run_command(self.src, self.dst).status, 0)

    def test_a_deadline_while_listing(self):
        began = time.monotonic()
        run = self.sync("--deadline", "1", source="exec:/", command=HANGS)
        self.assertLess(time.monotonic() - began, 3)
        self.assertEqual((run.status, run.report["listing"]["state"]), (3, "deadline"))


class Signals(harness.Case):
    def hanging(self, *options, **popen):
        process = self.start("--json", *options, "exec:/", self.dst, "--", *HANGS, **popen)
        run = os.path.join(self.dst, ".sbx-sync", "run")  # empty, or gone, after the pass before
        self.until(lambda: os.path.exists(run) and os.path.getsize(run), "the pass to begin")
        time.sleep(0.2)
        return process

    def test_a_signal_ends_the_pass_and_leaves_a_report(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                process = self.hanging()
                began = time.monotonic()
                process.send_signal(number)
                run = self.finish(process).read_report()
                self.assertLess(time.monotonic() - began, 1)
                self.assertEqual(run.status, 128 + number)
                self.assertEqual(run.report["error"]["status"], "cancelled")
                self.assertIn(f"ended by signal {number.name}\n", run.err)

    def test_a_signal_while_files_arrive(self):
        """What has not got its name is dropped; the temporary is gone, and so is COMMAND."""
        os.mkdir(os.path.join(self.work, "bin"))
        self.script(
            "bin/head", '#!/bin/sh\n[ "$2" = 200777 ] && sleep 60\nexec /usr/bin/head "$@"\n'
        )
        self.make("a", b"1" * 200001)  # small files would come together
        self.make("b", b"2" * 200777)
        self.make("a", b"old", root=self.dst)
        path = os.path.join(self.work, "bin") + ":" + os.environ["PATH"]
        process = self.start(
            "--json", "exec:" + self.src, self.dst, "--", "env", "PATH=" + path, "sh"
        )
        self.until(self.temporaries, "a file to arrive")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        run = self.finish(process).read_report()
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(run.status, 128 + signal.SIGTERM)
        self.assertEqual([run.why(name) for name in "ab"], ["cancelled", "cancelled"])
        self.assertEqual(self.published(), {b"a": b"old"})

    def test_the_first_signal_gives_the_status(self):
        process = self.hanging("-q")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        self.assertIn(self.finish(process).status, (128 + signal.SIGTERM, 128 + signal.SIGHUP))

    def test_an_ignored_signal_stays_ignored(self):
        process = self.hanging(
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).status, 128 + signal.SIGINT)

    def test_a_second_signal_ends_at_once_unless_it_is_an_echo(self):
        """The report does not fit the pipe, which nobody reads. timeout(1) and others signal a
        process and then its group: what follows at once is no second wish."""
        for i in range(400):
            self.make(f"{i}:" + "x" * 200, b"")
        process = self.start("--json", "-q", self.src, self.dst)

        def full():
            waiting = fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, bytes(4))
            return struct.unpack("i", waiting)[0] >= 65536

        self.until(full, "the pipe to fill")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=5), -signal.SIGTERM)


class Schema(harness.Case):
    """The harness holds each report against the schema; here are the kinds there are."""

    def test_the_schema_is_one_and_is_strict(self):
        self.assertIsNotNone(harness.jsonschema, "python3-jsonschema is missing")
        path = os.path.join(harness.SOURCE_DIR, "docs/report.schema.json")
        with open(path, encoding="ascii") as file:
            schema = json.load(file)
        harness.jsonschema.Draft202012Validator.check_schema(schema)
        self.make("a", b"1")
        self.make("b:", b"1")
        validator = harness.jsonschema.Draft202012Validator(schema)
        good = self.sync().report
        validator.validate(good)
        for change in (
            {"more": 1},
            {"outcome": "fine"},
            {"warnings": ["odd"]},
            {"dry_run": False},
            {"reasons": {"odd": 1}},
            {"started": "today"},
            {"files": [{"path": "a", "outcome": "refused"}]},
            {"files": [{"path": "a", "outcome": "published", "reason": "alias"}]},
            {"files": [{"path": "a", "outcome": "failed", "reason": "alias"}]},
            {"files": [{"path": "a", "outcome": "published", "digest": "sha1:00"}]},
            {"files": [{"path": "a", "path_b64": "YQ==", "outcome": "published"}]},
            {"files": [{"path_b64": "YQ==", "outcome": "published"}]},
        ):
            with self.subTest(change):
                self.assertFalse(validator.is_valid({**good, **change}))

    def test_a_report_of_everything(self):
        self.make("a", b"1")
        self.sync()
        self.make("new", b"2", mtime=1)
        self.make("A", b"3")
        self.make("over", b"4" * 100)
        self.make("x.log", b"5")
        self.make(b"\xff", b"6")
        os.symlink("a", os.path.join(self.src, "link"))
        os.symlink(self.outside, os.path.join(self.dst, "linked"))
        self.make("linked/f", b"7")
        run = self.sync("--exclude", "*.log", "--max-file-size", "99", "--no-confirm")
        self.assertEqual(run.files[b"a"]["with"], ["A"])
        self.assertEqual(run.why("over"), "too-large")
        self.assertEqual(run.why("x.log"), "excluded")
        self.assertEqual(run.why("linked/f"), "linked")
        self.assertTrue(run.files[b"new"]["unconfirmed"])
        self.assertEqual(run.report["warnings"], ["unconfirmed"])
        self.assertEqual(run.report["source"], self.src)
        self.assertEqual(run.report["dest"], self.dst)

    def test_a_dry_run_writes_nothing(self):
        self.make("a", b"1")
        self.make("b", b"2")
        run = self.sync("--dry-run")
        self.assertEqual((run.status, run.report["dry_run"]), (0, True))
        self.assertEqual(run.count("would-publish"), 2)
        self.assertFalse(os.path.exists(self.dst))
        self.make("b", b"old", root=self.dst)
        run = self.sync("--dry-run")
        self.assertTrue(run.files[b"b"]["replaces"])
        self.assertNotIn("replaces", run.files[b"a"])
        self.assertEqual(os.listdir(self.dst), ["b"])

    def test_other_ends(self):
        self.make("a", b"1")
        self.assertEqual(self.sync("--max-records", "1", "--names", "posix").status, 0)
        self.make("b", b"1")
        run = self.sync("--max-records", "1")
        self.assertEqual((run.status, run.report["listing"]["state"]), (3, "truncated"))
        run = self.sync("--max-files", "1", "--identity", "other")
        self.assertEqual((run.status, run.report["reasons"]), (1, {"over-budget": 1}))
        self.assertEqual(self.sync("--jobs", "99").status, 2)


if __name__ == "__main__":
    unittest.main()
