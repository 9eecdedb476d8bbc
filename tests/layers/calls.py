#!/usr/bin/env python3
"""What a folder alone may call, and how memory is asked for elsewhere."""
import re

import source

# A function (as a pattern of its whole name) and the folders or files that may call it.
ALONE = [
    (r"realloc|reallocarray|clock_gettime|crypto_\w+|randombytes\w*|sodium_\w+", {"base"}),
    (r"json_(?!write\b|parse\b)\w+", {"base"}),
    (r"inflate\w*", {"listing"}),
    (r"utf8proc_\w+", {"preflight"}),
    (r"curl_\w+|posix_spawn\w*|v?fork|exec[lv]p?e?|waitpid|waitid|kill", {"transport"}),
    (r"fopen|fdopen|freopen|mkstemp\w*|tmpfile", set()),
    (r"openat2?|open_by_handle_at|opendir|fdopendir", {"fsutil", "transport/local.c"}),
    (r"mkdirat|renameat2?|rename|unlink|unlinkat|rmdir|link|linkat|symlink|symlinkat|mkdir",
     {"fsutil"}),
    (r"fsync|fdatasync|syncfs|sync_file_range|ftruncate|fchmod|futimens|utimensat|flock", {"fsutil"}),
    (r"pthread_(?!sigmask\b)\w+", {"sync"}),
    (r"printf|fprintf|puts|fputs|putchar|fputc|perror|getopt_long|signal|sigaction|exit", {"cli"}),
]

MEMORY = re.compile(r"(?<![\w.>])(malloc|calloc|asprintf|vasprintf|aligned_alloc)\s*\(")
ONE_STRUCT = re.compile(r"(?<![\w.>])calloc\(1, sizeof\(\*\w+\)\)")
# clang-format leaves the name of a function that is defined at the start of a line or behind its type.
DEFINED = re.compile(r"^(?!\s|#|\}).*?\b(\w+)\(")


def alone_patterns():
    """Each rule, ready to be searched for: called as a function, not as a member."""
    for names, owners in ALONE:
        yield re.compile(rf"(?<![\w.>])({names})\s*\("), owners


def memory_problem(folder, function, code):
    """Outside base, memory comes from a buffer, an arena, or one calloc of one struct where its life
    begins."""
    match = MEMORY.search(code)
    if not match or folder in ("base", "cli"):
        return None
    if ONE_STRUCT.search(code) and function.endswith(("_new", "_open")):
        return None
    return f"{match.group(1)} in {function}: only base/ allocates, besides one struct in its _new or _open"


def check(path, patterns, problems):
    """Looks at every line of a file."""
    folder = path.split("/")[0]
    function = ""
    for number, code in source.code_lines(path):
        defined = DEFINED.match(code)
        if defined:
            function = defined.group(1)
        for pattern, owners in patterns:
            match = pattern.search(code)
            if match and not {folder, path} & owners:
                problems.append(f"{path}:{number}: {match.group(1)} belongs to "
                                + (", ".join(sorted(owners)) or "nobody"))
        reason = memory_problem(folder, function, code)
        if reason:
            problems.append(f"{path}:{number}: {reason}")


def main():
    """Checks every file of the product."""
    problems = []
    seen = 0
    patterns = list(alone_patterns())
    for path in source.c_files(source.FOLDERS):
        seen += 1
        check(path, patterns, problems)
    source.finish("calls", seen, problems)


if __name__ == "__main__":
    main()
