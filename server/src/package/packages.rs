//! Code packages on disk: one directory for each content hash, shared by all versions with the same code.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Entry, PackageError, Unpacked, unpack};
use crate::model::Code;
use crate::store::Store;

/// Directory name prefix of uploads that are still being unpacked.
const STAGING: &str = ".staging-";

/// The directory of all packages. Cheap to clone.
#[derive(Clone)]
pub struct Packages {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    store: Store,
    in_hand: Mutex<InHand>,
    /// Held while a package is moved into place and while unused ones are found and removed, so that these do not
    /// interleave.
    moving: tokio::sync::Mutex<()>,
}

/// Packages in use by a change or a deployment, whatever the store says.
#[derive(Default)]
struct InHand {
    users: HashMap<String, usize>,
    /// Packages whose removal was postponed: checked again when their last user is gone.
    unwanted: HashSet<String>,
}

/// A package in use: its directory stays at least as long as this.
pub struct Package {
    packages: Packages,
    sha256: String,
}

impl Package {
    /// Its directory.
    pub fn path(&self) -> PathBuf {
        self.packages.inner.dir.join(&self.sha256)
    }

    /// Checks that it has what a handler setting names.
    ///
    /// # Errors
    /// [`PackageError`].
    pub async fn check(&self, entry: Entry) -> Result<(), PackageError> {
        let path = self.path();
        blocking(move || entry.check_in(&path)).await
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let mut in_hand = self.packages.inner.in_hand.lock();
        let users = in_hand.users.get_mut(&self.sha256);
        let is_last = users.is_none_or(|users| {
            *users -= 1;
            *users == 0
        });
        if !is_last {
            return;
        }
        in_hand.users.remove(&self.sha256);
        if in_hand.unwanted.remove(&self.sha256)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (packages, sha256) = (self.packages.clone(), std::mem::take(&mut self.sha256));
            runtime.spawn(async move { packages.drop_unused(&sha256).await });
        }
    }
}

/// An upload that is unpacked and not in its place yet.
pub struct Staged {
    /// Where it is.
    pub dir: PathBuf,
    /// Its hash and size.
    pub unpacked: Unpacked,
    /// Whether no package has this content yet.
    pub is_new: bool,
}

impl Packages {
    /// The packages in `dir`, which must exist.
    pub fn new(dir: PathBuf, store: Store) -> Self {
        Self {
            inner: Arc::new(Inner {
                dir,
                store,
                in_hand: Mutex::default(),
                moving: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Takes a package in hand that is in its place already.
    pub fn hold(&self, sha256: &str) -> Package {
        let mut in_hand = self.inner.in_hand.lock();
        *in_hand.users.entry(sha256.to_owned()).or_default() += 1;
        Package {
            packages: self.clone(),
            sha256: sha256.to_owned(),
        }
    }

    /// Unpacks an upload beside the packages. `base` is the package that edits apply to.
    ///
    /// # Errors
    /// [`PackageError`]; nothing of a refused upload stays.
    pub async fn stage(
        &self,
        code: Code,
        base: Option<&Package>,
        entry: Entry,
    ) -> Result<Staged, PackageError> {
        let (dir, base) = (self.inner.dir.clone(), base.map(Package::path));
        let (dir, unpacked) = blocking(move || stage(&dir, &code, base.as_deref(), &entry)).await?;
        let is_new = !self.inner.dir.join(&unpacked.sha256).exists();
        Ok(Staged {
            dir,
            unpacked,
            is_new,
        })
    }

    /// Moves a staged upload to its place, whole or not at all.
    ///
    /// # Errors
    /// [`PackageError::Io`].
    pub async fn install(&self, staged: Staged) -> Result<(Unpacked, Package), PackageError> {
        let Staged { dir, unpacked, .. } = staged;
        let staging = blocking(move || settle(dir)).await?;
        let _moving = self.inner.moving.lock().await;
        let (dir, sha256) = (self.inner.dir.clone(), unpacked.sha256.clone());
        blocking(move || put_in_place(&dir, &staging, &sha256)).await?;
        let package = self.hold(&unpacked.sha256);
        Ok((unpacked, package))
    }

    /// Removes a package if no version refers to it; one that is in hand, when it no longer is.
    pub async fn drop_unused(&self, sha256: &str) {
        let _moving = self.inner.moving.lock().await;
        {
            let mut in_hand = self.inner.in_hand.lock();
            if in_hand.users.contains_key(sha256) {
                in_hand.unwanted.insert(sha256.to_owned());
                return;
            }
        }
        match self.inner.store.code_in_use().await {
            Ok(in_use) if !in_use.iter().any(|used| used == sha256) => {
                let (dir, sha256) = (self.inner.dir.clone(), sha256.to_owned());
                let remove = move || remove_tree(&set_aside(&dir, &sha256)?);
                let removed = tokio::task::spawn_blocking(remove).await;
                if let Ok(Err(error)) = removed {
                    tracing::warn!(%error, "cannot remove unused code");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot remove unused code"),
        }
    }

    /// Removes unreferenced packages and those that a crash left half unpacked. Blocking; at start only.
    ///
    /// # Errors
    /// When the directory cannot be read or something in it not be removed.
    pub fn collect_garbage(&self, in_use: &HashSet<String>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.inner.dir)? {
            let entry = entry?;
            let known = entry
                .file_name()
                .to_str()
                .is_some_and(|name| in_use.contains(name));
            if !known {
                let name = entry.file_name();
                remove_tree(&set_aside(&self.inner.dir, &name.to_string_lossy())?)?;
            }
        }
        Ok(())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PackageError> + Send + 'static,
) -> Result<T, PackageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(std::io::Error::other)?
}

/// Unpacks an upload beside the packages.
fn stage(
    dir: &Path,
    code: &Code,
    base: Option<&Path>,
    entry: &Entry,
) -> Result<(PathBuf, Unpacked), PackageError> {
    let staging = dir.join(format!("{STAGING}{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&staging)?;
    match unpack(code, base, entry, &staging) {
        Ok(unpacked) => Ok((staging, unpacked)),
        Err(error) => {
            remove_tree(&staging)?;
            Err(error)
        }
    }
}

/// Puts all of a staged package on the disk, or removes it.
fn settle(staging: PathBuf) -> Result<PathBuf, PackageError> {
    match sync_tree(&staging) {
        Ok(()) => Ok(staging),
        Err(error) => {
            remove_tree(&staging)?;
            Err(error)
        }
    }
}

/// Takes a package out of its place, whole, to be removed: what is in a place is always whole, and a removal that is cut
/// short leaves nothing there. Returns where it is now, which the next start clears.
fn set_aside(dir: &Path, sha256: &str) -> std::io::Result<PathBuf> {
    let aside = dir.join(format!("{STAGING}{}", uuid::Uuid::now_v7()));
    match std::fs::rename(dir.join(sha256), &aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(aside),
        moved => moved
            .and_then(|()| std::fs::File::open(dir)?.sync_all())
            .map(|()| aside),
    }
}

fn put_in_place(dir: &Path, staging: &Path, sha256: &str) -> Result<(), PackageError> {
    let place = dir.join(sha256);
    let placed = match place.exists() {
        // The same code was uploaded before.
        true => Ok(()),
        false => {
            std::fs::rename(staging, &place).and_then(|()| std::fs::File::open(dir)?.sync_all())
        }
    };
    remove_tree(staging)?;
    Ok(placed?)
}

/// Removes a tree whose directories are read-only.
fn remove_tree(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Files of a package that are synced one by one. More of them are left to one sync of the file system: each sync of its own
/// waits for the disk's journal.
const SYNCED_SINGLY: usize = 256;

/// Makes an unpacked tree survive a loss of power before anything refers to it.
fn sync_tree(dir: &Path) -> Result<(), PackageError> {
    let mut paths = Vec::new();
    list_tree(dir, &mut paths)?;
    if paths.len() > SYNCED_SINGLY {
        rustix::fs::syncfs(std::fs::File::open(dir)?).map_err(std::io::Error::from)?;
        return Ok(());
    }
    for path in paths {
        std::fs::File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// Everything in the tree and the tree itself, what is in a directory before it.
fn list_tree(dir: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list_tree(&entry.path(), paths)?;
        } else {
            paths.push(entry.path());
        }
    }
    paths.push(dir.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_that_was_cut_short_leaves_no_half_a_package() {
        let dir = tempfile::tempdir().unwrap();
        let whole = |name: &str| {
            let staging = dir.path().join(name);
            std::fs::create_dir(&staging).unwrap();
            for file in ["main.py", "data.bin"] {
                std::fs::write(staging.join(file), file).unwrap();
            }
            staging
        };
        put_in_place(dir.path(), &whole("first"), "sha").unwrap();
        // As much of a removal as there was before the power went.
        let aside = set_aside(dir.path(), "sha").unwrap();
        std::fs::remove_file(aside.join("data.bin")).unwrap();
        // The same code again, before anything was cleared.
        put_in_place(dir.path(), &whole("second"), "sha").unwrap();
        for file in ["main.py", "data.bin"] {
            let read = std::fs::read_to_string(dir.path().join("sha").join(file));
            assert_eq!(read.unwrap(), file);
        }
        // A missing package can be removed, too.
        remove_tree(&set_aside(dir.path(), "never").unwrap()).unwrap();
    }
}
