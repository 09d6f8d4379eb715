//! The smallest function: `cargo build --release -p hearth-native --example native_hello`, then
//!
//! ```sh
//! curl -H "Authorization: Bearer $TOKEN" -F name=hello -F runtime=native \
//!   -F code=@target/release/examples/native_hello http://127.0.0.1:8080/api/v1/functions
//! ```
#![allow(clippy::print_stdout, reason = "what a function prints is its log")]

use serde_json::{Value, json};

fn main() {
    hearth_native::serve(|event: Value, context| {
        println!("hello from {}", context.function_name());
        let name = event["name"].as_str().unwrap_or("world");
        Ok(json!({ "hello": name }))
    })
}
