#!/usr/bin/env python3
"""Functions that nobody calls, and words that nobody writes."""
import os
import re

import source

# Nowhere, tests included, without a reason on the line.
NEVER = re.compile(r"(?<![\w.>])(strcpy|stpcpy|strcat|v?sprintf|strtok(?:_r)?|gets|alloca|system|popen"
                   r"|strto(?:l|ll|ul|ull|d|f|ld|imax|umax)|ato(?:i|l|ll|f)|v?[fs]?scanf)\s*\(")
# Not in the product: a descriptor without O_CLOEXEC, a path that is resolved at once.
NOT_IN_PRODUCT = re.compile(r"(?<![\w.>])(dup|dup2|open|creat|chdir|umask|setlocale)\s*\(")
MAY_OPEN = ("fsutil/", "transport/local.c", "transport/source.c")

WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
VLA_BY_HAND = re.compile(r"__builtin_alloca")

SKIPPED_DIRS = re.compile(r"^(\..+|build.*|fixtures|__pycache__)$")
TEXTS = (".c", ".h", ".py", ".sh", ".md", ".txt", ".cmake", ".in", ".json", ".1")
ITSELF = "tests/layers/banned.py"


def calls(path, problems):
    """Banned functions in a C file."""
    product = path.split("/")[0] in source.FOLDERS
    for number, code in source.code_lines(path):
        match = NEVER.search(code) or VLA_BY_HAND.search(code)
        if not match and product and not path.startswith(MAY_OPEN):
            match = NOT_IN_PRODUCT.search(code)
        if match:
            problems.append(f"{path}:{number}: {match.group(0).rstrip('( ')} is banned")


def words(problems):
    """Banned words in any text of the project. Returns how many files were seen."""
    seen = 0
    for at, dirs, names in os.walk(source.root()):
        dirs[:] = sorted(name for name in dirs if not SKIPPED_DIRS.match(name))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(at, name), source.root())
            if not name.endswith(TEXTS) or path == ITSELF:
                continue
            seen += 1
            for number, line in enumerate(source.text(path).split("\n"), 1):
                match = WORDS.search(line)
                if match:
                    problems.append(f"{path}:{number}: {match.group(1)} is for an issue")
    return seen


def main():
    """Checks calls in C, and words everywhere."""
    problems = []
    for path in source.c_files(source.FOLDERS + ("tests", "include")):
        calls(path, problems)
    source.finish("banned", words(problems), problems)


if __name__ == "__main__":
    main()
