//! Fresh randomness for a process that becomes an instance without a fork.
//!
//! OpenSSL reseeds its generators when its pid changes, so forks draw different numbers. Processes restored from one
//! image all have the pid of the dump and would continue with the same state. So each of them has every loaded OpenSSL
//! reseed itself, which its generators in all threads do on their next use.

//! They are looked for before there is an image: what is restored may find its libraries under other device numbers, by which
//! the loader does not know them again.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::sys::RandSeed;

/// Bytes that are added besides what OpenSSL itself asks the kernel for.
const SEED_BYTES: usize = 32;
/// What the file of a shared library with OpenSSL in it is called; wheels add a hash.
const LIBRARY: &str = "libcrypto";

/// Each OpenSSL of this process: the interpreter's own, and every shared `libcrypto`.
#[derive(Debug, Default)]
pub struct OpenSsl(Vec<RandSeed>);

impl OpenSsl {
    /// Looks for them. To be called when everything is loaded.
    #[must_use]
    pub fn find() -> Self {
        let own = RandSeed::find(None);
        let loaded = libraries();
        let shared = loaded.iter().filter_map(|path| RandSeed::find(Some(path)));
        // One that is in both is seeded twice.
        Self(own.into_iter().chain(shared).collect())
    }

    /// Reseeds each.
    pub fn reseed(&self) {
        let mut seed = [0; SEED_BYTES];
        // So few bytes come whole, or the kernel has none at all: then OpenSSL, which asks as well, says so.
        let _ = retry_on_intr(|| getrandom(&mut seed, GetRandomFlags::empty()));
        for openssl in &self.0 {
            openssl.call(&seed);
        }
    }
}

/// Paths of the shared libraries that are mapped.
fn libraries() -> BTreeSet<CString> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps.lines().filter_map(|line| {
        let path = &line[line.find('/')?..];
        let (_, file) = path.rsplit_once('/')?;
        file.contains(LIBRARY).then_some(path)
    });
    paths.filter_map(|path| CString::new(path).ok()).collect()
}
