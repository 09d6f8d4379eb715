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
    die "this needs root and sudo is missing; run as root: $*"
  fi
}

# pip_install ARGUMENT...: wheels by their digests, and nothing else. Shows the progress of its downloads.
pip_install() {
  "$PYTHON" -m pip install --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes \
    --only-binary :all: "$@" >&2
}

# apt-get with what every script wants of it: it asks nothing, and waits for another one. It shows its progress, because
# a download may take minutes; on stderr, like all that the scripts say.
apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null >&2
}

# Fetches apt's package lists, once for a script and those it starts. To be called before apt is asked for a candidate:
# with no lists, as in a fresh container, it knows none, and with old ones perhaps a wrong one.
refresh_apt_lists() {
  [[ -z ${HEARTH_APT_LISTS_ARE_FRESH:-} ]] && command -v apt-get >/dev/null || return 0
  say "fetching apt's package lists (a few seconds)"
  apt_get update || say "that failed; continuing with the existing lists"
  export HEARTH_APT_LISTS_ARE_FRESH=1
}

# apt_candidate PACKAGE: the version that apt would install, or nothing.
apt_candidate() {
  local candidate
  candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p') || return 0
  [[ $candidate == "(none)" ]] || printf '%s\n' "$candidate"
}

# Tests and benchmarks set up sandboxes, which only root may. Building stays with the user who runs the script; cargo
# starts what it has built through sudo.
run_as_root_what_cargo_runs() {
  [[ $EUID -ne 0 ]] || return 0
  command -v sudo >/dev/null || die "setting up sandboxes needs root and sudo is missing: run this as root"
  say "cargo will run programs as root through sudo: they set up sandboxes"
  sudo -v
  local triple
  triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
  export "CARGO_TARGET_${triple}_RUNNER=sudo -E"
}

# Checks packages of Debian's, those of later releases included.
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# distribution: "debian:bookworm" and the like.
distribution() {
  # shellcheck source=/dev/null
  (. /etc/os-release && echo "${ID:-}:${VERSION_CODENAME:-}")
}

# debian_mirror CODENAME: the mirror of this machine's own Debian packages of that release, as apt knows it.
debian_mirror() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Identifier: Packages' 2>/dev/null |
    awk -v codename="$1" '$1 == "Debian" && $2 == codename { print $3; exit }'
}

# debian_root RELEASE FOLDER [ARGUMENT...]: makes the smallest root of that release, from the mirror this machine's apt uses.
# FOLDER.log tells how.
debian_root() {
  local release=$1 folder=$2 mirror codename
  shift 2
  [[ -r $DEBIAN_KEYRING ]] || die "$DEBIAN_KEYRING is missing: install debian-archive-keyring"
  command -v debootstrap >/dev/null || die "debootstrap is missing: install it"
  codename=$(distribution)
  codename=${codename#*:}
  [[ -n $(debian_mirror "$codename") ]] || refresh_apt_lists
  mirror=$(debian_mirror "$codename")
  [[ -n $mirror ]] || die "apt has no Debian mirror (run 'apt-get update' once)"
  as_root debootstrap --variant=minbase "--keyring=$DEBIAN_KEYRING" "$@" "$release" "$folder" "$mirror" >"$folder.log" ||
    die "debootstrap failed; $folder.log ends: $(tail -n 3 "$folder.log")"
  as_root rm -rf "$folder"/var/cache/apt/archives "$folder"/var/lib/apt/lists
}
