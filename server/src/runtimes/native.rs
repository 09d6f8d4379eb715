//! `native`: programs that need no interpreter, and bring what an instance is made of with them (the crate `hearth-native`).

use std::path::Path;

use super::RuntimeFiles;

pub(super) fn probe(dir: &Path) -> RuntimeFiles {
    let dir = dir.join("native");
    let about = dir.join("README.md");
    RuntimeFiles {
        version: match super::missing(&about) {
            Some(reason) => Err(reason),
            None => Ok(env!("CARGO_PKG_VERSION").to_owned()),
        },
        dir,
        name: "native",
        command: Vec::new(),
        heap_flag: None,
        fork: Ok(()),
        becomes: None,
    }
}
