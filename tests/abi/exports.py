#!/usr/bin/env python3
"""exports.py LIBRARY ROOT: the library exports exactly cmake/exports.txt, which lists exactly what the
public headers mark with SBX_API."""
import glob
import os
import re
import subprocess
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARED = re.compile(r"SBX_API\b[^;{]*?\b(sbx_\w+)\s*\(", re.DOTALL)


def exported(library):
    """Names that the dynamic linker sees. A sanitizer adds names of its own, which begin with _."""
    ran = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True)
    names = (line.split()[-1].split("@")[0] for line in ran.stdout.splitlines())
    return {name for name in names if not name.startswith("_")}


def declared(root):
    """Names that the public headers promise."""
    names = set()
    for path in glob.glob(os.path.join(root, "include", "sbx", "*.h")):
        with open(path, encoding="utf-8") as file:
            names.update(DECLARED.findall(COMMENT.sub(" ", file.read())))
    return names


def compare(what, have, want):
    """Prints the differences. Returns how many there are."""
    for name in sorted(have - want):
        print(f"{what}: {name} is not in cmake/exports.txt")
    for name in sorted(want - have):
        print(f"{what}: {name} is missing")
    return len(have ^ want)


def main():
    """Compares library, headers and list."""
    library, root = sys.argv[1:3]
    with open(os.path.join(root, "cmake", "exports.txt"), encoding="utf-8") as file:
        listed = file.read().split()
    wrong = compare("library", exported(library), set(listed))
    wrong += compare("headers", declared(root), set(listed))
    if listed != sorted(set(listed)):
        print("cmake/exports.txt: not sorted, or a name twice")
        wrong += 1
    print(f"exports: {len(listed)} names, {wrong} problems")
    sys.exit(1 if wrong or not listed else 0)


if __name__ == "__main__":
    main()
