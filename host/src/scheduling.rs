//! How threads get processors.

#![allow(unsafe_code)]

use std::time::Duration;
use std::{fs, io};

use rustix::thread::Pid;

/// How a thread gets processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// Before every thread that has not asked for it: `SCHED_RR` at the lowest real-time priority (sched(7)).
    RealTime,
    /// Among others by its niceness, in time slices of this length. Kernels before 6.12 choose the length themselves.
    Fair(i32, Duration),
    /// Behind others: preempts nobody (`SCHED_BATCH`), and is preempted by whoever asks for less time at once.
    Patient,
}

/// What a thread was before it was [boosted](boost).
#[derive(Debug)]
pub struct Ordinary(libc::sched_attr);

/// The longest time slice that the kernel gives.
const LONGEST_SLICE: Duration = Duration::from_millis(100);

/// Sets how a thread gets processors; what it starts does not inherit more than niceness 0.
///
/// # Errors
/// What the kernel says: without `CAP_SYS_NICE`, or in a cgroup that has no real-time budget, `EPERM`.
pub fn schedule(thread: Pid, scheduling: Scheduling) -> io::Result<()> {
    // SAFETY: a C struct of integers, for which zero is a valid value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or_default();
    attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
    match scheduling {
        Scheduling::RealTime => {
            attributes.sched_policy = libc::SCHED_RR as u32;
            attributes.sched_priority = 1;
        }
        Scheduling::Fair(niceness, slice) => {
            attributes.sched_policy = libc::SCHED_OTHER as u32;
            attributes.sched_nice = niceness;
            attributes.sched_runtime = nanoseconds(slice);
        }
        Scheduling::Patient => {
            attributes.sched_policy = libc::SCHED_BATCH as u32;
            attributes.sched_runtime = nanoseconds(LONGEST_SLICE);
        }
    }
    set(thread, &attributes)
}

/// Makes a thread [real-time](Scheduling::RealTime) for a while.
///
/// # Errors
/// As for [`schedule`]; also if it is not one of the ordinary ones.
pub fn boost(thread: Pid) -> io::Result<Ordinary> {
    let before = attributes(thread)?;
    if before.sched_policy != libc::SCHED_OTHER as u32 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    schedule(thread, Scheduling::RealTime)?;
    Ok(Ordinary(before))
}

impl Ordinary {
    /// Makes it that again, with the niceness that it has given itself meanwhile. A thread that has left the policy is left alone.
    ///
    /// # Errors
    /// It has ended, or the kernel refuses.
    pub fn restore(&self, thread: Pid) -> io::Result<()> {
        if attributes(thread)?.sched_policy != libc::SCHED_RR as u32 {
            return Ok(());
        }
        let mut before = self.0;
        before.sched_nice = rustix::process::getpriority_process(Some(thread))?;
        set(thread, &before)
    }
}

fn attributes(thread: Pid) -> io::Result<libc::sched_attr> {
    // SAFETY: a C struct of integers, for which zero is a valid value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let (number, size) = (thread.as_raw_nonzero().get(), size_of::<libc::sched_attr>());
    let to = &raw mut attributes;
    // SAFETY: the kernel writes at most `size` bytes there.
    match unsafe { libc::syscall(libc::SYS_sched_getattr, number, to, size, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(attributes),
    }
}

fn set(thread: Pid, attributes: &libc::sched_attr) -> io::Result<()> {
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: the kernel reads `size` bytes of `attributes`, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const *attributes, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The same for all threads of a process. Those that end meanwhile are left out.
pub fn schedule_all(process: Pid, scheduling: Scheduling) {
    let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    let numbers = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            let number = thread.file_name().to_str()?.parse().ok()?;
            Pid::from_raw(number)
        });
    for thread in numbers {
        let _ = schedule(thread, scheduling);
    }
}

fn nanoseconds(slice: Duration) -> u64 {
    u64::try_from(slice.as_nanos()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The policies of a process's threads, by proc(5).
    fn policies(process: u32) -> Vec<u32> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it lives");
        let policy = |thread: io::Result<fs::DirEntry>| {
            let stat = fs::read_to_string(thread.expect("a thread").path().join("stat"));
            let stat = stat.expect("its state");
            let (_, fields) = stat.rsplit_once(')').expect("a name");
            // The first one here is the third there.
            let policy = fields.split_ascii_whitespace().nth(41 - 3);
            policy.expect("a policy").parse().expect("a number")
        };
        threads.map(policy).collect()
    }

    #[test]
    fn every_thread_of_a_process_gives_way() {
        let threads = "import threading, time
for _ in range(2): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(flush=True); time.sleep(60)";
        let mut child = Command::new("python3")
            .args(["-c", threads])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = [0];
        let mut said = child.stdout.take().expect("a pipe");
        io::Read::read_exact(&mut said, &mut line).expect("it has its threads");
        let before = policies(child.id());
        let process = Pid::from_raw(child.id().cast_signed()).expect("a number");
        schedule_all(process, Scheduling::Patient);
        let after = policies(child.id());
        child.kill().expect("it ends");
        child.wait().expect("it has ended");
        assert_eq!(before, [libc::SCHED_OTHER as u32; 3]);
        assert_eq!(after, [libc::SCHED_BATCH as u32; 3]);
    }
}
