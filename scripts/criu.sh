#!/usr/bin/env bash
# Sees to it that there is a CRIU that works with this host's kernel, for the `restore` start kind. Never fails: without one
# the server runs all the same, and says that it keeps no images and why.
#
# A distribution's own CRIU is taken when it is new enough. Where it is not (Debian 12), the package of the next release
# and the libraries it needs, the C library included, are unpacked into .tools/criu and started through their own loader;
# nothing of the system is changed. They come from the mirror that this machine's apt uses already, and apt checks them
# against the distribution's signed index.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The oldest CRIU that runs on kernels from 6.13 on.
readonly MIN_CRIU=4.1
# The release that has it, for those before it.
readonly NEXT_RELEASE=trixie
readonly PRIVATE=$TOOLS/criu
readonly WORK=$TOOLS/criu.new
# Libraries that CRIU is linked with for what a restore never does (TLS, nftables): loading them and the dozen that they
# need takes longer than all else of its start.
readonly UNUSED=(libgnutls.so libnftables.so)
readonly LIGHT=light

new_enough() { [[ -n $1 && $(printf '%s\n%s\n' "$1" "$MIN_CRIU" | sort -V | head -n 1) == "$MIN_CRIU" ]]; }

give_up() {
  say "no CRIU: $*; templates will not be stored as images (everything else works)"
  rm -rf "$WORK"
  exit 0
}

system_version() {
  local program
  for program in criu /usr/sbin/criu; do
    "$program" --version 2>/dev/null | sed -n 's/^Version: *//p' && return 0
  done
  return 0
}

# apt, with lists, packages and sources of its own, for which nothing is installed yet.
own_apt() {
  local command=$1
  shift
  "$command" -q \
    -o "Dir::Etc::SourceList=$WORK/sources.list" -o Dir::Etc::SourceParts=- \
    -o "Dir::State=$WORK/state" -o "Dir::State::status=$WORK/status" -o "Dir::Cache=$WORK/cache" \
    -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=3 "$@" </dev/null >&2
}

# Makes, in the directory "light" of a private copy, a library with no code for each of those that a restore has no use
# for. The server has the loader look there first when it restores; a function that is missing would be missed only when
# it is called, and the start fall to a boot.
lighten() {
  local program=$1/usr/sbin/criu libraries loader soname
  libraries=$(echo "$1"/usr/lib/*-linux-gnu)
  loader=$(echo "$libraries"/ld-linux*)
  command -v cc readelf >/dev/null || return 0
  rm -rf "${1:?}/$LIGHT"
  mkdir "$1/$LIGHT"
  for soname in $(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [[ " ${UNUSED[*]} " == *" ${soname%.so.*}.so "* ]] || continue
    # The versions of symbols, which the loader checks, and variables, which it copies at once.
    {
      readelf -VW "$program" | awk -v file="$soname" '
        / File: / { ours = index($0, "File: " file " ") } / Name: / && ours { sub(/.*Name: /, ""); print "version", $1 }'
      readelf -rW "$program" | awk '/_COPY / { sub("@", " ", $5); print "variable", $5 }'
    } | awk -v map="$1/$LIGHT/map" '
      $1 == "version" { versions[$2] = ""; next }
      $3 in versions { versions[$3] = versions[$3] " global: " $2 ";"; print "void *" $2 ";" }
      END { for (name in versions) print name " {" versions[name] " };" > map }' >"$1/$LIGHT/light.c"
    touch "$1/$LIGHT/map"
    cc -shared -nostdlib "-Wl,-soname,$soname" "-Wl,--version-script,$1/$LIGHT/map" -o "$1/$LIGHT/$soname" \
      "$1/$LIGHT/light.c" || break
    rm -f "$1/$LIGHT"/{map,light.c}
  done
  "$loader" --library-path "$1/$LIGHT:$libraries" "$program" --version >/dev/null 2>&1 || rm -rf "${1:?}/$LIGHT"
}

unpack_privately() {
  local release uri package
  release=$(distribution)
  [[ $release == debian:bookworm ]] || give_up "this distribution ($release) has no recent enough version"
  [[ -r $DEBIAN_KEYRING ]] || give_up "$DEBIAN_KEYRING, needed to verify packages, is missing"
  uri=$(debian_mirror bookworm)
  [[ -n $uri ]] || give_up "apt has no Debian mirror (run 'apt-get update' once)"

  say "unpacking CRIU from Debian $NEXT_RELEASE into .tools/criu (Debian 12's version fails on new kernels; about a minute)"
  rm -rf "$WORK"
  mkdir -p "$WORK"/{state/lists/partial,cache/archives/partial,root}
  : >"$WORK/status"
  echo "deb [signed-by=$DEBIAN_KEYRING] $uri $NEXT_RELEASE main" >"$WORK/sources.list"
  own_apt apt-get update || give_up "cannot fetch the package index of Debian $NEXT_RELEASE"
  own_apt apt-get install -y --no-install-recommends --download-only criu ||
    give_up "cannot fetch its packages"
  for package in "$WORK"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$WORK/root" || give_up "cannot unpack $package"
  done
  # Documentation and locales are most of it.
  rm -rf "$PRIVATE" "$WORK/root/usr/share"
  lighten "$WORK/root"
  mv "$WORK/root" "$PRIVATE"
  rm -rf "$WORK"
}

if new_enough "$(system_version)"; then
  exit 0
elif [[ -x $PRIVATE/usr/sbin/criu ]]; then
  [[ -d $PRIVATE/$LIGHT ]] || lighten "$PRIVATE"
  exit 0
fi
command -v apt-get >/dev/null || give_up "this is not Debian and has no recent enough version ($MIN_CRIU)"
[[ -n $(apt_candidate criu) ]] || refresh_apt_lists
if new_enough "$(apt_candidate criu)"; then
  refresh_apt_lists
  say "installing with apt: criu (stores templates as images, so that a start need not boot)"
  apt_get install -y --no-install-recommends criu || give_up "apt cannot install it"
else
  unpack_privately
fi
