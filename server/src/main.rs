//! The `hearth` server.
fn main() {}
