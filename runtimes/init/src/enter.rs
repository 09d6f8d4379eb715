//! What PID 1 mounts for itself: the root that stage 0 built becomes its root, with `/proc`, `/tmp` and `/dev/shm` of the
//! sandbox's own.

use std::ffi::{CStr, CString};

use hearth_init::Assignment;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

use crate::error::JailError;

/// Smallest page of the supported machines, in bytes: what a file in memory takes at least, if it has content.
const PAGE: u64 = 4096;
/// Nothing in it is a device or gives rights.
const FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Sizes of the file systems in memory that a function may write to, bytes.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    tmp: u64,
    shm: u64,
}

hearth_init::fields_of!(Sizes { tmp, shm });

impl Sizes {
    /// Those of a pre-warmed sandbox without a function: minimal, and not 0, which would mean no limit.
    const PREWARMED: Self = Self {
        tmp: 16 * PAGE,
        shm: 16 * PAGE,
    };

    /// Those that a function has.
    pub fn of(function: &Assignment) -> Self {
        Self {
            tmp: function.tmp_bytes,
            shm: function.shm_bytes,
        }
    }

    /// Mounts them, or changes their sizes, by a function of path, flags and options.
    fn apply(
        self,
        mount: impl Fn(&str, MountFlags, &CStr) -> rustix::io::Result<()>,
    ) -> Result<(), JailError> {
        for (path, bytes, flags) in [
            ("tmp", self.tmp, FLAGS),
            ("dev/shm", self.shm, FLAGS | MountFlags::NOEXEC),
        ] {
            // A file without content takes memory, too: as many files as pages.
            let files = bytes / PAGE;
            let options = CString::new(format!("mode=1777,size={bytes},nr_inodes={files}"))
                .map_err(|error| JailError::Spec(error.to_string()))?;
            mount(path, flags, &options).map_err(JailError::mount(format!("mounting /{path}")))?;
        }
        Ok(())
    }
}

/// Mounts the sandbox's own file systems and makes the working directory the root. A pre-warmed sandbox gets its sizes
/// later.
pub fn enter_root(sizes: Option<Sizes>) -> Result<(), JailError> {
    // The mounts copied from stage 0 are locked, the root's among them, and a locked mount cannot become the root: a
    // copy of the whole tree, laid over it, can.
    let tree = rustix::mount::open_tree(
        rustix::fs::CWD,
        ".",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )
    .map_err(JailError::mount("copying the root's mounts"))?;
    rustix::mount::move_mount(
        &tree,
        "",
        rustix::fs::CWD,
        ".",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .map_err(JailError::mount("mounting the root"))?;
    rustix::process::fchdir(&tree).map_err(JailError::mount("entering the root"))?;
    drop(tree);

    // Must happen while the host's /proc is visible: the kernel does not mount a /proc less restricted than a visible
    // one.
    let flags = FLAGS | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "proc", "proc", flags, None)
        .map_err(JailError::mount("mounting /proc"))?;
    let sizes = sizes.unwrap_or(Sizes::PREWARMED);
    sizes.apply(|path, flags, options| {
        rustix::mount::mount("tmpfs", path, "tmpfs", flags, options)
    })?;

    rustix::process::pivot_root(".", ".").map_err(JailError::mount("pivot_root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)
        .map_err(JailError::mount("detaching the host's tree"))?;
    rustix::process::chdir("/").map_err(JailError::mount("entering the new root"))
}

/// For a pre-warmed sandbox with an assigned function: sets the sizes of `/tmp` and `/dev/shm`, and stops propagation
/// of mounts from outside.
pub fn settle(sizes: Sizes) -> Result<(), JailError> {
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .map_err(JailError::mount("making all mounts private"))?;
    sizes.apply(|path, flags, options| rustix::mount::mount_remount(path, flags, options))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_file_system_has_its_size_and_as_many_files_as_pages() {
        let seen = RefCell::new(Vec::new());
        let sizes = Sizes {
            tmp: 16 << 20,
            shm: 2 * PAGE,
        };
        sizes
            .apply(|path, flags, options| {
                let options = options.to_str().expect("text").to_owned();
                let executable = !flags.contains(MountFlags::NOEXEC);
                assert!(flags.contains(MountFlags::NOSUID | MountFlags::NODEV));
                seen.borrow_mut()
                    .push((path.to_owned(), executable, options));
                Ok(())
            })
            .expect("mounted");
        let expected = [
            ("tmp", true, "mode=1777,size=16777216,nr_inodes=4096"),
            ("dev/shm", false, "mode=1777,size=8192,nr_inodes=2"),
        ];
        let expected =
            expected.map(|(path, executable, options)| (path.into(), executable, options.into()));
        assert_eq!(seen.into_inner(), expected);
    }

    #[test]
    fn a_file_system_that_cannot_be_mounted_is_named() {
        let refused = Sizes::PREWARMED
            .apply(|path, _, _| match path {
                "tmp" => Ok(()),
                _ => Err(rustix::io::Errno::PERM),
            })
            .expect_err("refused");
        assert!(refused.to_string().contains("/dev/shm"), "{refused}");
    }
}
