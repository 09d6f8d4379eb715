#!/bin/sh
# Assembles the directory that a sandbox binds at /opt/hearth/node.
#   package.sh PROFILE_DIR DEST     for example: package.sh target/release data/runtime/node
# Sandboxes that run keep the files they were started with.
#
# HEARTH_NODE names the interpreter that functions run on. One that is not below /usr, which sandboxes see, is copied to
# DEST/bin/node.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: package.sh PROFILE_DIR DEST" >&2
    exit 2
fi
profile_dir=$1
dest=$2
source_dir=$(dirname "$0")
node=${HEARTH_NODE:-/usr/bin/node}

addon=$profile_dir/libhearth_node.so
if [ ! -f "$addon" ]; then
    echo "package.sh: $addon is missing: build the package hearth-node first" >&2
    exit 1
fi

mkdir -p "$(dirname "$dest")"
stage=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$stage"' EXIT

cp "$source_dir/bootstrap.js" "$source_dir/package.json" "$stage/"
mkdir "$stage/worker"
cp "$source_dir"/worker/*.js "$stage/worker/"
mkdir "$stage/node_modules"
cp -R "$source_dir/snapshot_restore_node" "$stage/node_modules/"
cp "$addon" "$stage/hearth_node.node"
case $node in
    /usr/*) ;;
    *)
        mkdir "$stage/bin"
        cp "$node" "$stage/bin/node"
        ;;
esac
# Read by the unprivileged users of the sandboxes.
chmod -R u=rwX,go=rX "$stage"

rm -rf "$dest.old"
if [ -e "$dest" ]; then
    mv "$dest" "$dest.old"
fi
mv "$stage" "$dest"
rm -rf "$dest.old"
