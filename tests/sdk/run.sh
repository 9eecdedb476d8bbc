#!/bin/sh
# The OpenSandbox SDK for JavaScript, fetched into a directory of its own, against the look-alike:
# tests/sdk/run.sh LOOKALIKE DIR
set -eu

version=0.1.11
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
lookalike=$(realpath -- "$1")
mkdir -p "$2"
cd "$2"
# What was fetched before is used again; nothing of it belongs into the checkout.
if ! grep -qxF "$version" version 2>/dev/null; then
    rm -rf node_modules version
    printf '{"private":true}\n' >package.json
    npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error \
        "@alibaba-group/opensandbox@$version"
    printf '%s\n' "$version" >version
fi
node "$here/opensandbox.mjs" "$lookalike" "$PWD"
