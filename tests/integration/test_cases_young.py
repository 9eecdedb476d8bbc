"""Sandboxes whose clocks show whole seconds."""

import os
import time
import unittest

import sandbox


class Young(sandbox.Case):
    """Where a ctime has no fraction, a change within its second shows only in the content."""

    def path(self, stat, date=None):
        """BusyBox tools, whose find knows no -printf, with a `stat` and perhaps a `date`."""
        path = self.wrap("stat", stat, self.tools("busybox"))
        return self.wrap("date", date, path) if date else path

    def syncs(self, path, transport, *options):
        if transport == "local":
            return self.sync_by("local", *options, env=self.env(PATH=path))
        return self.sync_by("exec", *options, command=self.bare(path))

    def test_two_contents_of_one_second_by_a_clock_that_stands_still(self):
        clock = os.path.join(self.work, "clock")
        path = self.path(
            '$real "$@" | /usr/bin/sed -E "s/ [0-9]{9,} [0-9-]+ [0-9:.]+ '
            '/ 1700000000 2023-11-14 22:13:20.000000000 /g"',
            f"/usr/bin/cat {clock}",
        )

        def set_clock(seconds):
            with open(clock, "w", encoding="ascii") as file:
                file.write(f"{seconds}\n")

        for now in (1700000000, 1700000002, 1699999000):  # the future included
            with self.subTest(now=now):
                source = ("exec", "--identity", str(now))
                set_clock(now)
                self.make("f", b"AAAA")
                self.assertEqual(self.syncs(path, *source).outcome("f"), "published")
                self.make("f", b"BBBB")
                self.assert_mirrored(self.syncs(path, *source), {b"f": b"BBBB"})
                set_clock(1700000003)  # the second is over: what is read now can be relied on
                self.assertEqual(self.syncs(path, *source).outcome("f"), "published")
                self.assertEqual(self.syncs(path, *source).outcome("f"), "unchanged")
                self.assertEqual(self.published(), {b"f": b"BBBB"})

    def test_two_contents_of_one_second_by_a_stat_that_cuts_fractions(self):
        path = self.path('$real "$@" | /usr/bin/sed "s/\\.[0-9]*/.000000000/g"')
        for transport in ("local", "exec"):
            for attempt in range(20):
                if self.one_second(path, transport, attempt):
                    break
            else:
                self.fail("this machine is too busy to write, sync and write in one second")

    def one_second(self, path, transport, attempt):
        """False if the clock went on between the two contents."""
        old, new = (b"%s%04d" % (who, attempt) for who in (b"A", b"B"))
        time.sleep(1 - time.time() % 1)
        first = os.stat(self.make("f", old))
        self.assert_mirrored(self.syncs(path, transport), {b"f": old})
        second = os.stat(self.make("f", new))
        if first.st_ctime_ns // 10**9 != second.st_ctime_ns // 10**9:
            return False
        self.assert_mirrored(self.syncs(path, transport), {b"f": new})
        time.sleep(3 - time.time() % 1)
        for outcome in ("published", "unchanged"):
            run = self.syncs(path, transport)
            self.assert_mirrored(run, {b"f": new})
            self.assertEqual(run.outcome("f"), outcome)
        return True


if __name__ == "__main__":
    unittest.main()
