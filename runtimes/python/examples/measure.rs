//! Measures a Python worker: `cargo run --release -p hearth-python --example measure [STARTS]`
#![deny(unsafe_code)]

#[path = "../../worker/tests/harness/mod.rs"]
mod harness;

fn main() {
    // What the project promises its start time for.
    harness::measure::run(
        "import json, asyncio, http\ndef handler(event, context):\n    return event\n",
    );
}
