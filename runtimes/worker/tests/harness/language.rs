//! What differs between the runtimes: how a template is started.

/// One runtime.
pub struct Language {
    /// The interpreter functions run on.
    pub program: &'static str,
    /// What comes before the bootstrap's name.
    pub flags: &'static [&'static str],
    /// The entry file in the runtime's directory.
    pub bootstrap: &'static str,
    /// The file of a function that has only one.
    pub main: &'static str,
}

/// The runtime of the crate that includes this file.
pub const LANGUAGE: Language = match env!("CARGO_PKG_NAME").as_bytes() {
    b"hearth-python" => Language {
        program: "/usr/bin/python3",
        flags: &["-I"],
        bootstrap: "bootstrap.py",
        main: "main.py",
    },
    b"hearth-node" => Language {
        program: "/usr/bin/node",
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
