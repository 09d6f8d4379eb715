//! Measures a Node.js worker: `cargo run --release -p hearth-node --example measure_node [STARTS]`
#![deny(unsafe_code)]

fn main() {
    hearth_testkit::worker::measure::run("export const handler = async (event) => event;\n");
}
