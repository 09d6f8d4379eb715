#!/bin/sh
# Assembles the directory that a sandbox binds at /opt/hearth/provided.
#   package.sh PROFILE_DIR DEST     for example: package.sh target/release data/runtime/provided
# Sandboxes that run keep the files they were started with.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: package.sh PROFILE_DIR DEST" >&2
    exit 2
fi
profile_dir=$1
dest=$2

program=$profile_dir/hearth-provided
if [ ! -f "$program" ]; then
    echo "package.sh: $program is missing: build the package hearth-provided first" >&2
    exit 1
fi

mkdir -p "$(dirname "$dest")"
stage=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$stage"' EXIT

cp "$program" "$stage/hearth-provided"
cp "$(dirname "$0")/README.md" "$stage/README.md"
# Read by the unprivileged users of the sandboxes.
chmod -R u=rwX,go=rX "$stage"

rm -rf "$dest.old"
if [ -e "$dest" ]; then
    mv "$dest" "$dest.old"
fi
mv "$stage" "$dest"
rm -rf "$dest.old"
