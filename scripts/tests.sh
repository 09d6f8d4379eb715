#!/usr/bin/env bash
# Tests of the scripts themselves: each runs the real script on files of its own.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

source scripts/tap.sh
source scripts/report.sh

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 0755 "$scratch"

# A copy of the scripts with something built beside them, readable by everybody, so that users without rights can run it.
copy=$scratch/hearth
mkdir -p "$copy/target/release/runtimes/"{node,python}
cp -R scripts "$copy/scripts"
touch "$copy/target/release/"{hearth,hearth-init} "$copy/target/release/runtimes/"{node,python}/file
chmod -R u=rwX,go=rX "$copy"
chmod 0755 "$copy/target/release/"{hearth,hearth-init}

# The user `nobody`, in whose name nothing here can be written.
readonly NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# refused NEEDLE COMMAND...: fails with one line that holds NEEDLE.
refused() {
  local needle=$1 said
  shift
  if said=$("$@" 2>&1); then
    echo "it did not fail: $said"
    return 1
  fi
  [[ $(wc -l <<<"$said") == 1 && $said == "hearth: "*"$needle"* ]] || {
    echo "it said: $said"
    return 1
  }
}

install_() { env -u CARGO_TARGET_DIR "${@:2}" "$copy/scripts/install.sh" "$1"; }

install_without_rights_names_the_directory_and_changes_nothing() {
  mkdir -p "$scratch/locked/there/runtimes"
  touch "$scratch/locked/there/hearth" "$scratch/locked/there/runtimes/old"
  refused "$scratch/locked cannot be written by nobody: run 'sudo make install'" \
    install_ "$scratch/locked/new/hearth" "${NOBODY[@]}" || return
  refused "$scratch/locked/there cannot be written" install_ "$scratch/locked/there" "${NOBODY[@]}" || return
  # The folder is the user's own, what is in it is root's.
  chown 65534:65534 "$scratch/locked/there"
  refused "$scratch/locked/there/runtimes cannot be written" install_ "$scratch/locked/there" "${NOBODY[@]}" || return
  [[ $(find "$scratch/locked" | sort | tr '\n' ' ') == \
    "$scratch/locked $scratch/locked/there $scratch/locked/there/hearth $scratch/locked/there/runtimes $scratch/locked/there/runtimes/old " ]]
}

install_refuses_what_cannot_be_meant() {
  refused "must be an absolute path" install_ relative/folder || return
  touch "$scratch/file"
  refused "$scratch/file is not a directory" install_ "$scratch/file" || return
  mv "$copy/target/release/hearth" "$scratch/hearth.away"
  refused "run 'make build' first" install_ "$scratch/nothing"
  local status=$?
  mv "$scratch/hearth.away" "$copy/target/release/hearth"
  [[ $status == 0 && ! -e $scratch/nothing ]]
}

install_replaces_an_older_one_as_a_whole() {
  mkdir -p "$scratch/opt/runtimes/gone"
  install_ "$scratch/opt" 2>/dev/null || return
  install_ "$scratch/opt" 2>/dev/null || return
  [[ $(cd "$scratch/opt" && find . -type f | sort | tr '\n' ' ') == \
    "./hearth ./hearth-init ./runtimes/node/file ./runtimes/python/file " && ! -e $scratch/opt/runtimes/gone ]]
}

# apt knows no candidate before its lists are there, as in a fresh container.
setup_asks_for_candidates_only_after_it_fetched_the_lists() {
  env -u HEARTH_APT_LISTS_ARE_FRESH bash -c '
    source scripts/setup.sh
    fetched=0
    node_is_here() { return 1; }
    say() { :; }
    apt_get() { [[ $1 != update ]] || fetched=$((fetched + 1)); }
    apt-cache() { ((fetched == 0)) || echo "  Candidate: $MIN_NODE.1+dfsg-1"; }
    wants_node
    wants_node
    [[ ${missing[*]} == "nodejs nodejs" ]] && ((fetched == 1))'
}

# Whoever stops the server leaves it the 30 s that README promises to running requests, and some to end.
stopping_waits_for_the_drain() {
  local compose unit
  compose=$(sed -n 's/^ *stop_grace_period: \([0-9]*\)s$/\1/p' docker-compose.yml)
  unit=$(sed -n 's/^TimeoutStopSec=\([0-9]*\)$/\1/p' packaging/hearth.service)
  grep -q '30 s at most' README.md && ((compose > 30 && unit == compose))
}

# The image's compiler is one that the workspace builds with, and what is copied from outside is there.
dockerfile_fits_the_workspace() {
  local source sources
  grep -q "^FROM rust:$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)-" Dockerfile || return
  mapfile -t sources < <(sed -n 's/^COPY \([^- ][^ ]*\) .*/\1/p' Dockerfile)
  ((${#sources[@]} > 0)) || return
  for source in "${sources[@]}"; do
    [[ -e $source ]] || return
  done
}

# Its number in the image is fixed.
labs_agent_is_the_images_user() {
  local uid
  uid=$(sed -n 's/^RUN useradd .*--uid \([0-9]*\) .*/\1/p' Dockerfile)
  [[ -n $uid ]] && grep -q "user: \"$uid:$uid\"$" docker-compose.lab.yml
}

# A test of a server first prints what that server logged.
a_failing_test_is_told_by_its_panic() {
  local log=$scratch/rust.log
  {
    printf -- '---- slow::it_ends stdout ----\n'
    seq -f 'INFO line %g' 60
    printf "\nthread 'slow::it_ends' panicked at it.rs:1:2:\nleft is not right\n  10: core::panicking\n\n"
    printf -- '---- short stdout ----\nError: none\n\n\nfailures:\n    short\n'
  } >"$log"
  [[ $(told "$log") == "---- slow::it_ends stdout ----
INFO line 54
INFO line 55
INFO line 56
INFO line 57
INFO line 58
INFO line 59
INFO line 60

thread 'slow::it_ends' panicked at it.rs:1:2:
left is not right

---- short stdout ----
Error: none" ]]
}

# Compose passes the host's port on to the one that the image listens on and whose health it asks for.
container_has_one_port() {
  local port
  port=$(sed -n 's/^EXPOSE \([0-9]*\)$/\1/p' Dockerfile)
  [[ -n $port ]] && grep -q "HEARTH_LISTEN=0.0.0.0:$port " Dockerfile && grep -q "HEARTH_LISTEN: 0.0.0.0:$port$" docker-compose.yml &&
    grep -q "HEARTH_PORT:-8080}:$port\"" docker-compose.yml &&
    grep -q "HEARTH_URL: http://hearth:$port$" docker-compose.lab.yml &&
    [[ $(grep -c "http://127.0.0.1:$port/healthz" Dockerfile) == 1 && $(grep -c "http://127.0.0.1:$port/healthz" docker-compose.yml) == 1 ]]
}

check "make install without rights names the directory and changes nothing" \
  install_without_rights_names_the_directory_and_changes_nothing
check "make install refuses what cannot be meant" install_refuses_what_cannot_be_meant
check "make install replaces an older one as a whole" install_replaces_an_older_one_as_a_whole
check "set-up asks for candidates only after it fetched apt's lists" setup_asks_for_candidates_only_after_it_fetched_the_lists
check "Docker and systemd wait for the drain" stopping_waits_for_the_drain
check "the Dockerfile fits the workspace" dockerfile_fits_the_workspace
check "the container's port is the same everywhere" container_has_one_port
check "the lab's agent is the image's unprivileged user" labs_agent_is_the_images_user
check "a failing test is told by its panic" a_failing_test_is_told_by_its_panic

checked
