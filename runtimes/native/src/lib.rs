//! Functions that are programs. A Rust program becomes a function of the runtime `native` by calling [`serve`] at the end of
//! `main`:
//!
//! ```no_run
//! use serde_json::{Value, json};
//!
//! fn main() {
//!     // What is made here, every instance has: it is forked from the process that this is.
//!     let greeting = String::from("hello");
//!     hearth_native::serve(move |event: Value, context| {
//!         println!("called as {}", context.function_name());
//!         Ok(json!({ greeting.as_str(): event["name"] }))
//!     })
//! }
//! ```
//!
//! Its event and its result are JSON, as they are in every runtime, requests to its URL included (payload format 2.0 of AWS
//! Lambda's function URLs). An error, or a panic, is the invocation's error.
//!
//! [`serve_blocks`] gives the handler the text of the event in place: of a request that another member of a chain has passed on,
//! the very block of shared memory that it lies in. Nothing is parsed and nothing is copied.
//!
//! ```no_run
//! hearth_native::serve_blocks(|mut request, context| {
//!     request.bytes_mut().make_ascii_uppercase();
//!     Ok(request.pass())
//! })
//! ```
//!
//! Deploy the executable itself, or a zip in which the file `bootstrap` is one (another name is the setting `handler`). A static
//! one runs on every host: `RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu`.
//!
//! In the order of a function's life: `template` speaks with the server and forks; `requests` answers one request after the
//! other, with a [`Context`] for each, and [`http`] is the form that requests to a URL have, which
//! the runtime `provided` has, too; [`Block`] is a payload in place, and
//! [`Chain`] is what a handler can do with the other members.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod block;
mod chain;
mod context;
mod error;
pub mod http;
mod panics;
mod requests;
mod room;
#[allow(unsafe_code)]
mod sys;
mod template;

pub use block::{Block, Passed, Request, Writer};
pub use chain::{CallBlock, Chain, ChainError, InPlace, Values};
pub use context::Context;
pub use error::Error;
pub use requests::{serve, serve_blocks};
pub use template::on_start;
