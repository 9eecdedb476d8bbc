#!/bin/sh
# headers.sh CC CXX SOURCE-DIR BUILD-DIR: each header compiles alone; the public ones as strict C11 and
# as C++11, and without what is internal in sight.
set -eu

cc=$1 cxx=$2 source=$3 build=$4
seen=0
failed=0

try() {
    seen=$((seen + 1))
    printf '#include "%s"\nextern int something;\n' "$header" | "$@" -Wall -Wextra -Werror -fsyntax-only - || {
        printf '%s: not with %s\n' "$header" "$*"
        failed=$((failed + 1))
    }
}

for path in "$source"/include/sbx/*.h "$build"/include/sbx/*.h; do
    header=sbx/${path##*/}
    set -- "-I$source/include" "-I$build/include"
    try "$cc" -std=c11 -pedantic -Wstrict-prototypes -x c "$@"
    try "$cxx" -std=c++11 -pedantic -x c++ "$@"
done
for path in "$source"/base/*.h "$source"/listing/*.h "$source"/preflight/*.h "$source"/transport/*.h \
    "$source"/fsutil/*.h "$source"/state/*.h "$source"/sync/*.h "$source"/cli/*.h; do
    header=${path#"$source/"}
    try "$cc" -std=gnu11 -D_GNU_SOURCE -x c "-I$source" "-I$source/include" "-I$build/include"
done
printf 'headers: %d compiled, %d failed\n' "$seen" "$failed"
[ "$seen" -gt 20 ] && [ "$failed" -eq 0 ]
