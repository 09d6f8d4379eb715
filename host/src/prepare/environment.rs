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

/// Keeps the server's allocator from huge pages, unless the environment says otherwise: the kernel zeroes 2 MiB when the first byte of one
/// is written, for which a request waits milliseconds.
const NO_HUGE_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");

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
    let (name, value) = NO_HUGE_PAGES;
    let own = std::env::var_os(name).is_none();
    let own = own.then(|| (name.into(), value.into()));
    std::env::vars_os()
        .filter(|(name, _)| is_known(name))
        .chain(own)
        .collect()
}
