#!/usr/bin/env python3
"""Lengths of files and functions, and their complexity as pmccabe counts it."""
import re
import subprocess

import source

FILE_LINES = 600
FUNCTION_LINES = 80
COMPLEXITY = 15

# complexity, the same counting cases, statements, first line, lines, file(line): name
PMCCABE = re.compile(r"(\d+)\t\d+\t\d+\t\d+\t(\d+)\t([^(]+)\((\d+)\): (.+)")


def functions(paths, problems):
    """Asks pmccabe about all files at once."""
    ran = subprocess.run(["pmccabe"] + paths, cwd=source.root(), capture_output=True, text=True,
                         check=True)
    seen = 0
    for line in ran.stdout.splitlines():
        match = PMCCABE.fullmatch(line)
        if not match:
            problems.append(f"pmccabe: {line}")
            continue
        seen += 1
        complexity, lines = int(match.group(1)), int(match.group(2))
        where = f"{match.group(3)}:{match.group(4)}: {match.group(5)}"
        if complexity > COMPLEXITY:
            problems.append(f"{where}: complexity {complexity}, at most {COMPLEXITY}")
        if lines > FUNCTION_LINES:
            problems.append(f"{where}: {lines} lines, at most {FUNCTION_LINES}")
    if not seen:
        problems.append("pmccabe: no function was seen")


def main():
    """Checks product and tests alike."""
    problems = []
    paths = list(source.c_files(source.FOLDERS + ("tests", "include")))
    for path in paths:
        lines = source.text(path).count("\n")
        if lines > FILE_LINES:
            problems.append(f"{path}: {lines} lines, at most {FILE_LINES}")
    functions([path for path in paths if path.endswith(".c")], problems)
    source.finish("size", len(paths), problems)


if __name__ == "__main__":
    main()
