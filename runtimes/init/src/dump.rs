//! `hearth-init dump`: has CRIU write the template of a live sandbox to an image.
//!
//! It runs as the host's root: reading the system call filter of a process needs capabilities of the host. It enters
//! the sandbox's namespaces except the user namespace, so that CRIU finds the template in namespaces of its own and
//! leaves those out of the image; what is hostile inside has another user and can neither signal nor trace it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use hearth_init::criu::{DUMP_LOG, DumpSpec, KDAT, last_errors};
use hearth_init::{TEMPLATE_PID, wire};
use rustix::mount::{MountFlags, MountPropagationFlags};
use serde::Serialize;

use crate::run_criu::{Criu, pipes};
use crate::{idsimage, sys};

/// What `hearth-init dump` prints.
#[derive(Debug, Serialize)]
pub struct DumpReport {
    /// Why there is no image, or null.
    error: Option<String>,
}

/// Dumps, which ends the template.
pub fn run() -> DumpReport {
    DumpReport {
        error: dump().err(),
    }
}

fn dump() -> Result<(), String> {
    let (spec, sandbox) = order().map_err(|error| format!("reading the order: {error}"))?;
    let criu = Criu::open(&spec.criu, &spec.images, &spec.work).map_err(|error| error.to_string())?;
    enter(&sandbox)?;

    let mut command = criu
        .command("dump", DUMP_LOG)
        .map_err(|error| error.to_string())?;
    command
        .args(["--tree", &TEMPLATE_PID.to_string(), "--ext-unix-sk"])
        .args(["--external", &format!("unix[{}]", spec.outside.control)])
        .args(["--external", &format!("unix[{}]", spec.control_peer)]);
    for pipe in pipes(&spec.outside) {
        command.args(["--external", &pipe]);
    }
    // Not a fork of this process: the pid namespace holds for children only, and this command is one.
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("starting CRIU: {error}"))?;
    if !status.success() {
        return Err(criu.errors(DUMP_LOG));
    }
    share_the_user_namespace(&criu.images)
        .map_err(|error| format!("adapting the image to its user namespace: {error}"))
}

/// One datagram on standard input: the [`DumpSpec`] as a file, and PID 1's pidfd.
fn order() -> io::Result<(DumpSpec, OwnedFd)> {
    let (_, fds) = wire::receive(io::stdin(), &mut [0; 16])?;
    let [spec, sandbox] = <[OwnedFd; 2]>::try_from(fds)
        .map_err(|fds| io::Error::other(format!("{} descriptors, not 2", fds.len())))?;
    let mut text = Vec::new();
    File::from(spec).read_to_end(&mut text)?;
    Ok((serde_json::from_slice(&text)?, sandbox))
}

/// Runs `criu check` where `/run` is a file system in memory, which is where CRIU keeps what it finds out about the
/// kernel, and copies that to `kdat`.
pub fn check(kdat: &Path, mut arguments: impl Iterator<Item = OsString>) -> DumpReport {
    let mut check = || -> Result<(), String> {
        let program = arguments.next().ok_or("no program")?;
        sys::unshare_mounts().map_err(|error| format!("a mount namespace: {error}"))?;
        let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        rustix::mount::mount_change("/", private)
            .map_err(|error| format!("making all mounts private: {error}"))?;
        // Opened before /run is covered: the data directory may be there.
        let mut kept = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(kdat)
            .map_err(|error| format!("{}: {error}", kdat.display()))?;
        rustix::mount::mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID, None)
            .map_err(|error| format!("mounting /run: {error}"))?;
        let output = Command::new(program)
            .args(arguments.by_ref())
            .arg("check")
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("starting CRIU: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("criu check: {}", last_errors(&said)));
        }
        let notes = fs::read(Path::new("/").join(KDAT))
            .map_err(|error| format!("what CRIU found out about the kernel: {error}"))?;
        kept.write_all(&notes)
            .map_err(|error| format!("{}: {error}", kdat.display()))
    };
    DumpReport {
        error: check().err(),
    }
}

fn enter(sandbox: &OwnedFd) -> Result<(), String> {
    sys::enter_namespaces(sandbox).map_err(|error| format!("entering the sandbox: {error}"))
}

/// CRIU ran outside the sandbox's user namespace and noted it as one to be made. It is restored from inside one that is
/// there already: every process's note is made to say what CRIU's own says.
fn share_the_user_namespace(images: &OwnedFd) -> io::Result<()> {
    let read = |name: &str| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(images, name, rustix::fs::OFlags::RDONLY)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let outer = idsimage::user_namespace_of_criu(&read("inventory.img")?)?;
    for entry in rustix::fs::Dir::read_from(images)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if !(name.starts_with("ids-") && Path::new(name).extension().is_some_and(|e| e == "img")) {
            continue;
        }
        let changed = idsimage::with_user_namespace(&read(name)?, outer)?;
        let file = open(
            images,
            name,
            rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::TRUNC,
        )?;
        file.write_all_at(&changed, 0)?;
    }
    Ok(())
}

fn open(dir: &OwnedFd, name: &str, flags: rustix::fs::OFlags) -> io::Result<File> {
    Ok(File::from(rustix::fs::openat(
        dir,
        name,
        flags | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NOFOLLOW,
        rustix::fs::Mode::empty(),
    )?))
}
