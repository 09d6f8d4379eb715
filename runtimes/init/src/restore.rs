//! Restoring a template with CRIU, from inside the sandbox that was made for it.
//!
//! Everything about the sandbox is made anew, as for a boot: CRIU restores processes only. It runs as the sandbox's own
//! root, not the host's, and under the Landlock rules that the template is to have: what it restores inherits them, and
//! an image that a hostile template has shaped to trick CRIU has won nothing but the sandbox.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use hearth_init::criu::{CriuProgram, Outside, RESTORE, RESTORE_LOG, RestoreSpec};
use hearth_init::{INNER_UID, TEMPLATE_PID};
use rustix::fs::{AtFlags, Gid, Uid};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::error::JailError;
use crate::fill::{Fillings, Mapped};
use crate::run_criu::{Criu, pipes};
use crate::sys::{self, Fork};
use crate::{confine, inject};

/// What CRIU found out about the kernel, in its work directory.
const NOTES: &str = "criu.kdat";

/// What takes the place of the descriptors that led outside.
pub struct Ends<'a> {
    /// The template's end of the new control socket.
    pub control: &'a OwnedFd,
    /// Write end of the new standard output.
    pub stdout: &'a OwnedFd,
    /// Write end of the new standard error.
    pub stderr: &'a OwnedFd,
}

/// An image within reach of the sandbox.
pub struct Restore {
    criu: Criu,
    outside: Outside,
    fillings: Fillings,
}

impl Restore {
    /// Opens everything while the host's files are in sight, and gives image and log to the sandbox's root user `owner`,
    /// who is to read and write them.
    pub fn prepare(criu: &CriuProgram, spec: &RestoreSpec, owner: u32) -> Result<Self, JailError> {
        let kdat = &criu.kdat;
        let criu = Criu::open(criu, &spec.images, &spec.work).map_err(JailError::restore)?;
        let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
        let mut fillings = Fillings::default();
        let mut give = || -> io::Result<()> {
            for entry in rustix::fs::Dir::read_from(&criu.images)? {
                let entry = entry?;
                let name = entry.file_name();
                if name != c".." {
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    rustix::fs::chownat(&criu.images, name, user, group, flags)?;
                }
                if let Ok(name) = name.to_str() {
                    fillings.add(&criu.images, name)?;
                }
            }
            let notes = spec.work.join(NOTES);
            fs::copy(kdat, &notes)?;
            std::os::unix::fs::chown(&notes, Some(owner), Some(owner))?;
            Ok(rustix::fs::fchown(&criu.work, user, group)?)
        };
        give().map_err(JailError::restore)?;
        Ok(Self {
            criu,
            outside: spec.outside,
            fillings,
        })
    }

    /// Restores. The template and what else is in the image is stopped then and has run nothing yet. What is returned
    /// with it is of no more use.
    pub fn run(self, ends: &Ends<'_>) -> Result<(Pid, Mapped), JailError> {
        let criu = match sys::fork().map_err(JailError::Namespaces)? {
            Fork::Parent(pid, _) => pid,
            Fork::Child => {
                // Only returns when it fails; the log, which PID 1 looks at, may not even exist then.
                let status = if self.become_criu(ends).is_err() {
                    126
                } else {
                    127
                };
                std::process::exit(status);
            }
        };
        // While CRIU is at work, on another core.
        let fillings = self.fillings.map().map_err(JailError::restore)?;
        let status = loop {
            match rustix::process::waitpid(Some(criu), WaitOptions::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other.map_err(|errno| JailError::restore(errno.into()))?,
            }
        };
        match status.and_then(|(_, status)| status.exit_status()) {
            Some(0) => {}
            Some(126 | 127) => {
                return Err(JailError::Restore("CRIU could not be started".into()));
            }
            _ => return Err(JailError::Restore(self.criu.errors(RESTORE_LOG))),
        }
        // 2. The rest of their memory, and the system call filter, which is not part of the image.
        let processes = processes();
        if !fillings.are_all_of(&processes) {
            return Err(JailError::Restore("memory of no process".into()));
        }
        for pid in processes {
            inject::with_stopped(pid, |process| {
                fillings.fill(pid, process)?;
                process.install_filters()
            })
            .map_err(|error| {
                JailError::Restore(format!("filling memory and installing the filter: {error}"))
            })?;
        }
        inspect()?;
        let template = Pid::from_raw(TEMPLATE_PID);
        let template = template.ok_or_else(|| JailError::Restore("no template".into()))?;
        Ok((template, fillings))
    }

    fn become_criu(&self, ends: &Ends<'_>) -> Result<io::Error, JailError> {
        confine::restrict_files(Some(&self.criu))?;
        let mut command = self
            .criu
            .command(RESTORE, RESTORE_LOG)
            .map_err(JailError::restore)?;
        let notes = format!("/proc/self/fd/{}", self.criu.work.as_raw_fd());
        command.env("XDG_RUNTIME_DIR", notes).args([
            // Root of the sandbox only: what the host's alone may do is done another way or left out. CRIU then looks for
            // its notes where the variable says.
            "--unprivileged",
            "--restore-detached",
            // The template becomes PID 1's child.
            "--restore-sibling",
            "--leave-stopped",
            "--ext-unix-sk",
            // The files that a template maps are the distribution's and the version's own; reading each one's build id
            // costs a millisecond.
            "--file-validation",
            "filesize",
        ]);
        let [stdout, stderr] = pipes(&self.outside);
        let control = format!("socket:[{}]", self.outside.control);
        for (fd, name) in [
            (ends.control, control),
            (ends.stdout, stdout),
            (ends.stderr, stderr),
        ] {
            rustix::io::fcntl_setfd(fd, FdFlags::empty())
                .map_err(|errno| JailError::restore(errno.into()))?;
            command.args([
                "--inherit-fd",
                &format!("fd[{}]:{name}", fd.as_fd().as_raw_fd()),
            ]);
        }
        Ok(command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .exec())
    }
}

/// Lets what was restored run.
pub fn resume() {
    for pid in processes() {
        // Killed meanwhile is as good.
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Looks whether every thread there is has no more rights than one of a booted template: what CRIU did is checked, not
/// trusted.
fn inspect() -> Result<(), JailError> {
    let mut seen = 0;
    for pid in processes() {
        let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
        for task in fs::read_dir(&tasks).map_err(JailError::restore)? {
            let path = task.map_err(JailError::restore)?.path().join("status");
            let status = fs::read_to_string(path).map_err(JailError::restore)?;
            if let Some(wrong) = looser_than_booted(&status) {
                return Err(JailError::Restore(format!(
                    "process {} has {wrong}, which a booted one has not",
                    pid.as_raw_nonzero()
                )));
            }
            seen += 1;
        }
    }
    if seen == 0 {
        return Err(JailError::Restore("CRIU has restored nothing".into()));
    }
    Ok(())
}

/// The first line of a process's status that gives it more than a template may have.
fn looser_than_booted(status: &str) -> Option<String> {
    const NONE: &str = "0000000000000000";
    let user = format!("{INNER_UID}\t{INNER_UID}\t{INNER_UID}\t{INNER_UID}");
    let expected = [
        ("Uid", user.as_str()),
        ("Gid", user.as_str()),
        ("Groups", ""),
        ("CapInh", NONE),
        ("CapPrm", NONE),
        ("CapEff", NONE),
        ("CapBnd", NONE),
        ("CapAmb", NONE),
        ("NoNewPrivs", "1"),
        // 2: a filter, which PID 1 has just installed.
        ("Seccomp", "2"),
    ];
    expected.into_iter().find_map(|(name, value)| {
        let found = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim);
        (found != Some(value)).then(|| format!("{name} {}", found.unwrap_or("missing")))
    })
}

/// Everything in the sandbox but PID 1.
fn processes() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != Pid::INIT)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::looser_than_booted;

    const BOOTED: &str = "Name:\tpython3\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t \n\
        CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n\
        CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";

    #[test]
    fn every_right_too_many_is_seen() {
        assert_eq!(looser_than_booted(BOOTED), None);
        for (from, to) in [
            ("Uid:\t1000", "Uid:\t0"),
            ("CapBnd:\t0", "CapBnd:\t1"),
            ("CapAmb:\t0", "CapAmb:\t1"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
            ("Seccomp:\t2", "Seccomp:\t0"),
            ("Groups:\t", "Groups:\t4"),
            ("Seccomp:\t2", ""),
        ] {
            assert!(
                looser_than_booted(&BOOTED.replace(from, to)).is_some(),
                "{to}"
            );
        }
    }
}
