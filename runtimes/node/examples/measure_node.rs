//! Measures a Node.js worker: `cargo run --release -p hearth-node --example measure_node [STARTS]`
#![deny(unsafe_code)]

#[path = "../../worker/tests/harness/mod.rs"]
mod harness;

fn main() {
    harness::measure::run("export const handler = async (event) => event;\n");
}
