#!/usr/bin/env bash
# Starts the built server in the foreground; the arguments are the server's own.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly SERVER=$TARGET/release/hearth

if [[ $EUID -eq 0 ]]; then
  exec "$SERVER" "$@"
fi
command -v sudo >/dev/null || die "the server needs root and sudo is missing; run as root: $SERVER $*"
say "starting as root through sudo: sandboxes use namespaces, mounts and cgroups, which only root can set up"
exec sudo -E "$SERVER" "$@"
