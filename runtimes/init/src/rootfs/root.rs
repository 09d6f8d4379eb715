//! The directory that becomes the root: how files, links, devices and the host's directories come into it.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev};
use rustix::mount::MountFlags;

use crate::error::JailError;
use crate::mounts;

/// Links that every program expects in `/dev`.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
];
/// The only devices, with their minor numbers; the major one is [`MEMORY`].
const DEVICES: &[(&str, u32)] = &[
    ("null", 3),
    ("zero", 5),
    ("full", 7),
    ("random", 8),
    ("urandom", 9),
];
/// Major number of those devices (`Documentation/admin-guide/devices.txt`).
const MEMORY: u32 = 1;
/// `/dev`: nothing in it but devices, links and a place for `/dev/shm`.
const DEV_OPTIONS: &CStr = c"mode=0755,size=4k,nr_inodes=16";

/// The directory that becomes the root, and the host user to whom its files belong.
pub(super) struct Root<'a> {
    pub path: &'a Path,
    pub owner: u32,
    /// The host's directory below it, in which nothing is.
    pub empty: OwnedFd,
}

impl Root<'_> {
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Gives a file to the sandbox's root user, so that it is not shown as owned by `nobody`. It cannot be written: the
    /// mount is read-only.
    pub(super) fn own(&self, name: &str) -> Result<(), JailError> {
        std::os::unix::fs::lchown(self.at(name), Some(self.owner), Some(self.owner))
            .map_err(JailError::mount(format!("owning /{name}")))
    }

    pub(super) fn directory(&self, name: &str) -> Result<(), JailError> {
        fs::DirBuilder::new()
            .mode(0o755)
            .create(self.at(name))
            .map_err(JailError::mount(format!("making /{name}")))?;
        self.own(name)
    }

    pub(super) fn link(&self, name: &str, target: impl AsRef<Path>) -> Result<(), JailError> {
        std::os::unix::fs::symlink(target, self.at(name))
            .map_err(JailError::mount(format!("linking /{name}")))?;
        self.own(name)
    }

    pub(super) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), JailError> {
        let write = || {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(self.at(name))?;
            file.write_all(content.as_ref())
        };
        write().map_err(JailError::mount(format!("writing /{name}")))?;
        self.own(name)
    }

    /// A short file of the host, if it exists.
    pub(super) fn copy(&self, source: &Path, name: &str) -> Result<(), JailError> {
        match fs::read(source) {
            Ok(content) => self.file(name, content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(JailError::mount(format!("reading {}", source.display()))(
                error,
            )),
        }
    }

    /// Shows a directory of the host, which cannot be changed through it.
    pub(super) fn show(&self, source: &Path, name: &str) -> Result<(), JailError> {
        mounts::show(source, &self.at(name), &self.empty).map(drop)
    }

    /// `/dev`: a file system of its own, since no other of the sandbox's may have devices.
    pub(super) fn devices(&self) -> Result<(), JailError> {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        rustix::mount::mount("tmpfs", self.at("dev"), "tmpfs", flags, DEV_OPTIONS)
            .map_err(JailError::mount("mounting /dev"))?;
        self.own("dev")?;
        self.directory("dev/shm")?;
        for (name, minor) in DEVICES {
            let (name, mode) = (format!("dev/{name}"), Mode::from_raw_mode(0o666));
            let make = || {
                let device = makedev(MEMORY, *minor);
                rustix::fs::mknodat(CWD, self.at(&name), FileType::CharacterDevice, mode, device)?;
                // Not cut by the umask.
                rustix::fs::chmod(self.at(&name), mode)
            };
            make().map_err(JailError::mount(format!("making /{name}")))?;
            self.own(&name)?;
        }
        for (name, target) in DEVICE_LINKS {
            self.link(name, target)?;
        }
        self.seal("dev", MountFlags::NOEXEC)
    }

    /// Makes a mount read-only and nosuid, and what `flags` say.
    pub(super) fn seal(&self, name: &str, flags: MountFlags) -> Result<(), JailError> {
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | flags;
        rustix::mount::mount_remount(self.at(name), flags, c"")
            .map_err(JailError::mount(format!("making /{name} read-only")))
    }

    /// Shows `/bin`, `/lib` … the way the host has them.
    pub(super) fn usr_name(&self, name: &str) -> Result<(), JailError> {
        let host = Path::new("/").join(name);
        match fs::symlink_metadata(&host) {
            Err(_) => Ok(()),
            Ok(meta) if meta.is_symlink() => {
                let target = fs::read_link(&host)
                    .map_err(JailError::mount(format!("reading {}", host.display())))?;
                self.link(name, target)
            }
            Ok(_) => {
                self.directory(name)?;
                self.show(&host, name)
            }
        }
    }

    /// `/etc/localtime`: a link when the host's zone file is below `/usr`, else a copy; UTC without one.
    pub(super) fn local_time(&self) -> Result<(), JailError> {
        const NAME: &str = "etc/localtime";
        let Ok(zone) = fs::canonicalize("/etc/localtime") else {
            return Ok(());
        };
        if zone.starts_with("/usr") {
            self.link(NAME, zone)
        } else {
            self.copy(&zone, NAME)
        }
    }
}
