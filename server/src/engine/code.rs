//! Code packages on disk: one directory for each content hash, shared by all versions with the same code.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tokio::sync::{RwLock, RwLockReadGuard};

use super::EngineError;
use crate::model::{Code, Runtime};
use crate::package::{self, PackageError, Unpacked};
use crate::store::Store;

/// Directory name prefix of uploads that are still being unpacked.
const STAGING: &str = ".staging-";

impl From<std::io::Error> for EngineError {
    fn from(error: std::io::Error) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<crate::store::StoreError> for EngineError {
    fn from(error: crate::store::StoreError) -> Self {
        match error {
            crate::store::StoreError::Exists(name) => Self::AlreadyExists(name),
            other => Self::Internal(other.to_string()),
        }
    }
}

/// The directory of all packages.
pub(super) struct Packages {
    dir: PathBuf,
    /// Held shared from the installation of a package until a version refers to it, and exclusively while an unused one
    /// is looked for and removed.
    gate: RwLock<()>,
}

impl Packages {
    /// The packages in `dir`, which must exist.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            gate: RwLock::new(()),
        }
    }

    /// Where the package with this hash lies.
    pub(super) fn path(&self, sha256: &str) -> PathBuf {
        self.dir.join(sha256)
    }

    /// Keeps packages from being removed while the guard lives.
    pub(super) async fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().await
    }

    /// Unpacks an upload and puts it in its place, whole or not at all. The caller holds [`Self::hold`].
    pub(super) async fn install(
        &self,
        code: Code,
        handler: &str,
        runtime: Runtime,
    ) -> Result<Unpacked, EngineError> {
        let module = handler
            .rsplit_once('.')
            .map_or(handler, |(module, _)| module)
            .to_owned();
        let extension = match runtime {
            Runtime::Python3 => "py",
            Runtime::Node => "mjs",
        };
        let dir = self.dir.clone();
        let installed =
            tokio::task::spawn_blocking(move || install(&dir, &code, &module, extension)).await;
        Ok(installed.map_err(|error| EngineError::Internal(error.to_string()))??)
    }

    /// Removes a package if no version refers to it. While deploys are under way it is left alone: the next removal or
    /// the next start finds it.
    pub(super) async fn drop_unused(&self, store: &Store, sha256: &str) {
        let Ok(_alone) = self.gate.try_write() else {
            return;
        };
        match store.code_in_use().await {
            Ok(in_use) if !in_use.iter().any(|used| used == sha256) => {
                let place = self.path(sha256);
                let removed = tokio::task::spawn_blocking(move || remove_tree(&place)).await;
                if let Ok(Err(error)) = removed {
                    tracing::warn!(%error, "unused code was not removed");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "unused code was not removed"),
        }
    }

    /// Removes what no version refers to and what a crash left half unpacked. Blocking; at start only.
    pub(super) fn collect_garbage(&self, in_use: &HashSet<String>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let known = entry
                .file_name()
                .to_str()
                .is_some_and(|name| in_use.contains(name));
            if !known {
                remove_tree(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn install(
    dir: &Path,
    code: &Code,
    module: &str,
    extension: &str,
) -> Result<Unpacked, PackageError> {
    let staging = dir.join(format!("{STAGING}{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&staging)?;
    let installed = package::unpack(code, module, extension, &staging).and_then(|unpacked| {
        let place = dir.join(&unpacked.sha256);
        if !place.exists() {
            sync_tree(&staging)?;
            match std::fs::rename(&staging, &place) {
                // Another deploy of the same code was faster.
                Err(_) if place.exists() => {}
                renamed => renamed?,
            }
            std::fs::File::open(dir)?.sync_all()?;
        }
        Ok(unpacked)
    });
    remove_tree(&staging)?;
    installed
}

/// Removes a tree whose directories are read-only.
fn remove_tree(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes an unpacked tree survive a loss of power before anything refers to it.
fn sync_tree(dir: &Path) -> Result<(), PackageError> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            std::fs::File::open(entry.path())?.sync_all()?;
        }
    }
    std::fs::File::open(dir)?.sync_all()?;
    Ok(())
}
