"""A COMMAND that runs a real shell and tampers with what it answers.

    python3 fake_command.py CODE [SHELL [ARG]...]

The shell, `sh` unless told otherwise, reads our standard input itself. What it prints comes in
answers, one for each script, which end in the exit line of that script. CODE is Python that runs
for each answer before it is passed on, with these names:

    n          the number of the answer: 1 is the listing
    answer     it, cut into its parts; what CODE leaves in them is said
    say(b)     says something at once; say(b, 1) in pieces of one byte
    stop(code) ends, and says nothing more
"""

import base64
import gzip
import itertools
import os
import re
import subprocess
import sys
import time

EXIT_LINE = re.compile(rb"\n[0-9a-f]{32} exit [0-9]+\n")
FRAME = re.compile(
    rb"(.*?\n)([0-9a-f]{32} begin [^\n]*)\n(?:(.*?\n)([0-9a-f]{32} end [^\n]*)\n)?(.*)", re.DOTALL
)


class Answer:
    """What one script printed. A listing is `noise begin lines end after`, others are `after`.
    Each line is without its newline; `exit` is the exit line with the newlines around it."""

    def __init__(self, printed, exit_line):
        self.noise, self.begin, self.lines, self.end, self.after = b"", None, [], None, printed
        self.exit = exit_line
        self.newline = b"\n"
        frame = FRAME.fullmatch(printed)
        if frame:
            self.noise, self.begin, lines, self.end, self.after = frame.groups()
            self.lines = (lines or b"").split(b"\n")[:-1]

    @property
    def nonce(self):
        return self.begin.split()[0]

    def tools(self):
        """(walk, packer, coding)"""
        return re.search(rb"tools=(\S+)", self.begin).group(1).decode().split(",")

    def set_tools(self, walk=None, pack=None, coding=None):
        """Says that other tools are there, and codes the records by them."""
        payload = self.payload()
        wanted = [new or old for new, old in zip((walk, pack, coding), self.tools())]
        self.begin = re.sub(rb"tools=\S+", b"tools=" + ",".join(wanted).encode(), self.begin)
        self.set_payload(payload)

    def packed(self):
        text = b"".join(self.lines)
        if self.tools()[2] == "hex":
            return bytes.fromhex(text.decode())
        return base64.b64decode(text)

    def set_packed(self, data):
        """The encoded lines for what may be packed, or not."""
        if self.tools()[2] == "hex":
            text = data.hex().encode()
        else:
            text = base64.b64encode(data)
        self.lines = [text[i : i + 16384] for i in range(0, len(text), 16384)]

    def payload(self):
        return gzip.decompress(self.packed()) if self.tools()[1] == "gzip" else self.packed()

    def set_payload(self, data):
        self.set_packed(gzip.compress(data, 1) if self.tools()[1] == "gzip" else data)

    def records(self):
        """Without their NUL; the last is "end <status>"."""
        return self.payload().split(b"\0")[:-1]

    def set_records(self, records):
        self.set_payload(b"".join(record + b"\0" for record in records))

    def add(self, *records):
        """More records, before the last one."""
        old = self.records()
        self.set_records(old[:-1] + list(records) + old[-1:])

    def list_names(self, names):
        """Records for names that are bytes, of 3 bytes each."""
        now = re.search(rb"now=(\d+)", self.begin).group(1)
        self.add(*(b"3 %s.5 %s.5 %s" % (now, now, name) for name in names))

    def text(self):
        if self.begin is None:
            return self.after
        parts = [self.begin, *self.lines] + ([] if self.end is None else [self.end])
        return self.noise + b"".join(part + self.newline for part in parts) + self.after

    def whole(self):
        return self.text() + self.exit


def say(data, piece=1 << 20):
    try:
        while data:
            data = data[os.write(1, data[:piece]) :]
    except BrokenPipeError:
        stop()


def stop(code=0):
    os._exit(code)


def forever():
    """Counts, for ever."""
    return itertools.count()


def serve(code, shell):
    child = subprocess.Popen(shell, stdout=subprocess.PIPE)
    seen = b""
    n = 0
    while True:
        part = os.read(child.stdout.fileno(), 1 << 20)
        seen += part
        match = EXIT_LINE.search(seen)
        while match:
            n += 1
            answer = Answer(seen[: match.start()], match.group())
            seen = seen[match.end() :]
            tampered(code, n, answer)
            match = EXIT_LINE.search(seen)
        if not part:
            say(seen)
            return child.wait()


def tampered(code, n, answer):
    names = dict(globals(), n=n, answer=answer, time=time)
    exec(code, names)
    say(names["answer"].whole())


if __name__ == "__main__":
    sys.exit(serve(compile(sys.argv[1], "CODE", "exec"), sys.argv[2:] or ["sh"]))
