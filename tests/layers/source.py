"""Reading the project's C files for the checks beside this file."""
import os
import re
import sys

FOLDERS = ("base", "listing", "preflight", "transport", "fsutil", "state", "sync", "cli")

# What has to go before words are looked for: comments, texts and characters.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)

# On a line of its own right, with a reason: what is banned elsewhere is wanted here.
EXCEPTION = re.compile(r"/\* (?:banned|layer)-ok: (?!\*/)\S")


def root():
    """The checkout: the first argument, or where this file is."""
    return sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")


def c_files(folders):
    """The .c and .h files of some folders, as paths relative to the root."""
    for folder in folders:
        for at, dirs, names in os.walk(os.path.join(root(), folder)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(at, name), root())


def text(path):
    """The text of a file."""
    with open(os.path.join(root(), path), encoding="utf-8") as file:
        return file.read()


def blank(match):
    """As many lines as before, and nothing on them."""
    return "\n" * match.group().count("\n") or " "


def code_lines(path):
    """(number, code) of each line that carries no exception; comments and texts are blanked."""
    whole = text(path)
    for number, (code, line) in enumerate(
            zip(NO_CODE.sub(blank, whole).split("\n"), whole.split("\n")), 1):
        if not EXCEPTION.search(line):
            yield number, code


def finish(what, seen, problems):
    """Prints the problems and ends the check. Having seen no file at all is one, too."""
    for problem in problems:
        print(problem)
    if not seen:
        problems = [f"{what}: no file was seen"]
        print(problems[0])
    print(f"{what}: {seen} files, {len(problems)} problems")
    sys.exit(1 if problems else 0)
