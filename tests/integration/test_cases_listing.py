"""Listings that are cut, damaged, forged, late or in another dress: field failures B003 to B019.

What fails here is what the sandbox says; test_cases_floods.py has what it says without end."""

import os
import unittest

import sandbox


def cut_at(percent):
    return f"whole = answer.text(); whole = whole[: len(whole) * {percent} // 100]"


# What a sandbox may say in place of the listing, none of which is one.
DAMAGED = [
    ("only noise", "answer.begin = None; answer.after = b'<html>please log in</html>'",
     "no begin line"),
    ("nothing at all", "answer.begin = None; answer.after = b''", "no begin line"),
    ("no end line", "answer.end = None", "was cut"),
    ("an end line with another nonce", "answer.end = b'0' * 32 + answer.end[32:]", ""),
    ("an end line with nothing on it", "answer.end = answer.nonce + b' end '", "without"),
    ("half an end line", "answer.end = answer.end[:60]", ""),
    ("two end lines", "answer.end += b'\\n' + answer.end", "after the end"),
    ("two begin lines", "answer.begin += b'\\n' + answer.begin", "unexpected line"),
    ("two whole frames", "answer.after = answer.text()", "after the end"),
    ("a begin line of another version", "answer.begin = answer.begin.replace(b'v=1', b'v=2')",
     "version"),
    ("a root in no state", "answer.begin = answer.begin.replace(b'root=ok', b'root=')", "root"),
    ("tools that nobody has", "answer.begin = answer.begin.replace(b'base64', b'base65')",
     "unknown remote tools: 'printf,gzip,base65'"),
    ("tools with a terminal's escapes",
     "answer.begin = answer.begin.replace(b'base64', b'\\x1b[2Jbase64')", "\\x1b[2Jbase64"),
    ("a time that is none", "answer.begin = answer.begin.replace(b'now=', b'now=x')", "no time"),
    ("a time beyond 64 bits", "answer.begin = answer.begin.replace(b'now=', b'now=99999999999')",
     "no time"),
    ("a key nobody knows", "answer.end += b' more=1'", "'more'"),
    ("a key twice", "answer.end += b' find=0'", "'find'"),
    ("a walk by find that tells the status of a walk", "answer.end += b' walk=0'", "walk="),
    ("a find that was killed", "answer.end = answer.end.replace(b'find=0', b'find=137')", "137"),
    ("a find whose status is not the last record's",
     "answer.end = answer.end.replace(b'find=0', b'find=1')", "contradicts"),
    ("a head that failed", "answer.end = answer.end.replace(b'cap=0', b'cap=1')", "head"),
    ("a gzip that is missing", "answer.end = answer.end.replace(b'pack=0', b'pack=127')",
     "remote tool missing: gzip"),
    ("a base64 that failed", "answer.end = answer.end.replace(b'encode=0', b'encode=1')", "base64"),
    ("a status that is no number", "answer.end = answer.end.replace(b'cap=0', b'cap=-0')",
     "no exit status"),
    ("text after the end", "answer.after = b'logout\\n'", "after the end"),
    ("base64 text after the end", "answer.after = b'V2VsY29tZQo=\\n'", "after the end"),
    ("text in the middle", "answer.lines.insert(1, b'Welcome!')", ""),
    ("base64 text in the middle", "answer.lines.insert(1, b'V2VsY29tZQo=')", ""),
    ("text inside a line", "answer.lines[0] = answer.lines[0][:9] + b'\\x1b[m' + "
     "answer.lines[0][9:]", ""),
    ("base64 without its padding", "answer.set_packed(answer.packed() + b'!'); "
     "answer.lines[-1] = answer.lines[-1].rstrip(b'=')", ""),
    ("a quantum that is cut", "answer.lines[-1] = answer.lines[-1][:-3]", ""),
    ("a line that is missing", "del answer.lines[0]", ""),
    ("lines that changed places", "answer.lines[0:2] = answer.lines[1::-1]", ""),
    ("a line twice", "answer.lines.insert(1, answer.lines[0])", ""),
    ("a packed stream that is cut", "answer.set_packed(answer.packed()[:-9])", "cut"),
    ("a packed stream with something after it", "answer.set_packed(answer.packed() + b'x')",
     "after the packed stream"),
    ("a packed stream with another after it", "answer.set_packed(answer.packed() * 2)",
     "after the packed stream"),
    ("a packed stream with a wrong sum",
     "p = bytearray(answer.packed()); p[-8] ^= 1; answer.set_packed(p)", "damaged"),
    ("a packed stream of a wrong length",
     "p = bytearray(answer.packed()); p[-1] ^= 1; answer.set_packed(p)", "damaged"),
    ("a packed stream that is not packed", "answer.set_packed(answer.payload())", "damaged"),
    ("a bit that fell over", "p = bytearray(answer.packed()); p[len(p) // 2] ^= 4; "
     "answer.set_packed(p)", ""),
    ("no last record", "answer.set_records(answer.records()[:-1])", "no last record"),
    ("a last record that is cut", "answer.set_payload(answer.payload()[:-1])", "no last record"),
    ("a last record in the middle", "r = answer.records(); answer.set_records(r[-1:] + r)",
     "after the last one"),
    ("a last record without a status", "answer.set_records(answer.records()[:-1] + [b'end '])",
     "without a status"),
    ("a last record with another status", "answer.set_records(answer.records()[:-1] + [b'end 1'])",
     "contradicts"),
    ("a record that is empty", "answer.add(b'')", "separator"),
    ("a record without a separator", "answer.add(b'5')", "separator"),
    ("a record of three fields", "answer.add(b'5 1.0 1.0')", "separator"),
    ("a size of -1", "answer.add(b'-1 1.0 1.0 x')", "bad size"),
    ("a size of 2^63", "answer.add(b'9223372036854775808 1.0 1.0 x')", "bad size"),
    ("a size of 2^64", "answer.add(b'18446744073709551616 1.0 1.0 x')", "bad size"),
    ("a size that is hexadecimal", "answer.add(b'0x10 1.0 1.0 x')", "bad size"),
    ("a size that is empty", "answer.add(b' 1.0 1.0 x')", "bad size"),
    ("a size with a sign", "answer.add(b'+5 1.0 1.0 x')", "bad size"),
    ("a size with a fraction", "answer.add(b'5.0 1.0 1.0 x')", "bad size"),
    ("an exit status that is not 0", "answer.exit = answer.exit.replace(b'exit 0', b'exit 3')",
     "status 3"),
]

# The same listing in another dress.
SAME = [
    ("lines that end in LF", ""),
    ("lines that end in CR LF", "answer.newline = b'\\r\\n'; "
     "answer.exit = answer.exit.replace(b'\\n', b'\\r\\n')"),
    ("lines that end in CR", "answer.newline = b'\\r'"),
    ("blank lines between all lines", "answer.newline = b'\\n\\n'"),
    ("blank lines that are missing", "answer.noise = b''; answer.exit = answer.exit[1:]"),
    ("blanks inside the lines", "answer.lines = [b'  '.join([x[:7], x[7:], b'\\t']) "
     "for x in answer.lines]"),
    ("a line per character", "answer.lines = [bytes([c]) for x in answer.lines for c in x]"),
    ("one line for all", "answer.lines = [b''.join(answer.lines)]"),
    ("a byte at a time", "say(answer.whole(), 1); answer = Answer(b'', b'')"),
    ("no packing", "answer.set_tools(pack='plain')"),
    ("hexadecimal digits", "answer.set_tools(coding='hex')"),
    ("hexadecimal digits in pairs", "answer.set_tools(coding='hex', pack='plain'); "
     "answer.lines = [b' ' + x.hex(' ').encode() for x in answer.lines for x in "
     "[bytes.fromhex(x.decode())]]"),
    ("more blanks in the end line", "answer.end = answer.end.replace(b'=0 ', b'=0  ')"),
    ("the end line's pairs in another order",
     "w = answer.end.split(); answer.end = b' '.join(w[:2] + w[:1:-1])"),
    ("noise that is text", "answer.noise = b'\\x1b[33mOnly these folders persist\\n'"),
    ("noise that is base64", "answer.noise = b'V2VsY29tZQo=\\n'"),
    ("noise that is no text", "answer.noise = bytes(range(256)) + b'\\n'"),
    ("noise of 60 KiB", "answer.noise = b'noise\\n' * 10000"),
    ("noise that is a long line", "answer.noise = b'-' * 60000 + b'\\n'"),
    ("noise that is a frame with another nonce",
     "answer.noise = answer.text().replace(answer.nonce, b'0123456789abcdef' * 2)"),
    ("noise that is a frame with half our nonce",
     "answer.noise = answer.text().replace(answer.nonce, answer.nonce[:16] + b'0' * 16)"),
    ("noise that is our end line", "answer.noise = answer.end + b'\\n'"),
    ("noise that is our nonce", "answer.noise = answer.nonce + b'\\n'"),
    ("noise that ends in our nonce", "answer.noise = b'+ n=' + answer.nonce + b'\\n'"),
    ("noise without a newline, like a prompt", "answer.noise = b'\\n$ \\n'"),
]


class Damaged(sandbox.Case):
    def setUp(self):
        super().setUp()
        self.keep()
        for _ in range(350):  # make several lines, packed or not
            self.make("many/" + os.urandom(50).hex(), b"")

    def test_B003_a_listing_that_is_cut_is_never_used(self):
        plain = "if n == 1: answer.set_tools(pack='plain')\n"
        for percent in (0, 7, 60, 99):
            with self.subTest("cut, the script said to be a success", percent=percent):
                run = self.sync_fake(plain + cut_at(percent) + "; say(whole + answer.exit); stop()")
                self.assert_kept(run, "damaged")
        for percent in (0, 60, 100):
            for how, status in (("a success", 0), ("a failure", 1), ("status 137", 137)):
                with self.subTest("cut, and COMMAND ends as " + how, percent=percent):
                    run = self.sync_fake(
                        plain + cut_at(percent) + f"; say(whole); stop({status})"
                    )
                    self.assert_kept(run, "damaged|unreachable", f"status {status}")

    def test_B003_every_cut_of_the_last_quantum_is_seen(self):
        for left_out in range(1, 5):
            for pack in ("plain", "gzip"):
                with self.subTest(left_out=left_out, pack=pack):
                    run = self.sync_fake(
                        f"answer.set_tools(pack='{pack}'); "
                        f"answer.lines[-1] = answer.lines[-1][:-{left_out}]"
                    )
                    self.assert_kept(run, "damaged")

    def test_B009_B019_a_damaged_or_forged_listing_is_refused_whole(self):
        for why, code, says in DAMAGED:
            with self.subTest(why):
                self.assert_kept(self.sync_fake(code), "damaged", says)

    def test_B015_a_stream_that_closes_cleanly_is_no_proof(self):
        for why, code in (
            ("after the begin line", "say(answer.begin + b'\\n')"),
            ("after the records", "answer.end = None; say(answer.text())"),
            ("before the exit line", "say(answer.text())"),
        ):
            with self.subTest(why):
                run = self.sync_fake("answer.set_tools(pack='plain')\n" + code + "\nstop()")
                self.assert_kept(run, "damaged", "COMMAND ended with status 0")

    def test_B015_an_exit_line_that_is_forged_does_not_end_the_script(self):
        run = self.sync_fake(
            "import re\nsay(answer.text() + re.sub(rb'[0-9a-f]{32}', b'0' * 32, answer.exit))\n"
            "time.sleep(60)", "--deadline", "2"
        )
        self.assert_kept(run, "damaged|deadline")


class Answers(sandbox.Case):
    def test_B013_why_a_shell_did_not_start_is_told(self):
        self.keep()
        text = "fork/exec /usr/bin/bash: resource temporarily unavailable"
        for why, script in (
            ("status 0", f"echo '{text}' >&2; exit 0"),
            ("status 126", f"echo '{text}' >&2; exit 126"),
            ("status 127 after noise", f"echo V2VsY29tZQo=; echo '{text}' >&2; exit 127"),
            ("status 1 after what it was told", f"cat >/dev/null & echo '{text}' >&2; exit 1"),
            ("signal 9", f"echo '{text}' >&2; kill -9 $$"),
        ):
            with self.subTest(why):
                run = self.sync(source="exec:" + self.src, command=["sh", "-c", script])
                self.assert_kept(run, "unreachable", text)
                self.assertIn(why.split(" after")[0], run.report["error"]["message"])

    def test_B019_a_name_of_3_MiB_is_too_long_and_the_others_go_on(self):
        self.make("a", b"x")
        run = self.sync_fake("if n == 1: answer.list_names([b'x' * (3 << 20)])")
        self.assertEqual((run.status, run.why("x" * (3 << 20))), (1, "too-long"))
        self.assertEqual(self.published(), self.content())

    def test_B019_a_time_that_is_none_refuses_its_entry_alone(self):
        self.make("a", b"x")
        times = ("nan", "1e400", "", "-", "1.", ".5", "1,5", "0x10", "1.5.5", "+1", "1.-5", "--1",
                 "99999999999999999999")
        code = "if n == 1: answer.add(" + ", ".join(
            f"b'3 {time} 1.5 m{i}', b'3 1.5 {time} c{i}'" for i, time in enumerate(times)
        ) + ")"
        run = self.sync_fake(code)
        self.assertEqual(run.status, 1)
        self.assertEqual(run.report["reasons"], {"bad-time": 2 * len(times)})
        self.assertEqual(self.published(), self.content())


class Same(sandbox.Case):
    def test_B007_B008_B009_what_carries_no_meaning_changes_nothing(self):
        for _ in range(350):
            self.make("many/" + os.urandom(50).hex(), b"")
        plain = self.sync("--dry-run")
        for why, code in SAME:
            with self.subTest(why):
                code = "if n == 1:\n    " + code if code else "pass"
                run = self.sync_fake(code, "--dry-run")
                self.assertEqual((run.status, run.files), (0, plain.files), run.err)

    def test_B007_a_whole_pass_over_a_terminal_or_in_small_pieces(self):
        self.make("a", bytes(range(256)) * 300)
        self.make("b/c", b"x")
        self.make("empty", b"")
        for why, code in (
            ("CR LF", "answer = Answer(b'', answer.whole().replace(b'\\n', b'\\r\\n'))"),
            ("blank lines", "answer = Answer(b'', answer.whole().replace(b'\\n', b'\\n\\n'))"),
            ("pieces of 7 bytes", "say(answer.whole(), 7); answer = Answer(b'', b'')"),
        ):
            with self.subTest(why):
                run = self.sync_fake(code, "--identity", why)
                self.assert_mirrored(run)
                self.assertEqual(run.count("published"), 3)

    def test_B005_no_line_is_longer_than_16_KiB(self):
        rows = [("gnu", ()), ("gnu", ("base64",)), ("busybox", ()), ("toybox", ())]
        for i in range(700):
            self.make("f" + os.urandom(60).hex(), b"")
        self.make("A", os.urandom(200000))  # the first of all
        longest = os.path.join(self.work, "longest")
        code = (
            "lines = answer.whole().replace(b'\\r', b'\\n').split(b'\\n')\n"
            f"print(n, len(answer.whole()), max(map(len, lines)), file=open({longest!r}, 'a'))"
        )
        for kind, leave_out in rows:
            with self.subTest(kind, without=leave_out):
                shell = self.bare(self.tools(kind, leave_out))
                ident = f"--identity={shell}"
                run = self.sync_fake(code, "--max-files", "1", ident, shell=shell)
                self.assertEqual(run.count("failed"), 0, run.err)
        with open(longest, encoding="ascii") as file:
            for line in file:
                n, total, most = map(int, line.split())
                self.assertTrue(n > 2 or total > 40000, line)
                self.assertLessEqual(most, 16384)


class Times(sandbox.Case):
    """B018: a time that the host cannot store costs no content and no second download."""

    def test_B018_times_that_can_be_set_are_carried_over(self):
        for name, ns in (("old", -5_000_000_000), ("older", -5_250_000_000), ("epoch", 0),
                         ("late", 15032385535_000_000_000), ("now", 1_700_000_000_123_456_789)):
            path = self.make(name, b"x")
            os.utime(path, ns=(ns, ns))
        for kind in ("gnu", "busybox", "toybox"):
            with self.subTest(kind):
                command = self.bare(self.tools(kind))
                run = self.sync_by("exec", "--identity", kind, command=command)
                self.assert_mirrored(run)
                for name in self.content():
                    stamps = [os.lstat(os.path.join(os.fsencode(root), name)).st_mtime_ns
                              for root in (self.src, self.dst)]
                    self.assertEqual(stamps[0], stamps[1], name)
                run = self.sync_by("exec", "--identity", kind, command=command)
                self.assertEqual((run.count("unchanged"), run.report["bytes"]["received"]), (5, 0))

    def test_B018_times_out_of_range_are_published_once(self):
        self.make("a", b"content")
        for time in ("-5.0000000000", "15032385535.0000000000", "3093527980799.0000000000",
                     "9223372036854775807.0000000000", "-9223372036854775808.0000000000"):
            path = self.wrap("find", f"$real \"$@\" | sed -z -E 's/^7 [0-9.]+ /7 {time} /'")
            with self.subTest(time):
                for outcome in ("published", "unchanged"):
                    run = self.sync_by("exec", "--identity", time, env=self.env(PATH=path))
                    self.assert_mirrored(run)
                    self.assertEqual(run.outcome("a"), outcome)

    def test_B018_names_are_not_trimmed(self):
        self.make(b"\x20lead", b"x")
        self.make(b"report\x20", b"x")
        for transport in ("local", "exec"):
            with self.subTest(transport):
                run = self.sync_by(transport, "--identity", transport)
                self.assertEqual((run.why(b"report "), run.outcome(b" lead")),
                                 ("trailing", "published"))
                self.assertEqual(self.published(), {b" lead": b"x"})
        self.assert_mirrored(self.sync("--names", "posix"))


if __name__ == "__main__":
    unittest.main()
