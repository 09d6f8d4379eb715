#!/bin/sh
# Keeps .sqlx, the facts about every SQL query that a build without a database checks them against.
#
#   scripts/sqlx.sh prepare   asks a scratch database about every query of the server and rewrites .sqlx
#   scripts/sqlx.sh check     does the same beside it, and fails when .sqlx is not what comes out
#
# This is what `cargo sqlx prepare` does, without the minutes that installing it takes: the query macros write one file a
# query into SQLX_OFFLINE_DIR while they talk to a live database, and they run again only when the crate is compiled
# again. The crate is given a --cfg it does not know, new each time, so that just this crate is compiled, and the
# source files keep their times.
set -eu

usage() {
    echo "usage: scripts/sqlx.sh prepare|check" >&2
    exit 2
}
[ $# -eq 1 ] || usage
case $1 in prepare | check) mode=$1 ;; *) usage ;; esac

cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
mkdir "$scratch/queries"

/usr/bin/python3 - migrations "$scratch/scratch.db" <<'PYTHON'
import pathlib, sqlite3, sys

database = sqlite3.connect(sys.argv[2], isolation_level=None)
for migration in sorted(pathlib.Path(sys.argv[1]).glob("*.sql"), key=lambda file: int(file.name.split("_")[0])):
    database.executescript(migration.read_text())
database.close()
PYTHON

# Absolute paths: the macros run in the crate's directory, cargo in the workspace's.
if ! SQLX_OFFLINE=false DATABASE_URL="sqlite:$scratch/scratch.db" SQLX_OFFLINE_DIR="$scratch/queries" \
    cargo rustc --quiet -p hearth --lib --profile check -- --cfg "sqlx_prepare_$(date +%s%N)" >"$scratch/log" 2>&1; then
    cat "$scratch/log" >&2
    echo "scripts/sqlx.sh: the server does not compile against the current migrations: see above" >&2
    exit 1
fi
if [ -z "$(ls "$scratch/queries")" ]; then
    echo "scripts/sqlx.sh: the build wrote no queries; was the crate compiled?" >&2
    exit 1
fi

if [ "$mode" = prepare ]; then
    mkdir -p .sqlx
    rm -f .sqlx/query-*.json
    cp "$scratch"/queries/query-*.json .sqlx/
    echo "$(ls .sqlx | wc -l) queries in .sqlx"
elif ! diff -r .sqlx "$scratch/queries" >"$scratch/diff" 2>&1; then
    cat "$scratch/diff" >&2
    echo "scripts/sqlx.sh: .sqlx is out of date: run scripts/sqlx.sh prepare and commit it" >&2
    exit 1
fi
