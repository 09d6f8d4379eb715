//! The root as the function sees it: a small file system in memory, with what the host gives mounted read-only in it.
//!
//! Directories of the host are shown through overlays and its short files are copied, so that the inodes inside are the
//! sandbox's own: locks on them do not affect the host, and `/proc/self/mountinfo` reveals no host paths.
//!
//! Runs as the host's root in a mount namespace that only this process has. Every mount is made and sealed here, so
//! that the kernel locks it when the sandbox's own, less privileged mount namespace is copied from this one: nothing
//! inside can make it writable again or take it away to see what is below.

mod root;

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hearth_init::criu::KDAT;
use hearth_init::{Assignment, INNER_UID, JailSpec};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::mount::{MountFlags, MountPropagationFlags};

use crate::error::JailError;
use crate::mounts::{self, detached};

use root::Root;

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
/// Top-level names that are links into `/usr` on a merged system, and directories of their own on others.
const USR_NAMES: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// What is shown of the host's `/etc`, where it exists. None of it is secret.
const LOADER_CACHE: &str = "etc/ld.so.cache";
const CERTIFICATES: &str = "etc/ssl/certs";

/// Size of the root's own files in bytes, and their number: a few short ones and copies of the loader's cache (20 to 200 KiB),
/// of the zone (4 KiB at most) and of the certificates (200 KiB or so); the rest is mounted.
const ROOT_BYTES: u64 = 4 << 20;
const ROOT_FILES: u32 = 256;

const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// Where the function's code is.
pub const CODE: &str = "var/task";
/// The files of the root that depend on the function; the second is there only if it has a network.
const HOSTS: &str = "etc/hosts";
const RESOLVER: &str = "etc/resolv.conf";
/// A certificate that the function trusts, alone and with those of the host; there only if it has one.
const TRUST: &str = "etc/ssl/hearth.pem";
const TRUST_ALL: &str = "etc/ssl/hearth-all.pem";
const HOST_TRUST: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The host process listens there, in the sandbox's network namespace.
const RESOLVER_CONTENT: &str = "nameserver 127.0.0.1\n";

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
    if function.is_some_and(|function| function.network) {
        root.file(RESOLVER, RESOLVER_CONTENT)?;
    }
    if let Some(trust) = function.and_then(|function| function.trust.as_deref()) {
        root.file(TRUST, trust)?;
        root.file(TRUST_ALL, with_hosts(trust))?;
    }
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
        File::from(file).write_all(hosts(&function.hostname).as_bytes())?;
        let add = |name: &str, content: &[u8]| -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o644);
            let file = rustix::fs::openat(&root.writable, name, flags, mode)?;
            let (user, group) = (Uid::from_raw(spec.uid_base), Gid::from_raw(spec.uid_base));
            rustix::fs::fchown(&file, Some(user), Some(group))?;
            File::from(file).write_all(content)
        };
        if function.network {
            add(RESOLVER, RESOLVER_CONTENT.as_bytes())?;
        }
        if let Some(trust) = &function.trust {
            add(TRUST, trust.as_bytes())?;
            add(TRUST_ALL, &with_hosts(trust))?;
        }
        Ok(())
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

/// A certificate after those that the host trusts.
fn with_hosts(trust: &str) -> Vec<u8> {
    // A host without any has none to add.
    let mut all = fs::read(HOST_TRUST).unwrap_or_default();
    all.extend_from_slice(trust.as_bytes());
    all
}

/// Opens up the directory's permissions for the sandbox's users, whatever the server's umask made them.
pub fn open_up(root: &Path) -> Result<(), JailError> {
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))
        .map_err(JailError::mount("opening up the root's permissions"))
}
