//! The root as the function sees it: a small file system in memory, with what the host gives mounted read-only in it.
//!
//! Directories of the host are shown through overlays and its short files are copied, so that the inodes inside are the
//! sandbox's own: locks on them do not affect the host, and `/proc/self/mountinfo` reveals no host paths.
//!
//! Runs as the host's root in a mount namespace that only this process has. Every mount is made and sealed here, so
//! that the kernel locks it when the sandbox's own, less privileged mount namespace is copied from this one: nothing
//! inside can make it writable again or take it away to see what is below.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hearth_init::criu::KDAT;
use hearth_init::{Assignment, INNER_UID, JailSpec};
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev};
use rustix::mount::{MountFlags, MountPropagationFlags};

use crate::error::JailError;
use crate::mounts::{self, detached};

/// Directories of the root, parents first.
const DIRECTORIES: &[&str] = &[
    "dev",
    "etc",
    "etc/ssl",
    "opt",
    "opt/hearth",
    "proc",
    "tmp",
    "usr",
    "var",
    "var/task",
];
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
/// Top-level names that are links into `/usr` on a merged system, and directories of their own on others.
const USR_NAMES: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// What is shown of the host's `/etc`, where it exists. None of it is secret.
const LOADER_CACHE: &str = "etc/ld.so.cache";
const CERTIFICATES: &str = "etc/ssl/certs";

/// Size of the root's own files in bytes, and their number: a few short ones and copies of the loader's cache (20 to 200 KiB)
/// and of the zone (4 KiB at most); the rest is mounted.
const ROOT_BYTES: u64 = 4 << 20;
const ROOT_FILES: u32 = 256;

const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// Where the function's code is.
pub const CODE: &str = "var/task";
/// The only file of the root that depends on the function.
const HOSTS: &str = "etc/hosts";

/// Fills `spec.root`, mounts everything that the host gives to it, seals it and makes it the working directory.
///
/// The root of a pre-warmed sandbox lacks the function's code and host name. Returns a handle for adding them. What is
/// mounted in that root in this namespace propagates to all copies of it and is locked there like everything else.
pub fn build(spec: &JailSpec) -> Result<Option<Incomplete>, JailError> {
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .map_err(JailError::mount("making all mounts private"))?;

    let root = Root {
        path: &spec.root,
        owner: spec.uid_base,
        // What is mounted on it next does not cover a descriptor of it.
        empty: mounts::directory(&spec.root)
            .map_err(JailError::mount("opening the root's directory"))?,
    };
    // In memory, and in this mount, which alone becomes the sandbox's root: a disk's file system takes milliseconds for two
    // dozen files, and more for each that was removed a moment ago.
    let options = CString::new(format!(
        "mode=0755,size={ROOT_BYTES},nr_inodes={ROOT_FILES}"
    ))
    .map_err(|error| JailError::Spec(error.to_string()))?;
    rustix::mount::mount(
        "tmpfs",
        &spec.root,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        options.as_c_str(),
    )
    .map_err(JailError::mount("mounting the root"))?;
    root.own("")?;
    for name in DIRECTORIES {
        root.directory(name)?;
    }
    root.devices()?;
    root.directory(&format!("opt/hearth/{}", spec.runtime_name))?;
    // Node looks for modules beside each directory on the way up from the code: the runtime's own come last.
    if spec.runtime_dir.join("node_modules").is_dir() {
        let modules = format!("/opt/hearth/{}/node_modules", spec.runtime_name);
        root.link("node_modules", modules)?;
    }
    root.file("etc/passwd", passwd())?;
    root.file("etc/group", format!("root:x:0:\nsandbox:x:{INNER_UID}:\n"))?;
    root.file("etc/nsswitch.conf", NSSWITCH)?;
    let function = spec.assignment.as_ref();
    root.file(
        HOSTS,
        function.map_or_else(String::new, |function| hosts(&function.hostname)),
    )?;
    root.copy(Path::new("/").join(LOADER_CACHE).as_path(), LOADER_CACHE)?;
    root.local_time()?;
    let is_booted = function.is_some_and(|function| function.restore.is_none());
    if let (Some(criu), true) = (&spec.criu, is_booted) {
        root.directory("run")?;
        let notes = fs::read(&criu.kdat).map_err(JailError::mount("reading CRIU's notes"))?;
        root.file(KDAT, &notes)?;
    }

    root.show(Path::new("/usr"), "usr")?;
    for name in USR_NAMES {
        root.usr_name(name)?;
    }
    let certificates = Path::new("/").join(CERTIFICATES);
    if certificates.is_dir() {
        root.directory(CERTIFICATES)?;
        root.show(&certificates, CERTIFICATES)?;
    }
    if let Some(function) = function {
        let code = mounts::beneath(&function.code_root, &function.code)?;
        root.show(&mounts::path_of(&code), CODE)?;
    }
    root.show(
        &spec.runtime_dir,
        &format!("opt/hearth/{}", spec.runtime_name),
    )?;
    let writable = match function {
        None => Some(detached(&spec.root)?),
        Some(_) => None,
    };
    root.seal("", MountFlags::NODEV)?;
    if writable.is_some() {
        rustix::mount::mount_change(&spec.root, MountPropagationFlags::SHARED)
            .map_err(JailError::mount("sharing the root with the sandbox's"))?;
    }
    rustix::process::chdir(&spec.root).map_err(JailError::mount("entering the root"))?;
    let empty = root.empty;
    Ok(writable.map(|writable| Incomplete { writable, empty }))
}

/// The root of a pre-warmed sandbox, still changeable.
pub struct Incomplete {
    /// The root as a mount that can be written to and is attached nowhere.
    writable: OwnedFd,
    /// See [`Root::empty`].
    empty: OwnedFd,
}

/// Adds the function's code and host name to the root of a pre-warmed sandbox. Returns the code's directory.
pub fn complete(
    spec: &JailSpec,
    function: &Assignment,
    root: &Incomplete,
) -> Result<OwnedFd, JailError> {
    let write = || -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&root.writable, HOSTS, flags, Mode::empty())?;
        File::from(file).write_all(hosts(&function.hostname).as_bytes())
    };
    write().map_err(JailError::mount(format!("writing /{HOSTS}")))?;
    let code = mounts::beneath(&function.code_root, &function.code)?;
    mounts::show(&mounts::path_of(&code), &spec.root.join(CODE), &root.empty)
}

fn passwd() -> String {
    format!(
        "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:{INNER_UID}:{INNER_UID}:sandbox:/tmp:/usr/sbin/nologin\n"
    )
}

fn hosts(hostname: &str) -> String {
    format!("127.0.0.1 localhost {hostname}\n::1 localhost\n")
}

/// The directory that becomes the root, and the host user to whom its files belong.
struct Root<'a> {
    path: &'a Path,
    owner: u32,
    /// The host's directory below it, in which nothing is.
    empty: OwnedFd,
}

impl Root<'_> {
    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Gives a file to the sandbox's root user, so that it is not shown as owned by `nobody`. It cannot be written: the
    /// mount is read-only.
    fn own(&self, name: &str) -> Result<(), JailError> {
        std::os::unix::fs::lchown(self.at(name), Some(self.owner), Some(self.owner))
            .map_err(JailError::mount(format!("owning /{name}")))
    }

    fn directory(&self, name: &str) -> Result<(), JailError> {
        fs::DirBuilder::new()
            .mode(0o755)
            .create(self.at(name))
            .map_err(JailError::mount(format!("making /{name}")))?;
        self.own(name)
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) -> Result<(), JailError> {
        std::os::unix::fs::symlink(target, self.at(name))
            .map_err(JailError::mount(format!("linking /{name}")))?;
        self.own(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), JailError> {
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
    fn copy(&self, source: &Path, name: &str) -> Result<(), JailError> {
        match fs::read(source) {
            Ok(content) => self.file(name, content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(JailError::mount(format!("reading {}", source.display()))(
                error,
            )),
        }
    }

    /// Shows a directory of the host, which cannot be changed through it.
    fn show(&self, source: &Path, name: &str) -> Result<(), JailError> {
        mounts::show(source, &self.at(name), &self.empty).map(drop)
    }

    /// `/dev`: a file system of its own, since no other of the sandbox's may have devices.
    fn devices(&self) -> Result<(), JailError> {
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
    fn seal(&self, name: &str, flags: MountFlags) -> Result<(), JailError> {
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | flags;
        rustix::mount::mount_remount(self.at(name), flags, c"")
            .map_err(JailError::mount(format!("making /{name} read-only")))
    }

    /// Shows `/bin`, `/lib` … the way the host has them.
    fn usr_name(&self, name: &str) -> Result<(), JailError> {
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
    fn local_time(&self) -> Result<(), JailError> {
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

/// Opens up the directory's permissions for the sandbox's users, whatever the server's umask made them.
pub fn open_up(root: &Path) -> Result<(), JailError> {
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))
        .map_err(JailError::mount("opening up the root's permissions"))
}
