//! Moves instances into their cgroups, on a thread of its own.
//!
//! A move may block for 10 ms in the kernel (see `favordynmods` in the documentation), and nothing else should wait for
//! it.

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

/// Attempts to move while the host is out of a resource, and the pause in between: an instance outside its cgroup has
/// only the sandbox's limits, and is ended if it stays there.
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
    /// Notified if it cannot be moved.
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
            // It died, or its cgroup is gone because it was killed.
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
    // The receiver may have ended it.
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
    // While the instance runs, its pid is its own. For the pid to be reused before the moves below, the instance would
    // have to exit and be reaped, and all other pids be allocated.
    let mut ended = [PollFd::new(&job.pidfd, PollFlags::IN)];
    let lives = poll(&mut ended, Some(&Timespec::default()))? == 0;
    if !lives || owner != Some(job.uid) {
        return Ok(());
    }
    fs::write(format!("/proc/{pid}/oom_score_adj"), INSTANCE_OOM_SCORE)?;
    fs::write(&job.procs, pid.to_string())
}
