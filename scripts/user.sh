#!/usr/bin/env bash
# Makes the user as which an installed server runs, unless there is one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly USER_NAME=hearth
if ! id "$USER_NAME" >/dev/null 2>&1; then
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$USER_NAME"
  say "made the user $USER_NAME for the server"
fi
