//! Finds processes as the host sees them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// The number that a template has in its sandbox; what it forks comes after.
const TEMPLATE: u32 = 1000;

/// A process at the moment when it was looked at.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number on the host.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its real user on the host.
    pub uid: u32,
    /// `/proc/PID/status`.
    status: String,
}

impl Process {
    /// The one with this number; none when it is gone. One that nobody has waited for is still there.
    pub fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let mut process = Self {
            pid,
            parent: 0,
            uid: 0,
            status,
        };
        process.parent = process.field("PPid").parse().ok()?;
        process.uid = process
            .field("Uid")
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(process)
    }

    /// A field of its status, or "".
    pub fn field(&self, name: &str) -> &str {
        self.status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .unwrap_or_default()
            .trim()
    }

    /// What the kernel calls it: the first 15 bytes of its executable's name, unless it has chosen another one.
    pub fn name(&self) -> &str {
        self.field("Name")
    }

    /// Whether it has ended and nobody has waited for it.
    pub fn is_zombie(&self) -> bool {
        self.field("State").starts_with('Z')
    }

    /// Whether it waits for something that a signal may interrupt.
    pub fn is_asleep(&self) -> bool {
        self.field("State").starts_with('S')
    }

    /// Whether a signal has stopped it.
    pub fn is_stopped(&self) -> bool {
        self.field("State").starts_with('T')
    }

    /// How often it has begun to run.
    pub fn switches(&self) -> u64 {
        let kinds = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        let counts = kinds.map(|kind| self.field(kind).parse().unwrap_or(0));
        counts.iter().sum()
    }

    /// Its pid in its own namespace: the last of them.
    pub fn number_inside(&self) -> u32 {
        let numbers = self.field("NSpid").split_whitespace().last();
        numbers.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Identity of one of its namespaces.
    ///
    /// # Panics
    /// If it is gone, or its namespaces are not for this user to see.
    pub fn namespace(&self, name: &str) -> String {
        namespace(self.pid, name)
    }

    /// The function that it was started for; none for PID 1 of a sandbox. Reads its environment, which lies in its own
    /// memory, so it is no question to ask while memory is measured.
    pub fn function(&self) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let name = entries.find_map(|entry| entry.strip_prefix(b"HEARTH_FUNCTION="))?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Whether it is a template of this function.
    pub fn is_template(&self, function: &str) -> bool {
        self.number_inside() == TEMPLATE && self.function().as_deref() == Some(function)
    }

    /// Whether a template of this function forked it: an instance, pre-forked or not.
    pub fn is_fork(&self, function: &str) -> bool {
        self.number_inside() > TEMPLATE && self.function().as_deref() == Some(function)
    }
}

/// Identity of a namespace of a process.
///
/// # Panics
/// If it is gone, or its namespaces are not for this user to see.
pub fn namespace(pid: u32, name: &str) -> String {
    let link = fs::read_link(format!("/proc/{pid}/ns/{name}"));
    link.expect("root may look").display().to_string()
}

/// All processes of the host, those included that nobody has waited for.
///
/// # Panics
/// Without `/proc`.
pub fn all() -> Vec<Process> {
    numbers().filter_map(Process::of).collect()
}

/// Every descendant of a process, those included that nobody has waited for.
pub fn descendants(root: u32) -> Vec<Process> {
    let all = all();
    let mut family = HashSet::from([root]);
    loop {
        let before = family.len();
        let children = all
            .iter()
            .filter(|process| family.contains(&process.parent))
            .map(|process| process.pid);
        let children: Vec<u32> = children.collect();
        family.extend(children);
        if family.len() == before {
            break;
        }
    }
    all.into_iter()
        .filter(|process| process.pid != root && family.contains(&process.pid))
        .collect()
}

/// The server that a host process has started: its child `hearth serve`.
pub fn serving(host: u32) -> Option<u32> {
    started_as("serve", host).into_iter().next()
}

/// The gateways that a process has started: its children `hearth gateway`.
pub fn gateways(host: u32) -> Vec<u32> {
    started_as("gateway", host)
}

fn started_as(command: &str, by: u32) -> Vec<u32> {
    let children = descendants(by).into_iter().map(|process| process.pid);
    let children = children.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(command.as_bytes())
    });
    children.collect()
}

/// The processes of a host process's sandboxes, those included that nobody has waited for: its descendants but the server
/// and the gateway.
pub fn sandboxed(host: u32) -> Vec<Process> {
    let others: Vec<u32> = serving(host).into_iter().chain(gateways(host)).collect();
    let mut all = descendants(host);
    all.retain(|process| !others.contains(&process.pid));
    all
}

/// The processes that have a path in their command line or environment, whoever their parent is by now.
pub fn mentioning(path: &Path) -> Vec<u32> {
    let path = path.as_os_str().as_bytes();
    let mentions = |pid: &u32| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.windows(path.len()).any(|window| window == path)
        })
    };
    numbers().filter(mentions).collect()
}

/// A thread's priority as `/proc/PID/stat` has it: 20 and its niceness, or below zero if its scheduling is real-time.
/// `None` if it is gone.
pub fn priority(thread: u32) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    // The 18th field; the name, the second, is in brackets and may have spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(15)?.parse().ok()
}

/// The [priorities](priority) of a process's threads, its first one's first; of one that has ended there is none.
pub fn priorities(process: u32) -> Vec<i64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let threads = tasks.into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = threads
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable_by_key(|number| (*number != process, *number));
    numbers.into_iter().filter_map(priority).collect()
}

/// Whether the process runs: it is there, and no zombie.
pub fn is_alive(pid: u32) -> bool {
    Process::of(pid).is_some_and(|process| !process.is_zombie())
}

/// Whether nothing is left of the process: it has ended, and its parent has waited for it.
pub fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Kills a process, and waits until whoever has a descriptor of it can know: a moment later than `/proc` calls it a zombie.
///
/// # Errors
/// What the kernel says: there may be no such process any more, or it is still there after ten seconds.
pub fn kill(pid: u32) -> rustix::io::Result<()> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(rustix::io::Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    pidfd_send_signal(&process, Signal::KILL)?;
    let limit = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    let mut end = [PollFd::new(&process, PollFlags::IN)];
    match poll(&mut end, Some(&limit))? {
        0 => Err(rustix::io::Errno::TIMEDOUT),
        _ => Ok(()),
    }
}

/// Sends a signal.
///
/// # Errors
/// What `kill` says: there may be no such process any more.
pub fn signal(pid: u32, signal: Signal) -> rustix::io::Result<()> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(rustix::io::Errno::SRCH)?;
    kill_process(pid, signal)
}

fn numbers() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
