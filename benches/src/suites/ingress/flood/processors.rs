//! Who runs on which processor.

use std::fs;
use std::io;
use std::time::Duration;

use hearth_host::scheduling::{Scheduling, schedule};
use hearth_testkit::figures::cpu_time;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

/// The processor of the host, and that of client and generator.
pub(super) const HOSTS: usize = 0;
/// See [`HOSTS`].
pub(super) const OUTSIDE: usize = 1;

/// Keeps the calling thread, and those that it starts from here on, on a processor.
pub(super) fn pin(processor: usize) -> io::Result<()> {
    pin_thread(None, processor)
}

/// Puts the kernel threads that receive from an interface on the host's processor, before all processes there. They begin anew
/// with each program at the interface.
pub(super) fn place_receiver(interface: &str) -> io::Result<Receiver> {
    let prefix = format!("napi/{interface}-");
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        // A process may have ended meanwhile.
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw)
            && name.starts_with(&prefix)
        {
            pin_thread(Some(pid), HOSTS)?;
            schedule(pid, Scheduling::RealTime)?;
            threads.push(pid.as_raw_nonzero().get().unsigned_abs());
        }
    }
    if threads.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(Receiver(threads))
}

/// The kernel threads that receive from an interface.
pub(super) struct Receiver(Vec<u32>);

impl Receiver {
    /// The processor's time that they have taken: up to the socket's queue, or to where the packet is dropped.
    pub(super) fn spent(&self) -> io::Result<Duration> {
        self.0.iter().copied().map(cpu_time).sum()
    }
}

fn pin_thread(thread: Option<Pid>, processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(thread, &set)?)
}
