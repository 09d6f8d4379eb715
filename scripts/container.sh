#!/usr/bin/env bash
# Builds the image and runs docker-compose.yml, both as they are, with podman, and checks what a user of it relies on:
# scripts/container/checks.sh.
#
#   scripts/container.sh [run]     run: with the image of the last time
#
# Images, volumes and the build's caches are in .tools/container, which no other podman sees (5 GB). The containers run in
# namespaces of this script's own, which are a host to them: their networks, firewall rules, mounts and processes are
# gone with it, whatever happens. Nothing is stopped or removed that others have started.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly BASE=$TOOLS/container
# podman's own state of what runs, in memory. Its path is part of podman's database, so it may not be random.
RUN=/run/hearth-container-$(cksum <<<"$ROOT" | cut -d ' ' -f 1)
readonly RUN
# What Docker means by a name without a registry.
readonly LIBRARY=docker.io/library

# Whatever podman's files in /etc and in $HOME say, these stand.
configure() {
  mkdir -p "$BASE/tmp"
  cat >"$BASE/storage.conf" <<CONF
[storage]
driver = "overlay"
graphroot = "$BASE/storage"
runroot = "$RUN/storage"
CONF
  # Neither systemd nor journald is needed this way. runc, as with Docker: podman's own crun refuses hosts that have
  # controllers on cgroup v1 and v2.
  cat >"$BASE/containers.conf" <<CONF
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$RUN/libpod"
[network]
network_backend = "netavark"
network_config_dir = "$RUN/networks"
CONF
  cat >"$BASE/registries.conf" <<CONF
unqualified-search-registries = ["docker.io"]
CONF
  ENGINE=(
    "CONTAINERS_STORAGE_CONF=$BASE/storage.conf"
    "CONTAINERS_CONF=$BASE/containers.conf"
    "CONTAINERS_REGISTRIES_CONF=$BASE/registries.conf"
    # The caches that the Dockerfile mounts are kept below it.
    "TMPDIR=$BASE/tmp"
    # podman's own format of images has no health check.
    BUILDAH_FORMAT=docker
  )
}

podman_() { as_root env "${ENGINE[@]}" podman "$@"; }

needs() {
  local missing=() package
  # netavark calls iptables; aardvark-dns answers containers' questions for names, as Docker's own server does.
  for package in podman podman-compose runc netavark aardvark-dns iptables iproute2 debootstrap debian-archive-keyring; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  refresh_apt_lists
  say "installing with apt (a minute or two): ${missing[*]}"
  apt_get install -y --no-install-recommends "${missing[@]}" || die "apt could not install them; see above"
}

# base_images: has every image that the Dockerfile begins with, under the name it uses.
base_images() {
  local images image stem
  # The compiler's stand-in is made of Debian's.
  mapfile -t images < <(sed -n 's/^FROM \([^ ]*\).*/\1/p' Dockerfile | sort)
  for image in "${images[@]}"; do
    ! podman_ image exists "$LIBRARY/$image" || continue
    say "pulling $image"
    if ! podman_ pull --quiet "$LIBRARY/$image" >&2; then
      stem=${image%%:*}
      [[ $(type -t "stand_in_$stem") == function ]] || die "cannot pull $image, and know no stand-in for it"
      say "the registry does not give it; making a stand-in"
      "stand_in_$stem" "$image"
    fi
    hand_on "$image" || {
      podman_ rmi --force "$LIBRARY/$image" >&2
      die "cannot build on $image"
    }
  done
}

# stand_in_debian debian:CODENAME-slim: the smallest system that debootstrap makes.
stand_in_debian() {
  local release=${1#debian:}
  as_root rm -rf "$BASE/root"
  debian_root "${release%-slim}" "$BASE/root"
  as_root tar --create --directory="$BASE/root" --one-file-system . |
    podman_ import --quiet --change CMD=bash \
      --change ENV=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin - "$LIBRARY/$1" >&2
  as_root rm -rf "$BASE/root"
}

# stand_in_rust rust:VERSION-slim-CODENAME: Debian's, what the official image installs on it, and this machine's toolchain,
# at the official image's places.
stand_in_rust() {
  local tag=${1#rust:} version toolchain
  version=${tag%%-*}
  toolchain=$(toolchain "$version") || die "no registry and no Rust $version here: run 'rustup toolchain install $version'"
  hand_on_files "$BASE/handed-on"
  printf '%s\n' '**/share/doc' >"$BASE/toolchain.ignore"
  podman_ build --quiet --network=host --tag "$LIBRARY/$1" --ignorefile "$BASE/toolchain.ignore" --file - \
    --volume "$BASE/handed-on:/handed-on:ro" "$toolchain" >&2 <<CONTAINERFILE
FROM debian:${tag##*-}-slim
ENV RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/usr/local/cargo RUST_VERSION=$version
ENV PATH=/usr/local/cargo/bin:\$PATH
RUN cp -R /handed-on/. / && apt-get update \\
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . /usr/local/rustup/toolchains/$version
RUN mkdir -p /usr/local/cargo/bin && ln -s /usr/local/rustup/toolchains/$version/bin/* /usr/local/cargo/bin/
CONTAINERFILE
}

# toolchain VERSION: where this machine keeps that compiler.
toolchain() {
  local name
  if [[ $(rustc --version) == "rustc $1."* ]]; then
    rustc --print sysroot
    return
  fi
  name=$(rustup toolchain list 2>/dev/null | sed -n "s/^\($1[.-][^ ]*\).*/\1/p" | head -n 1)
  [[ -n $name ]] && rustc "+$name" --print sysroot
}

# hand_on_files FOLDER: what this machine's administrator has set up so that apt and cargo come through: certificates, apt's
# proxies and cargo's registries. podman itself hands on the variables of proxies.
hand_on_files() {
  local cargo=${CARGO_HOME:-$HOME/.cargo}/config.toml
  rm -rf "$1"
  mkdir -p "$1/etc/apt/apt.conf.d" "$1/usr/local/share/ca-certificates" "$1/usr/local/cargo"
  apt-config dump 2>/dev/null | grep -iE '^Acquire::(https?|ftp)::' >"$1/etc/apt/apt.conf.d/99host" || true
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$1/usr/local/share/ca-certificates/" \;
  [[ ! -r $cargo ]] || cp "$cargo" "$1/usr/local/cargo/config.toml"
}

# hand_on IMAGE: puts that into the image.
hand_on() {
  hand_on_files "$BASE/handed-on"
  podman_ build --quiet --network=host --tag "$LIBRARY/$1" --file - "$BASE/handed-on" >&2 <<CONTAINERFILE
FROM $1
COPY . /
RUN ! command -v update-ca-certificates || update-ca-certificates
CONTAINERFILE
}

# build: by compose, as `docker compose up --build` does.
build() {
  say "building the image (about 10 minutes of CPU time; later builds are incremental)"
  as_root env "${ENGINE[@]}" podman-compose --project-name hearth --podman-build-args=--network=host build >&2
  podman_ image exists localhost/hearth || die "the image was not built"
}

# clean_up: what podman has left in memory and where it mounts.
clean_up() {
  as_root umount --quiet "$BASE/storage/overlay" 2>/dev/null || true
  as_root rm -rf "$RUN"
}

[[ $# == 0 || $* == run ]] || die "usage: scripts/container.sh [run]"
needs
configure
exec 9>"$BASE/lock"
flock --nonblock 9 || die "another run uses $BASE"
trap clean_up EXIT
if [[ ${1:-} != run ]]; then
  base_images
  build
fi
# The lock is not for what outlives a killed run.
as_root env "${ENGINE[@]}" unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
  scripts/container/checks.sh 9>&-
