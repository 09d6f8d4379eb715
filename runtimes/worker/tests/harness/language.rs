//! What differs between the runtimes: how a template is started.

use std::path::PathBuf;

/// One runtime.
pub struct Language {
    /// The distribution's interpreter.
    distributions: &'static str,
    /// Where set-up puts another one when that is too old, below the workspace's root.
    fetched: Option<&'static str>,
    /// What comes before the bootstrap's name.
    pub flags: &'static [&'static str],
    /// The entry file in the runtime's directory.
    pub bootstrap: &'static str,
    /// The file of a function that has only one.
    pub main: &'static str,
}

impl Language {
    /// The interpreter functions run on: scripts/lib.sh chooses the same.
    pub fn program(&self) -> PathBuf {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        self.fetched
            .map(|path| PathBuf::from(root).join(path))
            .filter(|path| path.is_file())
            .unwrap_or_else(|| self.distributions.into())
    }
}

/// The runtime of the crate that includes this file.
pub const LANGUAGE: Language = match env!("CARGO_PKG_NAME").as_bytes() {
    b"hearth-python" => Language {
        distributions: "/usr/bin/python3",
        fetched: None,
        flags: &["-I"],
        bootstrap: "bootstrap.py",
        main: "main.py",
    },
    b"hearth-node" => Language {
        distributions: "/usr/bin/node",
        fetched: Some(".tools/node/bin/node"),
        // The same as the server's (server/src/engine/runtimes/node.rs).
        flags: &[
            "--single-threaded",
            "--v8-pool-size=1",
            "--experimental-detect-module",
            "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
        ],
        bootstrap: "bootstrap.js",
        main: "main.mjs",
    },
    _ => panic!("not a runtime's crate"),
};
