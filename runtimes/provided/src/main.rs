//! `hearth-provided`: the template process of the runtime `provided`. It starts the function's own program, `bootstrap`, and is
//! the other end of AWS Lambda's Runtime API for it, on the sandbox's loopback. Nothing else is reached by it.
//!
//! ```text
//! server ── control socket, channel ── hearth-provided ── HTTP on 127.0.0.1 ── bootstrap
//!           (shared memory)                    └────── pipes of its stdout and stderr ──┘
//! ```
//!
//! In the order of a function's life: `template` boots and becomes the one instance of its sandbox; `bootstrap` is the child
//! process and its output; `connections` are its requests to `api`, in which `requests` are their paths and bodies (`streaming`
//! is an answer that is passed on as it comes); `invocation` carries invocations between the server's channel and the API
//! (`trace` is their trace contexts), and `error` is what the child says of failures.
#![deny(unsafe_code)]

mod api;
mod bootstrap;
mod connections;
mod error;
mod invocation;
mod output;
mod requests;
mod streaming;
mod template;
mod trace;

use std::process::ExitCode;

fn main() -> ExitCode {
    template::run()
}
