#!/bin/sh
# Assembles the directory that a sandbox of a native function binds at /opt/hearth/native.
#   package.sh DEST     for example: package.sh data/runtime/native
# There is only a note in it: the function brings all that it needs.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: package.sh DEST" >&2
    exit 2
fi
mkdir -p "$1"
install -m 0644 "$(dirname "$0")/README.md" "$1/README.md"
# Read by the unprivileged users of the sandboxes.
chmod 0755 "$1"
