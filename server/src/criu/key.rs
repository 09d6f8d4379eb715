//! What an image depends on. An image is restored only if all of it is unchanged.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The circumstances that all images of a server share, as a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFingerprint(String);

impl HostFingerprint {
    /// Of this machine, this boot, this build of Hearth, this version of CRIU and this `hearth-init`. `files` are directories
    /// and programs that templates run: the runtimes' files, the interpreters.
    pub fn new(criu: &str, init: &str, files: &[&Path]) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let processor: Vec<&str> = cpuinfo
            .lines()
            .take_while(|line| !line.is_empty())
            .filter(|line| {
                // The features that code may have chosen its instructions by; not frequencies, which change.
                ["model name", "flags", "Features", "CPU part"]
                    .iter()
                    .any(|name| line.starts_with(name))
            })
            .collect();
        let mut hash = Sha256::new();
        for part in [
            read("/proc/sys/kernel/osrelease"),
            read("/proc/sys/kernel/version"),
            // Clocks that never run backwards would, in a template from before the machine started.
            read("/proc/sys/kernel/random/boot_id"),
            processor.join("\n"),
            criu.to_owned(),
            init.to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        ] {
            add(&mut hash, &part);
        }
        for path in files {
            add_files(&mut hash, path);
        }
        Self(hex::encode(hash.finalize()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which image is meant: a version of a function, and everything that went into its template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The function's name.
    pub function: String,
    /// Its version.
    pub version: u32,
    /// Hash of everything the template was made from.
    pub fingerprint: String,
}

impl Key {
    /// `parts` is all that the template was made from: code, settings, environment, program.
    pub fn new(
        function: &str,
        version: u32,
        host: &HostFingerprint,
        parts: &impl Serialize,
    ) -> Self {
        let mut hash = Sha256::new();
        add(&mut hash, host.as_str());
        add(&mut hash, &serde_json::to_string(parts).unwrap_or_default());
        Self {
            function: function.to_owned(),
            version,
            fingerprint: hex::encode(hash.finalize()),
        }
    }

    /// Name of the image's directory; unique, and safe as a name, since functions' names are.
    pub fn directory(&self) -> String {
        let fingerprint = self.fingerprint.get(..16).unwrap_or(&self.fingerprint);
        format!("{}-{}-{fingerprint}", self.function, self.version)
    }
}

/// Length first, so that no two lists of parts give the same bytes.
fn add(hash: &mut Sha256, part: &str) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

/// Names, sizes and times of the files at or below `path`: they change whenever a file is replaced, and are cheap to
/// read.
fn add_files(hash: &mut Sha256, path: &Path) {
    let Ok(meta) = fs::metadata(path) else {
        return add(hash, "missing");
    };
    let identity = if meta.is_dir() {
        path.display().to_string()
    } else {
        let (size, time) = (meta.size(), (meta.mtime(), meta.mtime_nsec()));
        format!("{} {size} {time:?} {}", path.display(), meta.ino())
    };
    add(hash, &identity);
    if meta.is_dir() {
        let mut names: Vec<_> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        names.sort();
        for name in names {
            add_files(hash, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostFingerprint {
        HostFingerprint(text.to_owned())
    }

    #[test]
    fn any_part_makes_another_key() {
        let key = Key::new("f", 1, &host("a"), &("code", "env"));
        assert_eq!(key, Key::new("f", 1, &host("a"), &("code", "env")));
        assert_ne!(
            key.fingerprint,
            Key::new("f", 1, &host("b"), &("code", "env")).fingerprint
        );
        assert_ne!(
            key.fingerprint,
            Key::new("f", 1, &host("a"), &("code", "other")).fingerprint
        );
        assert_ne!(
            key.directory(),
            Key::new("f", 2, &host("a"), &("code", "env")).directory()
        );
        assert!(key.directory().starts_with("f-1-"));
    }

    #[test]
    fn a_replaced_file_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("worker.so");
        let fingerprint = |path: &Path| {
            let mut hash = Sha256::new();
            add_files(&mut hash, path);
            hex::encode(hash.finalize())
        };
        let empty = fingerprint(dir.path());
        fs::write(&file, "one").unwrap();
        let first = fingerprint(dir.path());
        assert_ne!(empty, first);
        assert_eq!(first, fingerprint(dir.path()));
        fs::write(dir.path().join("new"), "two").unwrap();
        fs::rename(dir.path().join("new"), &file).unwrap();
        assert_ne!(first, fingerprint(dir.path()));
    }
}
