#!/usr/bin/env bash
# Lays a finished release build out under a folder: the server, its init and the runtimes, as the server expects them.
#
#   scripts/install.sh [FOLDER]     (default /opt/hearth)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly FOLDER=${1:-/opt/hearth}
readonly BUILT=$TARGET/release
[[ -x $BUILT/hearth ]] || die "nothing is built yet: run 'make build' first"

install -d -m 0755 "$FOLDER"
install -m 0755 "$BUILT/hearth" "$BUILT/hearth-init" "$FOLDER/"
rm -rf "$FOLDER/runtimes"
cp -R "$BUILT/runtimes" "$FOLDER/runtimes"
# A private copy of CRIU, where set-up made one; the system's own is found by itself.
if [[ -x $TOOLS/criu/usr/sbin/criu ]]; then
  rm -rf "$FOLDER/criu"
  cp -R "$TOOLS/criu" "$FOLDER/criu"
fi
# Functions read their runtime as users of their own.
chmod -R u=rwX,go=rX "$FOLDER/runtimes"
say "installed under $FOLDER"
