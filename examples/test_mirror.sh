#!/bin/sh
# The example mirrors a directory through a shell, says what it left out, and fails as it should.
set -eu

mirror=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

fail() {
    printf '%s\n' "test_mirror: $*" >&2
    exit 1
}

status_of() {
    status=0
    "$@" >report.json 2>errors || status=$?
    printf '%s' "$status"
}

mkdir -p results/sub
printf 'one\n' >results/a.txt
printf 'two\n' >results/sub/b.txt

[ "$(status_of "$mirror" "exec:$tmp/results" out sh)" = 0 ] || fail "a whole pass: $(cat errors)"
cmp results/sub/b.txt out/sub/b.txt
grep -q '"published":2' report.json || fail 'the report counts other files'

printf 'x' >results/CON
[ "$(status_of "$mirror" results out)" = 1 ] || fail 'a refused name is no partial pass'
grep -qx 'refused (reserved-name): CON' errors || fail 'the refused name is not told'
[ ! -e out/CON ] || fail 'the refused name was published'

[ "$(status_of "$mirror" "exec:$tmp/results" out false)" = 2 ] || fail 'a lost source is no failure'
grep -q '^mirror: unreachable: ' errors || fail 'the lost source is not told'
