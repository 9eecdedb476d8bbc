"""Answers without end or beyond a limit, silence, and streams of files that go wrong: field
failure B001 and its kind. Memory and time stay bounded, and what was there stays."""

import os
import time
import unittest

import sandbox

# Tells the listing in plain base64, up to where the records begin.
OPEN = "answer.set_tools(pack='plain'); say(answer.begin + b'\\n')\n"
RECORDS = (
    "for i in forever():\n"
    "    r = b''.join(b'1 1.5 1.5 f%d\\0' % j for j in range(i * 300, i * 300 + 300))\n"
    "    say(base64.b64encode(r[: len(r) // 3 * 3]) + b'\\n')"
)

# What never ends, the state it ends in, and what is said of it.
ENDLESS = [
    ("records", OPEN + RECORDS, "truncated", ""),
    ("records of a hexadecimal listing",
     "answer.set_tools(pack='plain', coding='hex'); say(answer.begin + b'\\n')\n"
     "while True: say(b'31' * 4096 + b'\\n')", "truncated", ""),
    ("a line", OPEN + "while True: say(b'A' * 65536)", "truncated|damaged", ""),
    ("one record", OPEN + "say(base64.b64encode(b'1 1.5 1.5 ')[:-4])\nwhile True: "
     "say(b'QUJD' * 4096 + b'\\n')", "truncated|damaged", ""),
    ("newlines", OPEN + "while True: say(b'\\n' * 65536)", "truncated", "raw bytes"),
    ("carriage returns", OPEN + "while True: say(b'\\r' * 65536)", "truncated", "raw bytes"),
    ("blanks", OPEN + "while True: say(b' ' * 65536)", "truncated", "raw bytes"),
    ("small events", OPEN + "while True: say(b'M\\n' * 65536)", "truncated|damaged", ""),
    ("NULs", OPEN + "while True: say(b'\\0' * 65536)", "damaged", ""),
    ("empty records", OPEN + "while True: say(b'AAAA' * 4096)", "damaged", "separator"),
    ("noise", "while True: say(b'hello\\n' * 4096)", "damaged", "no begin line"),
    ("noise without a newline", "while True: say(b'\\x1b[m' * 4096)", "damaged", "no begin line"),
    ("noise of our nonce", "while True: say(answer.nonce + b'\\n')", "damaged", "no begin line"),
    ("a begin line", "say(answer.begin)\nwhile True: say(b' ' * 65536)", "damaged",
     "endless line"),
    ("an end line", "answer.set_tools(pack='plain'); answer.noise += answer.begin + b'\\n'; "
     "say(answer.noise + b'\\n'.join(answer.lines) + b'\\n' + answer.end)\n"
     "while True: say(b' x=1' * 4096)", "damaged", "endless line"),
    ("blank lines after the end", "say(answer.text())\nwhile True: say(b'\\n' * 65536)",
     "truncated", "raw bytes"),
    ("a packed stream of zeros",
     "answer.set_packed(gzip.compress(bytes(200 << 20), 9)); say(answer.whole())",
     "truncated|damaged", ""),
    ("a packed record",
     "answer.set_packed(gzip.compress(b'1 1.5 1.5 ' + b'x' * (200 << 20), 1)); "
     "say(answer.whole())", "truncated", "decoded bytes"),
    ("packed blocks that hold nothing",
     "e = base64.b64encode(gzip.compress(b'')[:10] + b'\\0\\0\\0\\xff\\xff' * 60001)\n"
     "say(answer.begin + b'\\n')\nwhile True: say(e + b'\\n'); e = base64.b64encode("
     "b'\\0\\0\\0\\xff\\xff' * 60000)", "truncated", "encoded bytes"),
]


class Floods(sandbox.Case):
    def setUp(self):
        super().setUp()
        self.keep()

    def small(self):
        """What a small pass takes, in KiB."""
        command = ["--json", "exec:" + self.src, os.path.join(self.work, "small"), "--", "sh"]
        return self.peak(*command)[1]

    def test_B001_what_never_ends_is_ended_and_memory_stays_flat(self):
        small = self.small()
        for why, code, states, says in ENDLESS:
            with self.subTest(why):
                run, peak = self.peak(
                    "--json", "--max-listing", "1M", "--max-records", "10000",
                    "exec:" + self.src, self.dst, "--", *self.fake(code),
                )
                self.assert_kept(run.read_report(), states, says)
                self.assertLess(peak, small + 16 * 1024)

    def test_B001_the_default_limits_hold_memory_too(self):
        small = self.small()
        for why, code in (("records", OPEN + RECORDS), ("a line", ENDLESS[2][1])):
            with self.subTest(why):
                run, peak = self.peak("--json", "exec:" + self.src, self.dst, "--",
                                      *self.fake(code))
                self.assert_kept(run.read_report(), "truncated|damaged")
                self.assertLess(peak, small + 64 * 1024)

    def test_B001_a_find_that_never_ends_is_ended(self):
        text = (
            'case "$*" in *maxdepth*) exec $real "$@" ;; esac\n'
            "trap '' PIPE\nwhile :; do echo '1 1.5 1.5 f' | tr '\\n' '\\0'; done"
        )
        path = self.wrap("find", text)
        for transport in ("local", "exec"):
            with self.subTest(transport):
                began = time.monotonic()
                run = self.sync_by(transport, "--max-records", "100", "--max-listing", "2k",
                                   env=self.env(PATH=path))
                self.assert_kept(run, "truncated")
                self.assertLess(time.monotonic() - began, 20)

    def test_B001_more_than_the_limits_is_a_listing_that_failed(self):
        for i in range(30):
            self.make(f"dir{i}/f", b"")
        for transport in ("local", "exec"):
            for option in (("--max-records", "32"), ("--max-listing", "500")):
                with self.subTest(transport, option=option):
                    self.assert_kept(self.sync_by(transport, *option), "truncated")
            self.assertEqual(self.sync_by(transport, "--max-records", "33", "--dry-run").status, 0)

    def test_a_sandbox_that_says_nothing_is_left_at_the_deadline(self):
        for why, code in (
            ("silent from the start", "time.sleep(60)"),
            ("silent after the begin line", OPEN + "time.sleep(60)"),
            ("silent before the end line", "answer.end = None; say(answer.text()); time.sleep(60)"),
            ("silent after the end line", "say(answer.text()); time.sleep(60)"),
            ("nothing but heartbeats", OPEN + "while True: say(b'\\n'); time.sleep(0.05)"),
            ("a byte now and then", "while True: say(b'x'); time.sleep(0.05)"),
            ("deaf to SIGTERM", "import signal; signal.signal(15, signal.SIG_IGN)\n"
             "while True: time.sleep(1)"),
        ):
            with self.subTest(why):
                began = time.monotonic()
                run = self.sync_fake(code, "--deadline", "1")
                self.assertLess(time.monotonic() - began, 1 + 2)
                self.assert_kept(run, "deadline")

    def test_a_sandbox_that_stays_after_the_last_byte_is_ended(self):
        """The pass does not wait for it, and tearDown() finds nobody."""
        run = self.sync_fake("", shell=["sh", "-c", "sh; sleep 60"])
        self.assert_mirrored(run)
        run = self.sync_by("exec", command=["sh", "-c", "sleep 60 & exec sh"])
        self.assert_mirrored(run)


# What a stream of files may do wrong, as a group of small ones or as large ones by themselves.
BROKEN = [
    ("it is cut", "t = answer.text(); say(t[: len(t) // 2]); stop()"),
    ("it is cut, and its end is a success", "t = answer.text(); say(t[: len(t) // 2]); "
     "say(answer.exit); stop()"),
    ("foreign bytes stand in a file", "answer.after = answer.after.replace(b'\\n', "
     "b'\\n<html>\\n', 4)"),
    ("a file comes twice", "i = answer.after.index(b' file 1'); j = answer.after.index(b' file 2')"
     "; answer.after = answer.after[: j - 33] + answer.after[i - 33 :]"),
    ("two files change their numbers", "answer.after = answer.after.replace(b' file 1', b' file 9')"
     ".replace(b' done 1', b' done 9')"),
    ("a file has no record", "answer.after = re.sub(rb'(file 1 ok\\n)[^\\n]*', rb'\\1YWJj', "
     "answer.after)"),
    ("a file has no end", "answer.after = re.sub(rb'\\n[0-9a-f]{32} done 1 0\\n', b'', "
     "answer.after)"),
    ("a file never ends", "i = answer.after.index(b'file 1 ok\\n') + 10; say(answer.after[:i])\n"
     "while True: say(b'QUJD' * 4096 + b'\\n')"),
    ("a state is unknown", "answer.after = answer.after.replace(b'file 1 ok', b'file 1 fine')"),
    ("a group has another number", "answer.after = answer.after.replace(b'group 0', b'group 1')"),
    ("a group is larger", "answer.after = answer.after.replace(b'group 0 3', b'group 0 4')"),
    ("a group has no end", "answer.after = re.sub(rb'\\n[0-9a-f]{32} done 0 0\\n', b'', "
     "answer.after)"),
    ("a group never ends", "i = answer.after.index(b'group 0 3\\n') + 10; say(answer.after[:i])\n"
     "while True: say(b'QUJD' * 4096 + b'\\n')"),
    ("blank lines never end", "say(answer.after[:40])\nwhile True: say(b'\\n' * 65536)"),
    ("noise never ends", "while True: say(b'hello\\n' * 4096)"),
    ("the channel is lost for good", "stop(1)"),
]


class Streams(sandbox.Case):
    """Answers with files. A name has its old content or all of the new; a listing that was whole
    makes it exit 1 at worst."""

    def test_a_stream_of_small_files_that_breaks_costs_no_name_its_content(self):
        self.broken(5000, ("file 1", "done 1"))

    def test_a_stream_of_large_files_that_breaks_costs_no_name_its_content(self):
        self.broken(30000, ("group 0", "done 0"))

    def broken(self, times, not_in_it):
        files = {"a": b"old a", "b": b"old b", "c": b"old c"}
        for why, code in BROKEN:
            if any(words in code for words in not_in_it):
                continue
            with self.subTest(why):
                for name, data in files.items():
                    self.make(name, data)
                self.assertEqual(self.sync("--identity", "before").status, 0)
                for name, data in files.items():
                    self.make(name, b"new " + data * times)
                run = self.sync_fake("if re.search(rb' (file|group) 0', answer.after):\n"
                                     "    " + code.replace("\n", "\n    "), "--deadline", "8")
                self.assertEqual((run.status, run.report["listing"]["state"]), (1, "complete"))
                now = self.published()
                for name, data in files.items():
                    whole = run.outcome(name) == "published"
                    self.assertIn(run.outcome(name), ("published", "failed", "deferred"))
                    self.assertEqual(now[name.encode()], b"new " + data * times if whole else data)

    def test_blanks_mean_nothing_and_are_not_free(self):
        for name in "abc":
            self.make(name, b"new")
        began = time.monotonic()
        run = self.sync_fake(
            "if b' group 0 3' in answer.after:\n"
            "    i = answer.after.index(b'group 0 3\\n') + 10; say(answer.after[:i])\n"
            "    while True: say(b' ' * 65536)", "--deadline", "100")
        self.assertEqual(run.status, 0)  # one by one they come, through a new start
        self.assertLess(time.monotonic() - began, 50)

    def test_a_channel_that_is_lost_once_is_opened_again(self):
        flag = os.path.join(self.work, "once")
        self.make("a", b"x" * 100000)
        self.make("b", b"y" * 100000)
        for why, code in BROKEN[:1] + BROKEN[-1:]:
            with self.subTest(why):
                run = self.sync_fake(
                    f"if n > 1 and not os.path.exists({flag!r}):\n    open({flag!r}, 'w').close()\n"
                    "    " + code, "--identity", why)
                self.assert_mirrored(run)
                os.unlink(flag)

    def test_a_listing_that_lies_about_a_size_publishes_nothing_of_it(self):
        self.make("a", b"12345", mtime=1000)
        self.make("b", b"fine")
        for why, size, reason in (
            ("more", 3, "changed"),
            ("fewer", 9, "changed"),
            ("none", 0, "changed"),
            ("very many", 1 << 31, "changed"),
            ("beyond the limit", 1 << 40, "too-large"),
        ):
            with self.subTest(why):
                run = self.sync_fake(
                    "if answer.begin: answer.set_records([r.replace(b'5 1000', "
                    f"b'{size} 1000', 1) for r in answer.records()])", "--max-bytes", "4G",
                    "--max-file-size", "3G",
                )
                self.assertEqual((run.status, run.why("a")), (1, reason), run.err)
                self.assertEqual(self.published(), {b"b": b"fine"})

    def test_a_listing_that_lied_about_a_size_once_costs_a_second_read(self):
        self.make("a", b"12345", mtime=1000)
        run = self.sync_fake("if n == 1: answer.set_records([r.replace(b'5 1000', b'3 1000', 1) "
                             "for r in answer.records()])")
        self.assert_mirrored(run)
        self.assertEqual(run.report["bytes"], {"received": 8, "published": 5})


if __name__ == "__main__":
    unittest.main()
