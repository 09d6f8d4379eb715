//! PID 1: reaps, kills leftovers of dead instances, and exits with the template or the host process. When it ends, the kernel
//! kills everything else in the sandbox.

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use hearth_init::fields::Fields as _;
use hearth_init::{Report, SWEEP, wire};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::time::Timespec;

use crate::sys;

/// When to look again after a [`SWEEP`], and after each time something was found: a process that is being killed hands its
/// children to PID 1 only when it is gone, and its children's children follow when those are. One that is another process
/// every moment may be missed many times, the more the busier the machine is.
const SWEEP_AGAIN: [Duration; 3] = [
    Duration::from_millis(2),
    Duration::from_millis(20),
    Duration::from_millis(200),
];

/// When the leftovers of a restore are let go of: the template's first fork comes before that.
const FIRST_FORK: Duration = Duration::from_millis(10);

/// Sends a report to the host process.
pub fn send(control: &OwnedFd, report: &Report, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    wire::send(control, &report.to_bytes(), fds)
}

/// Runs until the template exits (and reports how) or the host process is gone. Drops `leftovers`, which takes a moment, once
/// nothing waits for the sandbox.
pub fn serve<T>(control: &OwnedFd, template: Pid, leftovers: Option<T>) -> io::Result<()> {
    let children = sys::child_events()?;
    let mut leftovers = leftovers.map(|leftovers| (Instant::now() + FIRST_FORK, leftovers));
    let mut sweeps: Vec<Instant> = Vec::new();
    loop {
        // Before the first wait too: a child may have ended before its signal was blocked.
        let reaped = match reap(template)? {
            Reaped::Template(ended) => return send(control, &ended, &[]),
            Reaped::Others => true,
            Reaped::Nothing => false,
        };
        let now = Instant::now();
        let due = sweeps.iter().any(|at| *at <= now);
        // What has just ended may have left something, too.
        let more = reaped && !sweeps.is_empty();
        sweeps.retain(|at| *at > now);
        if (due || more) && sweep(template) {
            sweeps = after_a_find();
        }
        drop(leftovers.take_if(|(at, _)| *at <= now));
        let next = leftovers.as_ref().map(|(at, _)| at);
        let timeout = match sweeps.iter().chain(next).min() {
            Some(at) => Some(timespec(at.saturating_duration_since(Instant::now()))?),
            None => None,
        };

        let mut fds = [
            PollFd::new(control, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        if !fds[1].revents().is_empty() {
            // Which child it was comes out of waiting; the record only has to be taken away.
            let mut record = [0_u8; 128];
            match rustix::io::read(&children, &mut record) {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !fds[0].revents().is_empty() {
            let mut command = [0_u8; 16];
            match wire::receive(control, &mut command)? {
                (0, _) => return Ok(()), // the host process is gone
                (1, _) if command[0] == SWEEP => {
                    sweep(template);
                    sweeps = after_a_find();
                }
                _ => {} // a newer host process's command
            }
        }
    }
}

fn after_a_find() -> Vec<Instant> {
    let now = Instant::now();
    SWEEP_AGAIN.iter().map(|after| now + *after).collect()
}

/// Which children have ended.
enum Reaped {
    /// The template, and how.
    Template(Report),
    /// Others only.
    Others,
    /// None.
    Nothing,
}

/// Takes the status of every child that has ended.
fn reap(template: Pid) -> io::Result<Reaped> {
    let mut reaped = Reaped::Nothing;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == template => {
                return Ok(Reaped::Template(Report::TemplateEnded {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                }));
            }
            Ok(Some(_)) => reaped = Reaped::Others,
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(reaped),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills every child of PID 1 except the template. Instances are the template's children, and adopt their own orphans
/// while they live: whatever PID 1 has adopted belongs to an instance that is dead. True when there was any.
fn sweep(template: Pid) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else {
        return false;
    };
    let mut found = false;
    for entry in entries.flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        // A child keeps its number until PID 1 itself reaps it: the number cannot have passed to another process.
        if pid != Pid::INIT && pid != template && parent(pid) == Some(1) {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            found = true;
        }
    }
    found
}

/// Parent of a process, from `/proc/PID/stat`.
fn parent(pid: Pid) -> Option<i32> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parent_in(&stat)
}

/// Parent in the text of a `stat` file: the second field after the name, which is in parentheses and may hold any
/// character.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn timespec(duration: Duration) -> io::Result<Timespec> {
    Timespec::try_from(duration).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_feign_another_parent() {
        let stats: [&[u8]; 5] = [
            b"12 (python3) S 7 12 12 0 -1 4194560",
            b"12 (a b) S 7 12 12 0",
            b"12 (x) S 1 1 () S 7 12 12 0",
            b"12 (\n) S 1\n) S 7 12 12 0",
            b"12 (\xff\xfe) S 7 12 12 0",
        ];
        for stat in stats {
            let text = String::from_utf8_lossy(stat);
            assert_eq!(parent_in(stat), Some(7), "{text}");
        }
    }

    #[test]
    fn a_cut_stat_names_no_parent() {
        let stats: [&[u8]; 6] = [
            b"",
            b"12 (python3",
            b"12 (python3)",
            b"12 (python3) S",
            b"12 (python3) S x 12",
            b"12 (python3) \xff 7 12",
        ];
        for stat in stats {
            let text = String::from_utf8_lossy(stat);
            assert_eq!(parent_in(stat), None, "{text}");
        }
    }

    #[test]
    fn the_kernels_own_stat_is_read() {
        let own = rustix::process::getpid();
        let expected = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(parent(own), expected);
    }
}
