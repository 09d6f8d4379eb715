#!/usr/bin/env bash
# Builds the functions of server/tests/packages as their users would, each with its pinned packages from PyPI or npm, and zips
# them into .tools/packages. What is there and has not changed stays.
#
#   scripts/packages.sh check     only says by its status whether all are there
#   scripts/packages.sh [NAME]    that of this name, or all
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly SOURCES=server/tests/packages
readonly BUILT=$TOOLS/packages

# print_of FOLDER: changes whenever the function or its pins do.
print_of() {
  find "$1" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

is_built() {
  local name=${1##*/}
  [[ -f $BUILT/$name.zip && $(cat "$BUILT/$name.print" 2>/dev/null) == "$(print_of "$1")" ]]
}

# build FOLDER
build() {
  local name=${1##*/} work
  work=$BUILT/$name
  rm -rf "$work" "$work.zip" "$work.print"
  mkdir -p "$BUILT"
  cp -r "$1" "$work"
  if [[ -f $work/requirements.txt ]]; then
    pip_install --quiet --no-compile --target "$work" -r "$work/requirements.txt"
  else
    (cd "$work" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  fi
  "$PYTHON" -c 'import shutil, sys; shutil.make_archive(sys.argv[1], "zip", sys.argv[1])' "$work"
  print_of "$1" >"$work.print"
  rm -rf "$work"
}

for folder in "$SOURCES"/*/; do
  folder=${folder%/}
  ! is_built "$folder" || continue
  [[ ${1:-} != check ]] || exit 1
  [[ -z ${1:-} || $1 == "${folder##*/}" ]] || continue
  say "fetching the packages of the test function ${folder##*/} into .tools/packages"
  build "$folder"
done
