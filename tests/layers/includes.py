#!/usr/bin/env python3
"""Each folder includes only what stands below it."""
import re

import source

# Headers of ours, by folder; <sbx/...> is open to all.
MAY_INCLUDE = {
    "base": {"base"},
    "listing": {"base", "listing"},
    "preflight": {"base", "listing", "preflight"},
    "transport": {"base", "transport"},
    "fsutil": {"base", "preflight", "fsutil"},
    "state": {"base", "preflight", "fsutil", "state"},
    "sync": {"base", "listing", "preflight", "transport", "fsutil", "state", "sync"},
    "cli": {"cli"},
}

# Headers of libraries, and where they may be seen.
LIBRARIES = {
    "sodium.h": {"base"},
    "jansson.h": {"base"},
    "zlib.h": {"listing"},
    "utf8proc.h": {"preflight"},
    "spawn.h": {"transport"},
    "pthread.h": {"sync"},
    "getopt.h": {"cli"},
}

# Folders that only compute have no use for these.
PURE = {"listing", "preflight"}
ACTING = re.compile(r"unistd\.h|fcntl\.h|dirent\.h|poll\.h|signal\.h|time\.h|sys/(?!types)")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def wrong(path, bracket, header):
    """Why path may not include the header, or None."""
    folder = path.split("/")[0]
    if header.startswith("sbx/"):
        return None
    if bracket == '"':
        below = MAY_INCLUDE[folder]
        return None if header.split("/")[0] in below else f"{folder}/ may not use it"
    if header in LIBRARIES and not {folder, path} & LIBRARIES[header]:
        return "that library belongs to " + ", ".join(sorted(LIBRARIES[header]))
    if folder in PURE and ACTING.match(header):
        return f"{folder}/ only computes"
    return None


def main():
    """Checks every include line."""
    problems = []
    seen = 0
    for path in source.c_files(source.FOLDERS):
        seen += 1
        lines = source.text(path).split("\n")
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match or source.EXCEPTION.search(line):
                continue
            reason = wrong(path, *match.groups())
            if reason:
                problems.append(f"{path}:{number}: {match.group(2)}: {reason}")
    source.finish("includes", seen, problems)


if __name__ == "__main__":
    main()
