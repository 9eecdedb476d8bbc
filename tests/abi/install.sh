#!/bin/sh
# install.sh CMAKE CC BUILD-DIR FLAGS: installs into a staging directory, builds consumer.c there by
# pkg-config, against the shared and the static library, and runs both.
set -eu

cmake=$1 cc=$2 build=$3 flags=$4
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

DESTDIR='' "$cmake" --install "$build" --prefix "$stage" >"$stage/log" || {
    cat "$stage/log"
    exit 1
}
pc=$(find "$stage" -name sbxsync.pc)
libs=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

# shellcheck disable=SC2046,SC2086 # lists of flags
{
    $cc $flags -Wall -Wextra -Werror -o "$stage/shared" "$here/consumer.c" \
        $(pkg-config --cflags --libs sbxsync)
    $cc $flags -Wall -Wextra -Werror -o "$stage/static" "$here/consumer.c" \
        $(pkg-config --cflags sbxsync) "$libs/libsbxsync.a" \
        $(pkg-config --static --libs sbxsync | sed 's/-lsbxsync//')
}
readelf -d "$stage/shared" | grep -q 'NEEDED.*libsbxsync\.so\.[0-9]'
LD_LIBRARY_PATH=$libs "$stage/shared"
"$stage/static"
for file in bin/sbx-sync share/man/man1/sbx-sync.1 include/sbx/sync.h include/sbx/version.h; do
    [ -f "$stage/$file" ] || {
        printf 'not installed: %s\n' "$file"
        exit 1
    }
done
"$stage/bin/sbx-sync" --version
