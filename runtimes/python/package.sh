#!/bin/sh
# Assembles the directory that a sandbox binds at /opt/hearth/python.
#   package.sh PROFILE_DIR DEST     for example: package.sh target/release data/runtime/python
# Sandboxes that run keep the files they were started with.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: package.sh PROFILE_DIR DEST" >&2
    exit 2
fi
profile_dir=$1
dest=$2
source_dir=$(dirname "$0")
# Functions run on the distribution's own interpreter, and byte code is made by the one that will read it.
python=${HEARTH_PYTHON:-/usr/bin/python3}

extension=$profile_dir/libhearth_runtime.so
if [ ! -f "$extension" ]; then
    echo "package.sh: $extension is missing: build the package hearth-python first" >&2
    exit 1
fi

mkdir -p "$(dirname "$dest")"
stage=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$stage"' EXIT

mkdir "$stage/hearth_worker"
cp "$source_dir/bootstrap.py" "$source_dir/bytecode.py" "$source_dir/snapshot_restore_py.py" "$stage/"
cp "$source_dir"/hearth_worker/*.py "$stage/hearth_worker/"
cp "$extension" "$stage/hearth_runtime.abi3.so"
# Unchecked: the directory is created as a whole, so byte code never needs comparing with its source.
"$python" -I -m compileall -q --invalidation-mode unchecked-hash "$stage"
# Read by the unprivileged users of the sandboxes.
chmod -R u=rwX,go=rX "$stage"

rm -rf "$dest.old"
if [ -e "$dest" ]; then
    mv "$dest" "$dest.old"
fi
mv "$stage" "$dest"
rm -rf "$dest.old"
