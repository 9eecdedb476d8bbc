"""A person at a terminal: COMMAND may ask for a passphrase there, and Ctrl-C reaches it too."""

import os
import pty
import select
import signal
import time
import unittest

import harness

# Asks as ssh does: on the terminal, whatever its standard streams are.
ASKS = (
    "printf 'passphrase: ' >/dev/tty; read -r word </dev/tty; "
    '[ "$word" = secret ] || exit 9; exec sh'
)


class Terminal(harness.Case):
    def at_a_terminal(self, *arguments):
        """Starts the command in a session whose controlling terminal is ours to type at."""
        pid, master = pty.fork()
        if pid == 0:
            os.execv(harness.COMMAND, [harness.COMMAND, *arguments])
        self.addCleanup(os.close, master)
        return pid, master

    def read_until(self, master, words):
        seen = b""
        end = time.monotonic() + 60
        while words not in seen:
            self.assertLess(time.monotonic(), end, f"no {words} in {seen}")
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 4096)
        return seen

    def status(self, pid, master):
        """Of the command, whose output is read so that it does not stop at a full terminal."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if select.select([master], [], [], 0.1)[0]:
                try:
                    os.read(master, 4096)
                except OSError:  # nobody has it open any more
                    time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.fail("the command did not end")

    def ask(self, word):
        pid, master = self.at_a_terminal("exec:" + self.src, self.dst, "--", "sh", "-c", ASKS)
        self.read_until(master, b"passphrase: ")
        os.write(master, word + b"\n")
        return self.status(pid, master)

    def test_a_passphrase_that_command_asks_for_at_the_terminal_reaches_it(self):
        self.make("a", b"1")
        self.assertEqual(self.ask(b"secret"), 0)
        self.assertEqual(self.published(), {b"a": b"1"})

    def test_a_wrong_passphrase_is_a_source_that_failed(self):
        self.make("a", b"1")
        self.assertEqual(self.ask(b"guess"), 3)
        self.assertEqual(self.published(), {})

    def test_an_interrupt_at_the_terminal_ends_both(self):
        self.make("a", b"1")
        pid, master = self.at_a_terminal("exec:" + self.src, self.dst, "--", "sh", "-c", ASKS)
        self.read_until(master, b"passphrase: ")
        os.write(master, b"\x03")
        self.assertEqual(self.status(pid, master), 128 + signal.SIGINT)
        self.assertEqual(self.published(), {})


if __name__ == "__main__":
    unittest.main()
