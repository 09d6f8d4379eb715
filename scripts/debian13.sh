#!/usr/bin/env bash
# Runs the suites whose outcome depends on the distribution's C library and interpreters on Debian 13, with what was built
# on Debian 12: restores, randomness and attacks.
#
#   scripts/debian13.sh [FILTER...]     tests by name; without any, those three suites
#
# The tests run in a root of Debian 13 that debootstrap makes from the mirror this machine's apt uses; it is kept in
# .tools/debian13. Of the host, only the kernel (/proc, /sys, /dev) and the project are in sight there.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly RELEASE=trixie
readonly BASE=$TOOLS/debian13
# What functions run on, what restores them, and what the tests themselves call.
readonly PACKAGES=python3,nodejs,criu,ca-certificates,util-linux
# A root that was made of other packages is made anew.
readonly KEY=$RELEASE:$PACKAGES

# prepare: makes the root unless it is there.
prepare() {
  [[ $(cat "$BASE/key" 2>/dev/null) != "$KEY" ]] || return 0
  say "creating a Debian 13 root in .tools/debian13 (400 MB; takes a few minutes, once)"
  as_root rm -rf "$BASE"
  mkdir -p "$BASE"
  debian_root "$RELEASE" "$BASE/root" "--include=$PACKAGES"
  echo "$KEY" >"$BASE/key"
}

# test_program NAME: the path of a test program, built if need be.
test_program() {
  cargo test --locked --workspace --test "$1" --no-run 2>&1 | tee /dev/stderr |
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p' | tail -n 1
}

# The project and what was built lie at the same paths as outside, because the tests know them. The private CRIU and the
# fetched Node.js are hidden, and the runtimes laid out anew: Debian 13 has its own.
# shellcheck disable=SC2016 # for the shell inside
readonly ENTER='
set -eu
base=$1 project=$2 target=$3
shift 3
mount --bind "$base/root" "$base/root"
cd "$base/root"
for dir in proc sys dev; do
  mount --rbind "/$dir" "$dir"
done
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs run
for dir in "$project" "$target"; do
  mkdir -p ".$dir"
  mount --bind "$dir" ".$dir"
done
mount -t tmpfs tmpfs ".$project/.tools"
mount -t tmpfs tmpfs ".$target/debug/runtimes"
mkdir -p run/host
# Not chroot(2): the kernel refuses user namespaces to who is in one.
pivot_root . run/host
umount -l /run/host
cd "$project"
HEARTH_NODE=/usr/bin/node runtimes/node/package.sh "$target/debug" "$target/debug/runtimes/node"
runtimes/python/package.sh "$target/debug" "$target/debug/runtimes/python"
runtimes/native/package.sh "$target/debug/runtimes/native"
runtimes/provided/package.sh "$target/debug" "$target/debug/runtimes/provided"
exec "$@"
'

# inside COMMAND...: runs it in the root, as root.
inside() {
  as_root env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    unshare --mount --propagation private bash -c "$ENTER" enter "$BASE" "$ROOT" "$TARGET" "$@"
}

# `cargo test` counts so, too, and scripts/test.sh reads it.
skip() {
  say "skipped: $*"
  echo "# skipped 1"
  exit 0
}

case $(distribution) in
  debian:bookworm) ;;
  debian:trixie) skip "this is Debian 13, where the other suites already ran" ;;
  *) skip "not Debian 12: what is built here may not run on Debian 13" ;;
esac
(($# > 0)) || set -- restore randomness hostile
prepare
program=$(test_program it)
[[ -x $program ]] || die "cargo has built no tests"
say "Debian 13: $(inside /bin/sh -c 'cat /etc/debian_version; /usr/bin/python3 --version; /usr/bin/node --version' | xargs)"
inside "$program" --test-threads="${RUST_TEST_THREADS:-2}" "$@"
