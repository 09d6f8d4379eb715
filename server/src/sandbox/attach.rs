//! Moves instances into their cells, on a thread of its own.
//!
//! The kernel may let a move wait for 10 ms (see `favordynmods` in the documentation); nothing else shall wait behind it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use rustix::io::Errno;

use super::limits::INSTANCE_OOM_SCORE;

/// One move.
pub struct Attach {
    /// `cgroup.procs` of the cell.
    pub procs: PathBuf,
    /// The instance, as the host sees it.
    pub pid: u32,
    /// Its host uid.
    pub uid: u32,
}

/// Starts the thread. It ends when the last sender is gone.
pub fn start() -> io::Result<mpsc::Sender<Attach>> {
    let (sender, jobs) = mpsc::channel::<Attach>();
    std::thread::Builder::new()
        .name("hearth-attach".to_owned())
        .spawn(move || {
            for job in jobs {
                attach(&job);
            }
        })?;
    Ok(sender)
}

fn attach(job: &Attach) {
    let Attach { procs, pid, uid } = job;
    // An instance that has died meanwhile may have left its number to a stranger.
    if owner(*pid) != Some(*uid) {
        return;
    }
    let result = fs::write(format!("/proc/{pid}/oom_score_adj"), INSTANCE_OOM_SCORE)
        .and_then(|()| fs::write(procs, pid.to_string()));
    match result {
        Ok(()) => {}
        // It died, or its cell is gone because it was killed.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
                || error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
        Err(error) => {
            tracing::warn!(pid, cell = %procs.display(), %error, "cannot move an instance into its cgroup");
        }
    }
}

/// The real uid of a process.
fn owner(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}
