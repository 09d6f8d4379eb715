# shellcheck shell=bash
# What every script here shares: where things are, how to speak, how to become root. Sourced, never run.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly ROOT
cd "$ROOT"

# Where cargo puts what it builds, and where the tools that only developers need are kept.
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly TOOLS=$ROOT/.tools

# The distribution's own interpreter is the one that runs functions. A version manager's shim may be first on
# PATH, so nothing here calls a bare `python3`.
readonly PYTHON=/usr/bin/python3
export PYO3_PYTHON=$PYTHON

# Node.js for functions: the distribution's own where it is new enough, else the one that set-up has fetched.
NODE=/usr/bin/node
[[ ! -x $TOOLS/node/bin/node ]] || NODE=$TOOLS/node/bin/node
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly NODE

# Queries are checked against the committed `.sqlx`, never against a database that happens to be in the environment.
export SQLX_OFFLINE=true

# rustup puts cargo here; a non-login shell (cron, CI, `su`) does not have it on PATH.
if ! command -v cargo >/dev/null && [[ -x ${HOME:-/root}/.cargo/bin/cargo ]]; then
  export PATH=${HOME:-/root}/.cargo/bin:$PATH
fi

say() { printf 'hearth: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# as_root COMMAND...: runs it as root, through sudo where there is one, and says what to do where there is none.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root and there is no sudo; run as root: $*"
  fi
}

# Tests and benchmarks set up sandboxes, which only root may. Building stays with the user who runs the script; cargo
# starts what it has built through sudo.
run_as_root_what_cargo_runs() {
  [[ $EUID -ne 0 ]] || return 0
  command -v sudo >/dev/null || die "this sets up sandboxes, which needs root, and there is no sudo: run it as root"
  say "cargo will start its programs as root through sudo: they set up sandboxes"
  sudo -v
  local triple
  triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
  export "CARGO_TARGET_${triple}_RUNNER=sudo -E"
}
