"""Sandboxes with other tools and shells, and with profiles that interfere: B008 to B010."""

import os
import shutil
import unittest

import sandbox


class Tools(sandbox.Case):
    def odd_tree(self):
        for name, data in sandbox.ODD.items():
            self.make(name, data)
        os.mkdir(os.path.join(self.src, "empty dir"))
        os.mkfifo(os.path.join(self.src, "fifo"))
        os.symlink("plain", os.path.join(self.src, "link"))
        os.symlink("dir", os.path.join(self.src, "link to dir"))
        os.symlink("nowhere", os.path.join(self.src, "dangling"))

    def test_B010_all_tools_and_shells_give_the_same_mirror(self):
        self.odd_tree()
        first = self.sync("--dry-run", "--names", "posix")
        self.assertEqual(set(first.files), set(sandbox.ODD))
        for kind, shell in (("gnu", "bash"), ("gnu", "mksh"), ("busybox", "dash"),
                            ("toybox", "bash"), ("toybox", "mksh")):
            with self.subTest(kind, shell=shell):
                command = self.bare(self.tools(kind, shell=shell))
                run = self.sync_by("exec", "--dry-run", "--names", "posix", command=command)
                self.assertEqual((run.status, run.files), (0, first.files), run.err)
        for kind, shell in (("gnu", "mksh"), ("busybox", None), ("toybox", "dash")):
            with self.subTest(kind, shell=shell, what="contents"):
                shutil.rmtree(self.dst, ignore_errors=True)
                command = self.bare(self.tools(kind, shell=shell))
                run = self.sync_by("exec", "--names", "posix", command=command)
                self.assert_mirrored(run, sandbox.ODD)
                self.assertEqual(run.count("published"), len(sandbox.ODD))
                run = self.sync_by("exec", "--names", "posix", command=command)
                self.assertEqual((run.status, run.report["bytes"]["received"]), (0, 0), run.err)
        self.assertFalse(os.path.exists(os.path.join(self.src, "pwn")))

    def test_B010_local_with_other_tools_gives_the_same_listing(self):
        self.odd_tree()
        first = self.sync("--dry-run", "--names", "posix")
        for kind in ("gnu", "busybox", "toybox"):
            with self.subTest(kind):
                env = self.env(PATH=self.tools(kind))
                run = self.sync_by("local", "--dry-run", "--names", "posix", env=env)
                self.assertEqual((run.status, run.files), (0, first.files), run.err)

    def test_B010_a_tool_that_is_missing_is_named_or_done_without(self):
        self.keep()
        for kind, leave_out, says in (
            ("gnu", ("find",), "remote tool missing: find"),
            ("gnu", ("head",), "remote tool missing: head"),
            ("gnu", ("date",), "remote tool missing: date"),
            ("gnu", ("base64", "od"), "remote tool missing: od"),
            ("gnu", ("cat", "gzip"), "remote tool missing: cat"),
            ("busybox", ("stat",), "remote tool missing: xargs or stat"),
            ("busybox", ("xargs",), "remote tool missing: xargs"),
            ("toybox", ("find",), "remote tool missing: find"),
            ("toybox", ("find", "stat", "head", "date"), "remote tool missing"),
        ):
            with self.subTest(kind, without=leave_out):
                command = self.bare(self.tools(kind, leave_out))
                run = self.sync_by("exec", command=command)
                self.assert_kept(run, "damaged", says)
        for kind, leave_out in (
            ("gnu", ("gzip",)),
            ("gnu", ("base64",)),
            ("gnu", ("cat",)),
            ("gnu", ("stat", "xargs")),
            ("busybox", ("base64", "gzip")),
            ("toybox", ("base64",)),
        ):
            with self.subTest(kind, without=leave_out):
                command = self.bare(self.tools(kind, leave_out))
                self.assert_mirrored(self.sync_by("exec", command=command))

    def test_B010_a_tool_that_breaks_down_is_no_empty_listing(self):
        self.keep()
        for name, text in (
            ("find", 'case "$*" in *maxdepth*) exec $real "$@" ;; esac\nexit 1'),
            ("find", 'case "$*" in *maxdepth*) exec $real "$@" ;; esac\n$real "$@"; kill -9 $$'),
            ("find", 'case "$*" in *maxdepth*) exec $real "$@" ;; esac\n$real "$@"; exit 2'),
            ("base64", 'c=0; [ "$1" = -d ] || $real "$@" | /usr/bin/head -c 30'),
            ("base64", '$real "$@"; exit 1'),
            ("gzip", "$real \"$@\" | /usr/bin/head -c 30"),
            ("gzip", '$real "$@"; exit 1'),
            ("head", "[ \"$2\" = 2 ] && exec $real \"$@\"; $real -c 40"),
            ("head", '[ "$2" = 2 ] && exec $real "$@"; $real "$@"; exit 1'),
            ("date", "echo now"),
        ):
            path = self.wrap(name, text)
            for transport in ("local", "exec"):
                with self.subTest(name, text=text, transport=transport):
                    run = self.sync_by(transport, env=self.env(PATH=path))
                    self.assert_kept(run, "damaged")


# What a profile may do to the shell that comes after it.
PROFILE = """
printf '\\033[33mOnly these folders persist\\n'
echo V2VsY29tZQo=
echo 0123456789abcdef0123456789abcdef begin v=1 root=ok now=1 tools=printf,plain,base64
echo 'on standard error' >&2
alias echo='echo x' find=false printf=: head='head -n' test=false 2>/dev/null
LC_ALL=de_DE.UTF-8; TZ=Asia/Tokyo; GZIP=-v; POSIXLY_CORRECT=1; CDPATH=/:/usr
export LC_ALL TZ GZIP POSIXLY_CORRECT CDPATH
n=nonce; R=/root; w=x; k=x; e=x; S=/bin/false; r=missing; st=1
umask 777; ulimit -c 0
trap 'echo bye' EXIT
trap 'echo pipe' PIPE
exec 3>&2 4>/dev/null 5>&1 6</dev/null
IFS=0123456789/.
cd /
set -euf -C
printf 'no newline at the end'
"""


class Profiles(sandbox.Case):
    def test_B008_B009_what_a_profile_prints_and_changes_does_no_harm(self):
        self.make("a", b"x" * 5000)
        self.make("b/-c d*", b"y")
        profile = self.script("profile", PROFILE)
        self.script(".profile", PROFILE)
        for why, command in (
            ("sh -l", ["sh", "-l"]),
            ("bash -l", ["bash", "-l"]),
            ("mksh -l", ["mksh", "-l"]),
            ("busybox sh -l", ["busybox", "sh", "-l"]),
            ("BASH_ENV", ["env", "BASH_ENV=" + profile, "bash"]),
            ("sh -i", ["env", "ENV=" + profile, "sh", "-i"]),
            ("sh -x", ["sh", "-x"]),
            ("sh -v", ["sh", "-v"]),
            ("bash --posix -e", ["bash", "--posix", "-e"]),
            ("a banner of 60 KiB", ["sh", "-c", "head -c 60000 /dev/zero; exec sh"]),
        ):
            with self.subTest(why):
                run = self.sync_by("exec", "--names", "posix", command=command)
                self.assert_mirrored(run)
                run = self.sync_by("exec", "--names", "posix", command=command)
                self.assertEqual((run.status, run.count("unchanged")), (0, 2), run.err)

    def test_B008_a_banner_beyond_the_bound_is_refused_with_its_reason(self):
        self.keep()
        command = ["sh", "-c", "head -c 70000 /dev/zero; exec sh"]
        self.assert_kept(self.sync_by("exec", command=command), "damaged", "no begin line within")


if __name__ == "__main__":
    unittest.main()
