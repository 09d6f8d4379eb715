#!/usr/bin/env bash
# Lays what `make build` has built out under a folder: the server, its init and the runtimes, as the server expects them.
#
#   scripts/install.sh [FOLDER]     (default /opt/hearth)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly FOLDER=${1:-/opt/hearth}
readonly BUILT=$TARGET/release

# All that could stop it is looked at before anything is changed.
[[ $FOLDER == /* ]] || die "PREFIX is '$FOLDER', must be an absolute path"
[[ -x $BUILT/hearth && -d $BUILT/runtimes/node ]] || die "nothing to install: run 'make build' first, without sudo"
[[ ! -e $FOLDER || -d $FOLDER ]] || die "$FOLDER is not a directory: choose another with PREFIX=…"
there=$FOLDER
while [[ ! -e $there ]]; do there=$(dirname "$there"); done
# `runtimes` is replaced as a whole, and so must be the caller's as well.
for directory in "$there" "$FOLDER/runtimes" "$FOLDER/criu"; do
  [[ ! -e $directory || -w $directory && -x $directory ]] ||
    die "$directory cannot be written by $(id -un): run 'sudo make install', or choose another folder with PREFIX=…"
done

# A copy of everything first, then it takes its place: a full disk or a ctrl-C leaves what was installed as it is.
readonly STAGE=$FOLDER/.installing
mkdir -p "$FOLDER"
chmod 0755 "$FOLDER"
rm -rf "$STAGE"
trap 'rm -rf "$STAGE"' EXIT
mkdir -p "$STAGE/old"
install -m 0755 "$BUILT/hearth" "$BUILT/hearth-init" "$STAGE/"
cp -R "$BUILT/runtimes" "$STAGE/runtimes"
# Functions read their runtime as users of their own.
chmod -R u=rwX,go=rX "$STAGE/runtimes"
parts=(runtimes hearth-init hearth)
# A private copy of CRIU, where set-up made one; the system's own is found by itself.
if [[ -x $TOOLS/criu/usr/sbin/criu ]]; then
  cp -R "$TOOLS/criu" "$STAGE/criu"
  parts+=(criu)
fi
for part in "${parts[@]}"; do
  [[ ! -e $FOLDER/$part ]] || mv "$FOLDER/$part" "$STAGE/old/"
  mv "$STAGE/$part" "$FOLDER/"
done
say "installed under $FOLDER: $(du -sh "$FOLDER" --exclude=.installing | cut -f 1), the server $(du -h "$FOLDER/hearth" | cut -f 1)"
