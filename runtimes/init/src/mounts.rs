//! Detached mounts, configured completely before they are attached, so that no intermediate state is visible.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use crate::error::JailError;
use crate::sys;

/// Mounts one more directory of the host, read-only, nosuid and nodev from the first moment on, and returns it.
pub fn mount_sealed(source: &Path, target: &Path) -> Result<OwnedFd, JailError> {
    let mount = detached(source)?;
    sys::seal_mount(&mount).map_err(JailError::mount(format!(
        "making {} read-only",
        source.display()
    )))?;
    attach(&mount, source, target)?;
    Ok(mount)
}

/// Shows a directory of the host at `target`, read-only, nosuid and nodev, and returns the mount: through an overlay of its
/// own, or by a bind if it is on an overlay already, as a container's files are. What is mapped through two of them has a
/// path that leads nowhere, and CRIU could not dump it.
pub fn show(source: &Path, target: &Path, empty: &OwnedFd) -> Result<OwnedFd, JailError> {
    let what = || JailError::mount(format!("mounting an overlay over {}", source.display()));
    let system = rustix::fs::statfs(source).map_err(what())?;
    if system.f_type == libc::OVERLAYFS_SUPER_MAGIC {
        return mount_sealed(source, target);
    }
    let mount = overlay(source, empty).map_err(what())?;
    attach(&mount, source, target)?;
    Ok(mount)
}

/// A read-only, nosuid and nodev overlay over a directory of the host, attached nowhere yet. `empty` is a directory without
/// entries.
///
/// Unlike a bind's, its inodes are its own: a lock taken on one of them meets none that was taken outside. And what
/// `/proc/self/mountinfo` shows of it is how its layers were named here, by number, and not where they are. What is mounted
/// below the directory is not part of it.
pub fn overlay(source: &Path, empty: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let source = directory(source)?;
    let layer = |dir: &OwnedFd| format!("/proc/self/fd/{}", dir.as_raw_fd());
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "source", "overlay")?;
    // Without a layer to write to, the kernel takes no fewer than two.
    let layers = format!("{}:{}", layer(&source), layer(empty));
    fsconfig_set_string(context.as_fd(), "lowerdir", layers)?;
    fsconfig_set_flag(context.as_fd(), "ro")?;
    fsconfig_create(context.as_fd())?;
    let sealed = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, sealed)
}

/// Opens a directory, for its path only.
pub fn directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Opens the directory `path` below `root`, wherever that is mounted in this process's namespace. Follows no link on the
/// way from `root`: who may write below it must not choose what is shown.
pub fn beneath(root: &Path, path: &Path) -> Result<OwnedFd, JailError> {
    let what = || JailError::mount(format!("opening {}", root.join(path).display()));
    let root = directory(root).map_err(what())?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve).map_err(what())
}

/// A path to what a descriptor of this process stands for.
pub fn path_of(fd: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

fn attach(mount: &OwnedFd, source: &Path, target: &Path) -> Result<(), JailError> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", rustix::fs::CWD, target, flags).map_err(JailError::mount(
        format!("mounting {} on {}", source.display(), target.display()),
    ))
}

/// A mount of its own for a directory, attached nowhere yet.
pub fn detached(dir: &Path) -> Result<OwnedFd, JailError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    rustix::mount::open_tree(rustix::fs::CWD, dir, flags).map_err(JailError::mount(format!(
        "copying the mount of {}",
        dir.display()
    )))
}
