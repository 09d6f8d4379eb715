//! Tests everything a sandbox needs from the kernel, one after the other, in a throwaway process.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process;

use hearth_init::fields::Fields as _;
use hearth_init::{Check, ProbeReport};
use rustix::mount::{MountFlags, MountPropagationFlags, OpenTreeFlags};
use rustix::thread::{Gid, Uid};

use crate::mounts;
use crate::sys::{self, Fork};

/// First host uid the sandboxes use; any number will do here.
const SOME_UID: u32 = 1_900_000_000;

/// Runs all checks.
pub fn run() -> ProbeReport {
    let mut checks = vec![
        check("root", None, root()),
        check("seccomp", None, sys::seccomp_available()),
    ];
    checks.push(match sys::landlock_abi() {
        Ok(abi) => check("landlock", Some(abi.to_string()), Ok(())),
        Err(error) => check("landlock", None, Err(error)),
    });
    checks.extend(namespaces());
    ProbeReport { checks }
}

fn check(name: &str, version: Option<String>, result: io::Result<()>) -> Check {
    Check {
        name: name.to_owned(),
        version,
        error: result.err().map(|error| error.to_string()),
    }
}

fn root() -> io::Result<()> {
    let held = rustix::thread::capabilities(None)?.effective;
    let needed = rustix::thread::CapabilitySet::SYS_ADMIN
        | rustix::thread::CapabilitySet::SETUID
        | rustix::thread::CapabilitySet::SETGID
        | rustix::thread::CapabilitySet::CHOWN
        | rustix::thread::CapabilitySet::MKNOD
        | rustix::thread::CapabilitySet::KILL;
    if !rustix::process::geteuid().is_root() {
        return Err(io::Error::other("hearth does not run as root"));
    }
    if !held.contains(needed) {
        return Err(io::Error::other(
            "root lacks one of CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_MKNOD, CAP_KILL",
        ));
    }
    Ok(())
}

/// Namespaces, then what is done inside them.
fn namespaces() -> Vec<Check> {
    let pipes = io::pipe().and_then(|to_child| Ok((to_child, io::pipe()?)));
    let ((mut mapped, mut map), (mut answers, mut answer)) = match pipes {
        Ok(pipes) => pipes,
        Err(error) => return vec![check("namespaces", None, Err(error))],
    };
    // The child mounts over /proc and /tmp: in a mount namespace below this one, which is private.
    let private = sys::unshare_mounts().and_then(|()| {
        Ok(rustix::mount::mount_change(
            "/",
            MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
        )?)
    });
    if private.is_err() {
        return vec![check("namespaces", None, private)];
    }
    match sys::fork_into_namespaces(false) {
        Err(error) => vec![check("namespaces", None, Err(error))],
        Ok(Fork::Child) => {
            drop(map);
            drop(answers);
            if mapped.read(&mut [0]).unwrap_or(0) == 1 {
                let checks = inside();
                // If it cannot be reported, the missing report shows it.
                let _ = answer.write_all(&checks.to_bytes());
            }
            process::exit(0);
        }
        Ok(Fork::Parent(pid, _)) => {
            drop(answer);
            let mut checks = vec![
                check("namespaces", None, Ok(())),
                check("overlay", None, overlay()),
            ];
            let mapping = map_users(pid.as_raw_nonzero().get());
            if mapping.is_ok() {
                // A child that died shows in its answer.
                let _ = map.write_all(&[1]);
            }
            drop(map);
            let failed = mapping.is_err();
            checks.push(check("id_map", None, mapping));
            let mut bytes = Vec::new();
            let read = answers.read_to_end(&mut bytes);
            if !failed {
                match Vec::<Check>::from_bytes(&bytes) {
                    Ok(inside) if read.is_ok() => checks.extend(inside),
                    _ => checks.push(check(
                        "mounts",
                        None,
                        Err(io::Error::other("the process in the namespaces died")),
                    )),
                }
            }
            checks
        }
    }
}

fn map_users(pid: i32) -> io::Result<()> {
    let line = format!("0 {SOME_UID} 1\n");
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/uid_map"), &line)?;
    fs::write(format!("/proc/{pid}/gid_map"), &line)
}

/// What stage 0 does with directories of the host: an overlay over one.
fn overlay() -> io::Result<()> {
    rustix::mount::mount("tmpfs", "/tmp", "tmpfs", MountFlags::NODEV, None)?;
    let (shown, empty) = (Path::new("/tmp/shown"), Path::new("/tmp/empty"));
    fs::create_dir(shown)?;
    fs::create_dir(empty)?;
    Ok(mounts::overlay(shown, &mounts::directory(empty)?).map(drop)?)
}

/// What PID 1 does: change of user, mounts of its own.
fn inside() -> Vec<Check> {
    let mounts = || -> io::Result<()> {
        rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
        rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
        rustix::mount::mount("tmpfs", "/tmp", "tmpfs", MountFlags::NODEV, None)?;
        rustix::mount::open_tree(
            rustix::fs::CWD,
            "/tmp",
            OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::AT_RECURSIVE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC,
        )?;
        Ok(())
    };
    let proc = rustix::mount::mount("proc", "/proc", "proc", MountFlags::NODEV, None);
    vec![
        check("mounts", None, mounts()),
        check("proc", None, proc.map_err(Into::into)),
        check("loopback", None, sys::loopback_up()),
    ]
}
