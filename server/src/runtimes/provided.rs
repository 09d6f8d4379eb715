//! `provided`: programs that bring a runtime of their own, which asks for invocations by AWS Lambda's Runtime API. The program
//! `hearth-provided` is the other end of it, inside the sandbox.

use std::path::Path;

use super::RuntimeFiles;

/// The program in the runtime's directory.
const PROGRAM: &str = "hearth-provided";

pub(super) fn probe(dir: &Path) -> RuntimeFiles {
    let dir = dir.join("provided");
    RuntimeFiles {
        version: match super::missing(&dir.join(PROGRAM)) {
            Some(reason) => Err(reason),
            None => Ok(env!("CARGO_PKG_VERSION").to_owned()),
        },
        dir,
        name: "provided",
        command: vec![format!("/opt/hearth/provided/{PROGRAM}")],
        heap_flag: None,
        fork: Ok(()),
        becomes: Some(
            "a bootstrap is a process of its own, which a fork would not have, and it waits on a TCP connection, which no image \
             keeps",
        ),
    }
}
