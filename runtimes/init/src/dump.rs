//! `hearth-init dump`: has CRIU write the template of a live sandbox to an image.
//!
//! It runs as the host's root: reading the system call filter of a process needs capabilities of the host. It enters
//! the sandbox's namespaces except the user namespace, so that CRIU finds the template in namespaces of its own and
//! leaves those out of the image; what is hostile inside has another user and can neither signal nor trace it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use hearth_init::criu::{DUMP_LOG, DumpSpec, KDAT, last_errors};
use hearth_init::fields::Fields as _;
use hearth_init::{Outcome, TEMPLATE_PID, wire};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::WaitOptions;

use crate::adapt::adapt;
use crate::run_criu::{Criu, pipes};
use crate::sockets;
use crate::sys::{self, Fork};

/// System call filters of a template: those of `seccomp::FILTERS`.
const FILTERS: &str = "2";

/// Dumps, which leaves the template stopped.
pub fn run() -> Outcome {
    Outcome {
        error: dump().err(),
    }
}

fn dump() -> Result<(), String> {
    let (spec, sandbox) = order().map_err(|error| format!("reading the order: {error}"))?;
    let criu =
        Criu::open(&spec.criu, &spec.images, &spec.work).map_err(|error| error.to_string())?;
    enter(&sandbox)?;
    refuse_what_an_image_would_lose()?;

    let mut command = criu.command(false).map_err(|error| error.to_string())?;
    command
        .args(["dump", "--images-dir", &criu.images_path()])
        // Errors and warnings: all that is ever shown.
        .args(["-v2", "--log-file", DUMP_LOG])
        .args(["--tree", &TEMPLATE_PID.to_string(), "--ext-unix-sk"])
        // The sandbox ends with its template, and so would CRIU, which is in its pid namespace, before it is done.
        .arg("--leave-stopped")
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
        let said = criu.errors(DUMP_LOG);
        return Err(match sockets::has_internet_sockets(TEMPLATE_PID) {
            Ok(true) => format!(
                "the import leaves TCP or UDP sockets open, which this CRIU cannot dump on this kernel: {said}"
            ),
            _ => said,
        });
    }
    adapt(criu.images(), &spec.outside).map_err(|error| format!("adapting the image: {error}"))
}

/// One datagram on standard input: the [`DumpSpec`] as a file, and PID 1's pidfd.
fn order() -> io::Result<(DumpSpec, OwnedFd)> {
    let (_, fds) = wire::receive(io::stdin(), &mut [0; 16])?;
    let [spec, sandbox] = <[OwnedFd; 2]>::try_from(fds)
        .map_err(|fds| io::Error::other(format!("{} descriptors, not 2", fds.len())))?;
    let mut bytes = Vec::new();
    File::from(spec).read_to_end(&mut bytes)?;
    let spec = DumpSpec::from_bytes(&bytes).map_err(io::Error::other)?;
    Ok((spec, sandbox))
}

/// Runs `criu check` in a process that cannot change its login uid, because its results must also hold inside a
/// sandbox, where that is impossible. Returns its output if it failed.
fn run_check(
    program: &OsString,
    arguments: &mut impl Iterator<Item = OsString>,
) -> Result<Option<String>, String> {
    let (mut said, saying) = io::pipe().map_err(|error| format!("a pipe: {error}"))?;
    let check = match sys::fork().map_err(|error| format!("fork: {error}"))? {
        Fork::Parent(pid, _) => pid,
        Fork::Child => {
            drop(said);
            let path = format!("/proc/{}/loginuid", std::process::id());
            // Kernels without audit have no such file, and CRIU no question.
            let _ = rustix::mount::mount_bind(&path, &path);
            let _ = rustix::mount::mount_remount(&path, MountFlags::BIND | MountFlags::RDONLY, c"");
            // Returns only if it cannot be started, with a distinct status.
            let _ = Command::new(program)
                .args(arguments)
                .arg("check")
                .env_clear()
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::from(saying))
                .exec();
            std::process::exit(127);
        }
    };
    drop(saying);
    let mut text = Vec::new();
    said.read_to_end(&mut text)
        .map_err(|error| format!("reading what it says: {error}"))?;
    let status = rustix::process::waitpid(Some(check), WaitOptions::empty())
        .map_err(|error| format!("waiting for it: {error}"))?;
    let good = status.is_some_and(|(_, status)| status.exit_status() == Some(0));
    Ok((!good).then(|| String::from_utf8_lossy(&text).into_owned()))
}

/// Runs `criu check` where `/run` is a file system in memory, which is where CRIU keeps what it finds out about the
/// kernel, and copies that to `kdat`.
pub fn check(kdat: &Path, mut arguments: impl Iterator<Item = OsString>) -> Outcome {
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
        let said = run_check(&program, &mut arguments)?;
        if let Some(said) = said {
            return Err(format!("criu check: {}", last_errors(&said)));
        }
        let notes = fs::read(Path::new("/").join(KDAT))
            .map_err(|error| format!("what CRIU found out about the kernel: {error}"))?;
        kept.write_all(&notes)
            .map_err(|error| format!("{}: {error}", kdat.display()))
    };
    Outcome {
        error: check().err(),
    }
}

/// What a restore would silently leave out: files in memory, and a filter of the function's own; and what CRIU refuses in
/// words that say little.
fn refuse_what_an_image_would_lose() -> Result<(), String> {
    for dir in ["/tmp", "/dev/shm"] {
        let mut entries = fs::read_dir(dir).map_err(|error| format!("{dir}: {error}"))?;
        if entries.next().is_some() {
            return Err(format!("the import leaves files in {dir}"));
        }
    }
    let status = fs::read_to_string(format!("/proc/{TEMPLATE_PID}/status"))
        .map_err(|error| format!("the template's status: {error}"))?;
    if has_own_filter(&status) {
        return Err("the import installs its own system call filter".to_owned());
    }
    let connected = sockets::has_connections(TEMPLATE_PID);
    if connected.map_err(|error| format!("the template's connections: {error}"))? {
        return Err("the import leaves a TCP connection open".to_owned());
    }
    Ok(())
}

/// Whether a process's status counts other filters than the sandbox's.
fn has_own_filter(status: &str) -> bool {
    let filters = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp_filters:"));
    // Kernels before 5.9 do not count them.
    filters.is_some_and(|count| count.trim() != FILTERS)
}

fn enter(sandbox: &OwnedFd) -> Result<(), String> {
    sys::enter_namespaces(sandbox).map_err(|error| format!("entering the sandbox: {error}"))
}

#[cfg(test)]
mod tests {
    use super::has_own_filter;

    #[test]
    fn only_the_sandboxs_filters_pass() {
        let status = |count: &str| format!("Name:\tpython3\nSeccomp:\t2\n{count}Threads:\t1\n");
        assert!(!has_own_filter(&status("Seccomp_filters:\t2\n")));
        assert!(!has_own_filter(&status("")));
        for count in ["0", "1", "3", "20", ""] {
            let line = format!("Seccomp_filters:\t{count}\n");
            assert!(has_own_filter(&status(&line)), "{count}");
        }
    }
}
