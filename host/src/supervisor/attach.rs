//! Moves instances into their cgroups, on a thread of its own.
//!
//! A move may block for 10 ms in the kernel (see `favordynmods` in the documentation), and nothing else should wait for
//! it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use hearth_abi::time_slice::take_short_time_slices;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::cgroup::{Leaf, owner};
use crate::helpers::{Helper, News, Reporter};
use crate::limits::INSTANCE_OOM_SCORE;
use crate::protocol::{Key, LeafNumber, Reply};

/// Attempts to move while the host is out of a resource, and the pause in between: an instance outside its cgroup has
/// only the sandbox's limits, and is ended if it stays there.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// One move.
pub(super) struct Attach {
    /// Whose it is.
    pub(super) key: Key,
    /// Number of the instance cgroup.
    pub(super) number: LeafNumber,
    /// The instance cgroup.
    pub(super) leaf: Leaf,
    /// The instance.
    pub(super) pid: Pid,
    /// The instance itself.
    pub(super) pidfd: OwnedFd,
    /// Its host uid.
    pub(super) uid: u32,
}

/// Starts the thread.
pub(super) fn start(reporter: Reporter) -> Result<Helper<()>, String> {
    Helper::start("hearth-attach", reporter, || {
        // Until it is moved, an instance has only its template's limits, and on a busy host that may be for as long as it
        // takes to use up its memory. Where the kernel refuses, it works all the same.
        let _ = take_short_time_slices();
        Ok(())
    })
}

impl Attach {
    /// Moves it. For the thread; there is something to report if that fails.
    pub(super) fn run(&self) -> Option<News> {
        let error = attach(self).err()?;
        let instance_cgroup = self.leaf.procs();
        let detail = format!(
            "an instance cannot be moved into its cgroup {}: {error}",
            instance_cgroup.display()
        );
        Some(News::Say(Reply::AttachFailed(
            self.key,
            self.number,
            detail,
        )))
    }
}

fn attach(job: &Attach) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match try_attach(job) {
            // It died, or its cgroup is gone because it was killed.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
                    || error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) =>
            {
                return Ok(());
            }
            Err(_) if tries < TRIES => std::thread::sleep(PAUSE),
            done => return done,
        }
        tries += 1;
    }
}

fn try_attach(job: &Attach) -> io::Result<()> {
    let pid = job.pid;
    let owner = owner(pid)?;
    // While the instance runs, its pid is its own. For the pid to be reused before the moves below, the instance would
    // have to exit and be reaped, and all other pids be allocated.
    let mut ended = [PollFd::new(&job.pidfd, PollFlags::IN)];
    let lives = poll(&mut ended, Some(&Timespec::default()))? == 0;
    if !lives || owner != Some(job.uid) {
        return Ok(());
    }
    fs::write(format!("/proc/{pid}/oom_score_adj"), INSTANCE_OOM_SCORE)?;
    fs::write(job.leaf.procs(), pid.to_string())
}
