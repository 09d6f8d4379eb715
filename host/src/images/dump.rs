//! Runs `hearth-init dump`, and tells beforehand how much it would have to do.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hearth_init::criu::DumpSpec;
use hearth_init::fields::Fields as _;
use hearth_init::{Outcome, wire};
use rustix::process::Pid;

use crate::SandboxError;
use crate::cgroup::Leaf;
use crate::children::ends_within;
use crate::memfd::{sealed, socket_pair};

/// A dump that takes longer is given up: some ten milliseconds are usual, writing a gigabyte takes seconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// Memory mappings of that process of a template which has most, counted up to one more than `most`.
pub(super) fn mappings(template: &Leaf, most: u64) -> u64 {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = |pid: Pid| {
        let maps = File::open(format!("/proc/{pid}/maps")).map(BufReader::new);
        maps.map_or(0, |maps| {
            maps.split(b'\n').take(most.saturating_add(1)).count() as u64
        })
    };
    let processes = template.listed().into_iter();
    processes.map(count).max().unwrap_or_default()
}

/// Runs `hearth-init dump`.
pub(super) fn run_dump(
    init: &Path,
    spec: &DumpSpec,
    sandbox: &OwnedFd,
) -> Result<(), SandboxError> {
    let failed = |error: io::Error| SandboxError::step("dump", format!("for a dump: {error}"));
    let dump = || -> io::Result<Child> {
        let (ours, theirs) = socket_pair()?;
        let order = sealed(&spec.to_bytes())?;
        wire::send(&ours, b"D", &[order.as_fd(), sandbox.as_fd()])?;
        Command::new(init)
            .arg("dump")
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    };
    let mut child = dump().map_err(failed)?;
    if !ends_within(&child, DEADLINE).map_err(failed)? {
        // It may have ended by itself just now.
        let _ = child.kill();
        let _ = child.wait();
        let late = format!("timed out after {} s", DEADLINE.as_secs());
        return Err(SandboxError::step("dump", late));
    }
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut said).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    match Outcome::from_bytes(&said) {
        Ok(Outcome { error: None }) => Ok(()),
        Ok(Outcome { error: Some(error) }) => Err(SandboxError::step("dump", error)),
        Err(_) => {
            let init = init.display();
            let detail = format!("{init} sent no report: {status}");
            Err(SandboxError::step("dump", detail))
        }
    }
}
