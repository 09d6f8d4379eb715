//! What a restore leaves: the processes out of the image, stopped, and a CRIU that is done.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::error::JailError;

/// What came out of an image.
pub struct Restored {
    /// The template.
    pub template: Pid,
    /// All processes, the template among them.
    pub(super) processes: Vec<Pid>,
    /// No longer needed.
    pub spent: SpentCriu,
}

impl Restored {
    /// Lets it run.
    pub fn resume(&self) {
        for pid in &self.processes {
            // Killed meanwhile is as good.
            let _ = rustix::process::kill_process(*pid, Signal::CONT);
        }
    }
}

/// A CRIU that has restored. All that it would still do is to end, for which the kernel takes half a millisecond: it is
/// stopped, and killed when this is dropped. It has rights that nothing else in the sandbox may have, and nothing in there
/// may signal or trace it.
pub struct SpentCriu(OwnedFd);

impl SpentCriu {
    pub(super) fn stop(pidfd: OwnedFd) -> Result<Self, JailError> {
        rustix::process::pidfd_send_signal(&pidfd, Signal::STOP)
            .map_err(|errno| JailError::restore(errno.into()))?;
        Ok(Self(pidfd))
    }

    /// Waits until it has stopped, or has ended before it could.
    pub(super) fn wait_until_still(&self) -> Result<(), JailError> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.0.as_fd()), options)
        })
        .map_err(|errno| JailError::restore(errno.into()))?;
        Ok(())
    }
}

impl Drop for SpentCriu {
    fn drop(&mut self) {
        // It may have ended before it could be stopped.
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::KILL);
    }
}

/// Everything in the sandbox but PID 1 and a child of it.
pub(super) fn processes_but(child: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != Pid::INIT && *pid != child)
        .collect()
}
