//! The server's environment.

use std::ffi::OsString;

/// What the server gets of the environment: its settings, and what programs and libraries go by. Not what else whoever
/// started the host process had in it, such as keys.
const VARIABLES: [&str; 11] = [
    "HEARTH_",
    "MIMALLOC_",
    "LC_",
    "LANG",
    "NO_COLOR",
    "PATH",
    "RUST_BACKTRACE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
];

/// What the server gets of this process's environment.
#[must_use]
pub fn server_environment() -> Vec<(OsString, OsString)> {
    let is_known = |name: &OsString| {
        let name = name.as_encoded_bytes();
        let mut known = VARIABLES.iter();
        known.any(|known| match known.ends_with('_') {
            true => name.starts_with(known.as_bytes()),
            false => name == known.as_bytes(),
        })
    };
    std::env::vars_os()
        .filter(|(name, _)| is_known(name))
        .collect()
}
