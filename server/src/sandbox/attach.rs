//! Moves instances into their instance cgroups, on a thread of its own.
//!
//! The kernel may let a move wait for 10 ms (see `favordynmods` in the documentation); nothing else shall wait behind it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::sync::oneshot;

use super::cgroup::owner;
use super::limits::INSTANCE_OOM_SCORE;
use crate::host_error::HostError;

/// Times a move is tried while the host is short of something, and the pause between: an instance outside of its instance
/// cgroup has only the sandbox's limits, and is ended when it stays there.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// One move.
pub struct Attach {
    /// `cgroup.procs` of the instance cgroup.
    pub procs: PathBuf,
    /// The instance, as the host sees it.
    pub pid: u32,
    /// The instance itself.
    pub pidfd: OwnedFd,
    /// Its host uid.
    pub uid: u32,
    /// Who is told when it cannot be moved.
    pub refused: oneshot::Sender<HostError>,
}

/// Starts the thread. It ends when the last sender is gone.
pub fn start() -> io::Result<mpsc::Sender<Attach>> {
    let (sender, jobs) = mpsc::channel::<Attach>();
    std::thread::Builder::new()
        .name("hearth-attach".to_owned())
        .spawn(move || {
            for job in jobs {
                attach(job);
            }
        })?;
    Ok(sender)
}

fn attach(job: Attach) {
    let mut tries = 0;
    let error = loop {
        match try_attach(&job) {
            Ok(()) => return,
            // It died, or its instance cgroup is gone because it was killed.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
                    || error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) =>
            {
                return;
            }
            Err(error) if tries == TRIES => break error,
            Err(_) => std::thread::sleep(PAUSE),
        }
        tries += 1;
    };
    let instance_cgroup = job.procs.display();
    // Whoever would be told may have ended it.
    let _ = job.refused.send(HostError::new(format_args!(
        "an instance cannot be moved into its cgroup {instance_cgroup}: {error}"
    )));
}

fn try_attach(job: &Attach) -> io::Result<()> {
    let pid = job.pid;
    let Some(number) = Pid::from_raw(pid.cast_signed()) else {
        return Ok(());
    };
    let owner = owner(number)?;
    // As long as the instance has not ended, its number is its own. Between this look and the moves below it would have
    // to end, be reaped, and all other numbers be given out, for a stranger to have it.
    let mut ended = [PollFd::new(&job.pidfd, PollFlags::IN)];
    let lives = poll(&mut ended, Some(&Timespec::default()))? == 0;
    if !lives || owner != Some(job.uid) {
        return Ok(());
    }
    fs::write(format!("/proc/{pid}/oom_score_adj"), INSTANCE_OOM_SCORE)?;
    fs::write(&job.procs, pid.to_string())
}
