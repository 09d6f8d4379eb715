//! What differs between the runtimes: how a template is started.

use std::path::{Path, PathBuf};

/// One runtime.
pub struct Language {
    /// Its crate.
    pub package: &'static str,
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
        self.fetched
            .map(|path| root().join(path))
            .filter(|path| path.is_file())
            .unwrap_or_else(|| self.distributions.into())
    }

    /// Where its crate is.
    pub fn crate_dir(&self) -> PathBuf {
        let name = self.package.trim_start_matches("hearth-");
        root().join("runtimes").join(name)
    }
}

fn root() -> &'static Path {
    let testkit = Path::new(env!("CARGO_MANIFEST_DIR"));
    testkit.parent().expect("the workspace")
}

/// The runtime whose crate's test or example this process is.
///
/// # Panics
/// If cargo has not started it.
pub fn language() -> &'static Language {
    let package = std::env::var("CARGO_PKG_NAME").expect("cargo test or cargo run");
    let found = LANGUAGES
        .iter()
        .find(|language| language.package == package);
    found.unwrap_or_else(|| panic!("{package} is not a runtime's crate"))
}

static LANGUAGES: [Language; 2] = [
    Language {
        package: "hearth-python",
        distributions: "/usr/bin/python3",
        fetched: None,
        flags: &["-I"],
        bootstrap: "bootstrap.py",
        main: "main.py",
    },
    Language {
        package: "hearth-node",
        distributions: "/usr/bin/node",
        fetched: Some(".tools/node/bin/node"),
        // The same as the server's (server/src/runtimes/node.rs).
        flags: &[
            "--single-threaded",
            "--v8-pool-size=1",
            "--experimental-detect-module",
            "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
        ],
        bootstrap: "bootstrap.js",
        main: "main.mjs",
    },
];
