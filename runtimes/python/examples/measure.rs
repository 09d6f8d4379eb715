//! Measures a Python worker: `cargo run --release -p hearth-python --example measure [STARTS]`
#![deny(unsafe_code)]

fn main() {
    // What the project promises its start time for.
    hearth_testkit::worker::measure::run(
        "import json, asyncio, http\ndef handler(event, context):\n    return event\n",
    );
}
