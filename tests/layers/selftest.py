#!/usr/bin/env python3
"""The checks beside this file find what they are for: each is run on a tree with one thing wrong."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# check, file, text, what it must say (None: nothing is wrong)
CASES = [
    ("includes", "base/a.c", '#include "listing/list.h"\n', "base/a.c:1: listing/list.h"),
    ("includes", "listing/a.c", '#include "base/buf.h"\n#include <string.h>\n', None),
    ("includes", "listing/a.c", "#include <fcntl.h>\n", "only computes"),
    ("includes", "transport/a.c", '#include "preflight/path.h"\n', "may not use it"),
    ("includes", "cli/a.c", '#include "base/buf.h"\n', "may not use it"),
    ("includes", "cli/a.c", '#include "cli/opts.h"\n#include "sbx/sync.h"\n', None),
    ("includes", "sync/a.c", "  #  include <jansson.h>\n", "belongs to base"),
    ("calls", "sync/a.c", "    p = realloc(p, 2);\n", "sync/a.c:1: realloc belongs to base"),
    ("calls", "sync/a.c", "    /* realloc(p, 2) */ x = \"realloc(\"; y.realloc(1);\n", None),
    ("calls", "sync/a.c", "\n    return openat(fd, name, 0);\n", "sync/a.c:2: openat"),
    ("calls", "transport/local.c", "    fd = openat(fd, name, 0);\n", None),
    ("calls", "state/a.c", "    renameat2(a, b, c, d, 0);\n", "belongs to fsutil"),
    ("calls", "sync/a.c", "    printf(\"x\");\n", "belongs to cli"),
    ("calls", "sync/a.c", "    f = fopen(path, mode);\n", "belongs to nobody"),
    ("calls", "fsutil/a.c", "int sbx_fs_a_new(void)\n{\n    a = calloc(1, sizeof(*a));\n}\n", None),
    ("calls", "fsutil/a.c", "int sbx_fs_a_new(void)\n{\n    a = calloc(n, sizeof(*a));\n}\n",
     "calloc in sbx_fs_a_new"),
    ("calls", "fsutil/a.c", "static int a(void)\n{\n    a = calloc(1, sizeof(*a));\n}\n",
     "calloc in a:"),
    ("calls", "sync/a.c", "    kill(pid, 9); /* banned-ok: a reason */\n", None),
    ("calls", "sync/a.c", "    kill(pid, 9); /* banned-ok: */\n", "belongs to transport"),
    ("banned", "base/a.c", "    sprintf(s, f);\n", "sprintf is banned"),
    ("banned", "base/a.c", "    snprintf(s, n, f);\n", None),
    ("banned", "tests/unit/a.c", "    n = strtoul(s, &e, 10);\n", "strtoul is banned"),
    ("banned", "sync/a.c", "    fd = dup(1);\n", "dup is banned"),
    ("banned", "sync/a.c", "    fd = open(path, 0);\n", "open is banned"),
    ("banned", "fsutil/a.c", "    fd = open(path, 0);\n", None),
    ("banned", "docs/a.md", "TO" "DO: later\n", "is for an issue"),
    ("size", "base/a.c", "int f;\n" * 601, "601 lines"),
    ("size", "base/a.c", "int f(void)\n{\n" + "    x();\n" * 77 + "}\n", None),
    ("size", "base/a.c", "int f(void)\n{\n" + "    x();\n" * 78 + "}\n", "81 lines"),
    ("size", "base/a.c", "int f(void)\n{\n" + "    if (a) x();\n" * 14 + "}\n", None),
    ("size", "base/a.c", "int f(void)\n{\n" + "    if (a) x();\n" * 15 + "}\n", "complexity 16"),
    ("size", "empty/a.c", "", "no file was seen"),
]


def run(check, path, text):
    """Runs a check on a tree of one file (and a harmless one). Returns its status and output."""
    with tempfile.TemporaryDirectory() as root:
        for name, content in (("base/fine.c", "int fine(void)\n{\n    return 0;\n}\n"), (path, text)):
            if path.startswith("empty/"):
                continue
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(content)
        ran = subprocess.run([sys.executable, "-B", os.path.join(HERE, check + ".py"), root],
                             capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr


def main():
    """Runs all cases."""
    failed = 0
    for check, path, text, want in CASES:
        status, output = run(check, path, text)
        good = status == 0 if want is None else status == 1 and want in output
        if not good:
            failed += 1
            print(f"{check} on {path} with {text[:60]!r}: wanted {want!r}, got {status}:\n{output}")
    print(f"selftest: {len(CASES)} cases, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
