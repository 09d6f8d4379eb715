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

# The second one is the lab's: the workloads of its overhead study.
for program in hearth-provided hearth-workloads; do
    if [ ! -f "$profile_dir/$program" ]; then
        echo "package.sh: $profile_dir/$program is missing: build the package hearth-provided first" >&2
        exit 1
    fi
done

mkdir -p "$(dirname "$dest")"
stage=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$stage"' EXIT

cp "$profile_dir/hearth-provided" "$profile_dir/hearth-workloads" "$stage/"
cp "$(dirname "$0")/README.md" "$stage/README.md"
# Read by the unprivileged users of the sandboxes.
chmod -R u=rwX,go=rX "$stage"

rm -rf "$dest.old"
if [ -e "$dest" ]; then
    mv "$dest" "$dest.old"
fi
mv "$stage" "$dest"
rm -rf "$dest.old"
