#!/usr/bin/env bash
# Runs the fuzz targets for a while instead of the bounded number of cases that `make test` gives them. They are bolero
# targets, so this needs no nightly compiler; a failing case prints the seed that repeats it.
#
#   scripts/fuzz.sh [DURATION]    (seconds per target, default 60)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly DURATION=${1:-60}
[[ $DURATION =~ ^[1-9][0-9]*$ ]] || die "DURATION is '$DURATION', must be a whole number, 1 or greater"

say "fuzzing the channel, chains, the messages of host process and gateway, the resolver, the broker, MQTT and CoAP for $DURATION s per target"
# Time alone ends the run: the targets' own bounds on cases are lifted. Unoptimised, to keep the overflow checks.
export BOLERO_RANDOM_TEST_TIME_MS=$((DURATION * 1000)) BOLERO_RANDOM_ITERATIONS=9223372036854775807
cargo test --locked -p hearth-abi --test hostile -- --nocapture --test-threads=1
cargo test --locked -p hearth-chain --test hostile -- --nocapture --test-threads=1
cargo test --locked -p hearth-host --test decoding -- --nocapture --test-threads=1 arbitrary
cargo test --locked -p hearth-gateway --test decoding -- --nocapture --test-threads=1 arbitrary
cargo test --locked -p hearth --test names -- --nocapture --test-threads=1 arbitrary
cargo test --locked -p hearth --test broker -- --nocapture --test-threads=1 arbitrary
cargo test --locked -p hearth --lib -- --nocapture --test-threads=1 arbitrary_packets arbitrary_pieces arbitrary_datagrams
